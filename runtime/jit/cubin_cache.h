/* Compiled kernels on disk: one file a kernel, found by the SHA-256 of its key text (format: jit/cubin_cache_file.h).
 *
 *     DIRECTORY/ab/ab12...ef.flpk   a kernel; the name is the SHA-256 of its key text, the subdirectory the first two digits
 *     DIRECTORY/ab/ab12...ef.lock   exists while a process compiles the kernel
 *     DIRECTORY/builds              the NVRTC builds whose kernels were stored here, one a line
 *     DIRECTORY/failed/VARIANT.cu   the last source of a variant that did not compile
 *
 * A loaded cubin is code, so a directory that others could have written to is not trusted. The user's directory is created with mode 0700 and files in it with
 * 0600. A shared one has 0755 and 0644, less what the umask takes; what this user made there before it was shared is given these modes when it is used. The
 * directory is refused where another user owns it, or group or others may write to it. A system directory must belong to root or
 * the user, and is refused where group or others may write to it. Symbolic links inside a directory are not followed.
 *
 * Every call opens the directory again, so that a directory that was removed or mounted again needs no special case. Any thread may make any call. */
#ifndef FLP_JIT_CUBIN_CACHE_H
#define FLP_JIT_CUBIN_CACHE_H
#include "fusedlogp.h"
#include <stddef.h>

typedef struct flp_cubin_cache flp_cubin_cache;

typedef struct {
    const char *directory;          /* the user's; NULL: $FUSEDLOGP_CACHE_DIR, $XDG_CACHE_HOME/fusedlogp, ~/.cache/fusedlogp; "": none */
    const char *system_directories; /* colon-separated, read only; NULL: $FUSEDLOGP_SYSTEM_CACHE, else as configured at build time */
    int64_t bytes;                  /* the most that the user's directory keeps, sources that did not compile among it; 0: 1 GiB */
    int shared;                     /* 1: other users may read what is stored, as far as the umask allows */
} flp_cubin_cache_options;

/* A directory that cannot be used is no error: it is logged once, and kernels then stay in memory only. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_create(const flp_cubin_cache_options *options, flp_cubin_cache **cache);
void flp_cubin_cache_destroy(flp_cubin_cache *cache);

/* A cubin's key: everything that decides its bytes. */
typedef struct {
    const char *source;
    size_t source_bytes;
    const char *source_digest; /* SHA-256 of source in hexadecimal; NULL: each call computes it */
    const char *options;       /* compiler options, one a line, always in the same order */
    const char *arch;          /* "sm_90a" */
    const char *nvrtc_build;   /* NULL: there is no NVRTC; a load then tries every build that the directory lists */
} flp_cubin_key;

typedef struct {
    char *variant; /* canonical string, for people who list the cache */
    char *manifest_text;
    char *cubin;
    size_t cubin_bytes;
    char *ptx; /* NULL where later GPUs cannot run it */
} flp_cubin;

/* Loads the key's kernel from the user's directory, else from the system directories. *found = 0 with FLP_OK where there is none: a missing, damaged or foreign
 * file is a miss. FLP_OUT_OF_MEMORY. The caller frees cubin by flp_cubin_free. */
flp_status flp_cubin_cache_load(flp_cubin_cache *cache, const flp_cubin_key *key, flp_cubin *cubin, int *found);
/* Stores a kernel in the user's directory. FLP_IO_FAILED: it is not stored, which the caller may ignore; a warning has been logged, once for each cache. */
flp_status flp_cubin_cache_store(flp_cubin_cache *cache, const flp_cubin_key *key, const flp_cubin *cubin);
/* Removes the key's file from the user's directory, because the driver rejected it. */
void flp_cubin_cache_evict(flp_cubin_cache *cache, const flp_cubin_key *key);
void flp_cubin_free(flp_cubin *cubin);

/* Writes the source of a kernel that did not compile to DIRECTORY/failed. path: receives the file's path.
 * FLP_IO_FAILED: the message says why it is not written. */
flp_status flp_cubin_cache_keep_source(flp_cubin_cache *cache, const char *variant, const char *source, size_t source_bytes, char path[4096]);

/* Takes the key's lock, so that only one process compiles a kernel while others wait for it (single flight). Waits at most this many seconds; *lock is -1 where
 * the lock could not be taken, and the caller then continues without it. */
void flp_cubin_cache_lock(flp_cubin_cache *cache, const flp_cubin_key *key, double seconds, int *lock);
void flp_cubin_cache_unlock(flp_cubin_cache *cache, int lock);

typedef struct {
    char directory[4096];
    int64_t files;   /* kernels */
    int64_t sources; /* kept, of kernels that did not compile */
    int64_t bytes;   /* of both */
    int64_t refused; /* kernels, not among those counted, and subdirectories that this user cannot read or must not trust */
    int writable;
    char refusal[512]; /* why a directory that is there was not opened; "" where it was, or where there is none */
} flp_cubin_cache_facts;
void flp_cubin_cache_describe(flp_cubin_cache *cache, flp_cubin_cache_facts *facts);

typedef struct {
    char directory[4096];
    int64_t files, sources, bytes, refused;
    int there;         /* 0: there is no such directory */
    char refusal[512]; /* why the directory is not used; "" where it is used */
} flp_cubin_cache_system_facts;
/* Describes the system directory of this index; indices from 0, in the order in which the directories are searched. Returns 0 after the last one, else 1. */
int flp_cubin_cache_describe_system(flp_cubin_cache *cache, int index, flp_cubin_cache_system_facts *facts);
/* Calls visit for each kernel in the user's directory, in name order, until it returns non-zero. variant is NULL for a damaged file. */
void flp_cubin_cache_visit(flp_cubin_cache *cache, int (*visit)(void *data, const char *file, const char *variant, int64_t bytes), void *data);
/* Removes all kernels and kept sources of the user's directory; returns how many kernels. */
int64_t flp_cubin_cache_clear(flp_cubin_cache *cache);
#endif
