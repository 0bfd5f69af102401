/* Compiled kernels on disk: one file a kernel, found by the SHA-256 of its key text (format: jit/cubin_cache_file.h).
 *
 *     DIRECTORY/ab/ab12...ef.flpk   a kernel; the name is its key's SHA-256, the subdirectory the first two digits
 *     DIRECTORY/ab/ab12...ef.lock   while a process compiles it
 *     DIRECTORY/builds              NVRTC builds that published here, one a line
 *     DIRECTORY/failed/VARIANT.cu   the last source of a variant that did not compile
 *
 * A loaded cubin is code. The user's directory is therefore made with mode 0700 (a shared one with 0755, less what the umask takes) and refused
 * when another user owns it or group or others may write to it; a system directory, which may not be written to by them either, must belong to root
 * or the user; symbolic links inside are not followed. Every
 * call opens the directory anew, so that one that was removed or mounted again is no special case. All calls may come from any thread. */
#ifndef FLP_JIT_CUBIN_CACHE_H
#define FLP_JIT_CUBIN_CACHE_H
#include "fusedlogp.h"
#include <stddef.h>

typedef struct flp_cubin_cache flp_cubin_cache;

typedef struct {
    const char *directory;          /* the user's; NULL: $FUSEDLOGP_CACHE_DIR, $XDG_CACHE_HOME/fusedlogp, ~/.cache/fusedlogp; "": none */
    const char *system_directories; /* colon-separated, read only; NULL: $FUSEDLOGP_SYSTEM_CACHE, else as configured at build time */
    int64_t bytes;                  /* of the user's directory; 0: 1 GiB */
    int shared;                     /* 1: others may read what is stored, as far as the umask lets them */
} flp_cubin_cache_options;

/* Never fails for the directory's sake: an unusable one is one warning, then memory only. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_create(const flp_cubin_cache_options *options, flp_cubin_cache **cache);
void flp_cubin_cache_destroy(flp_cubin_cache *cache);

/* What decides the bytes of a cubin. */
typedef struct {
    const char *source;
    size_t source_bytes;
    const char *source_digest; /* its text; NULL: each call makes it */
    const char *options;       /* canonical: one a line */
    const char *arch;          /* "sm_90a" */
    const char *nvrtc_build;   /* NULL: no NVRTC at hand; a load then tries every build that published here */
} flp_cubin_key;

typedef struct {
    char *variant; /* canonical string, for people who list the cache */
    char *manifest_text;
    char *cubin;
    size_t cubin_bytes;
    char *ptx; /* where it is portable; else NULL */
} flp_cubin;

/* A damaged, foreign or missing file is a miss: *found = 0 and FLP_OK. The caller frees with flp_cubin_free. */
flp_status flp_cubin_cache_load(flp_cubin_cache *cache, const flp_cubin_key *key, flp_cubin *cubin, int *found);
/* FLP_IO_FAILED: not stored, which the caller may ignore (a warning has been logged once). */
flp_status flp_cubin_cache_store(flp_cubin_cache *cache, const flp_cubin_key *key, const flp_cubin *cubin);
/* Removes what the driver rejected. */
void flp_cubin_cache_evict(flp_cubin_cache *cache, const flp_cubin_key *key);
void flp_cubin_free(flp_cubin *cubin);

/* Writes the source of a kernel that did not compile to DIRECTORY/failed and tells its path, "" where it is nowhere. FLP_IO_FAILED says why not. */
flp_status flp_cubin_cache_keep_source(flp_cubin_cache *cache, const char *variant, const char *source, size_t source_bytes, char path[4096]);

/* Single flight between processes: waits at most seconds for the key's lock; *lock is -1 where none could be had, and the
 * caller goes on without. */
void flp_cubin_cache_lock(flp_cubin_cache *cache, const flp_cubin_key *key, double seconds, int *lock);
void flp_cubin_cache_unlock(flp_cubin_cache *cache, int lock);

typedef struct {
    char directory[4096];
    int64_t files, bytes;
    int64_t refused; /* files beside these, and subdirectories, that this user cannot read or must not trust */
    int writable;
} flp_cubin_cache_facts;
void flp_cubin_cache_describe(flp_cubin_cache *cache, flp_cubin_cache_facts *facts);

typedef struct {
    char directory[4096];
    int64_t files, bytes, refused;
    int there;         /* 0: there is no such directory */
    char refusal[512]; /* why it is not used; "" where it is */
} flp_cubin_cache_system_facts;
/* The system directory of this index, in the order in which they are looked through; 0 behind the last. */
int flp_cubin_cache_describe_system(flp_cubin_cache *cache, int index, flp_cubin_cache_system_facts *facts);
/* Each kernel in the user's directory, in name order; stops when visit returns non-zero. Damaged files: variant NULL. */
void flp_cubin_cache_visit(flp_cubin_cache *cache, int (*visit)(void *data, const char *file, const char *variant, int64_t bytes), void *data);
/* Removes all kernels of the user's directory; returns how many. */
int64_t flp_cubin_cache_clear(flp_cubin_cache *cache);
#endif
