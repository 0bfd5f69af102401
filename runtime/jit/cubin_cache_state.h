/* What the files of the cache share: its state, reading one kernel, the list of stored kernels, and the list of NVRTC builds. */
#ifndef FLP_JIT_CUBIN_CACHE_STATE_H
#define FLP_JIT_CUBIN_CACHE_STATE_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "base/text.h"
#include "jit/cubin_cache.h"
#include "jit/cubin_cache_directory.h"
#include "jit/cubin_cache_lock.h"
#include "fusedlogp.h"

struct flp_cubin_cache {
    char user[FLP_CUBIN_CACHE_PATH_BYTES]; /* "": none */
    char *systems;                         /* colon-separated */
    int64_t limit;                         /* bytes that the user's directory keeps */
    int shared;
    atomic_flag warned;         /* a problem of the user's directory has been logged */
    atomic_uint systems_warned; /* the same of system directories: a bit for each index */
    flp_cubin_cache_locks locks;
};

/* Opens the user's directory, which is created where create is 1. Returns -1 where it cannot be used, which is logged once; that the directory does not exist
 * yet is not logged. */
int flp_cubin_cache_state_open_user(flp_cubin_cache *cache, int create);

/* The mode with which the user's directory and those inside it are created, and that of files in directories of such a mode. */
unsigned flp_cubin_cache_state_mode(const flp_cubin_cache *cache);
unsigned flp_cubin_cache_state_file_mode(unsigned mode);

/* Iterates over the system directories: *next is cache->systems at first. Returns 1 with the next path, 0 after the last. */
int flp_cubin_cache_state_next_system(const char **next, char path[FLP_CUBIN_CACHE_PATH_BYTES]);

/* Reads the file name ("ab/ab12...ef.flpk"). Returns 1 with *cubin where the file is undamaged and has this key (any key where key_text is NULL), else 0.
 * mode: flp_cubin_cache_state_mode of the cache whose user's directory this is: then the use is recorded, for the removal of the least recently used files,
 * and the file is shared with those with whom the cache is; 0: neither. */
int flp_cubin_cache_state_read(int directory, const char *name, const flp_text *key_text, unsigned mode, flp_cubin *cubin);

/* ---- the NVRTC builds whose kernels a directory has: without NVRTC a kernel's key is unknown, so each of these builds is tried ---- */

typedef struct {
    char *text;   /* owns the names */
    char **names; /* in the order of their first store; malformed lines are left out */
    size_t count;
} flp_cubin_cache_builds;

/* Where there is no file or no memory, count is 0. */
void flp_cubin_cache_builds_read(int directory, flp_cubin_cache_builds *builds);
void flp_cubin_cache_builds_free(flp_cubin_cache_builds *builds);

/* Appends build, with one write(), unless the file has it already. mode: of the file, if it is created. FLP_IO_FAILED; FLP_INTERNAL: build is no valid line. */
flp_status flp_cubin_cache_builds_add(int directory, unsigned mode, const char *build);

/* The subdirectory of sources that did not compile. */
#define FLP_CUBIN_CACHE_FAILED "failed"

/* ---- the kernels in a directory, and keeping it small ---- */

/* "failed/", the longest name of a source that is kept, and a 0 byte. */
enum { FLP_CUBIN_CACHE_ITEM_BYTES = 7 + 203 + 1 };

typedef struct {
    char name[FLP_CUBIN_CACHE_ITEM_BYTES];
    int is_source; /* 1: of a kernel that did not compile */
    int64_t bytes;
    struct timespec used; /* when it was stored or last used, to an hour */
} flp_cubin_cache_item;

typedef struct {
    flp_cubin_cache_item *items; /* kernels, and sources that did not compile, in name order; freed by the caller */
    size_t count, capacity;
    int64_t sources;                      /* how many of the items */
    int64_t bytes;                        /* of all items */
    int64_t refused_files, refused_bytes; /* the items among them that this user cannot read or must not trust */
    int64_t refused;                      /* refused_files, and the subdirectories that this user cannot read or must not trust */
} flp_cubin_cache_list;

/* Lists the kernels and kept sources of a cache directory. Kernels that cannot be read or trusted are listed, and counted as refused; subdirectories of that
 * kind, and files for which there is no memory, are left out. sweep 1: also removes temporary files and lock files that killed processes have left. */
void flp_cubin_cache_list_read(int directory, int sweep, flp_cubin_cache_list *list);

/* Removes the least recently used files (those of the same age in name order) until at most limit bytes remain, and what killed processes have left. */
void flp_cubin_cache_list_trim(int directory, int64_t limit);
#endif
