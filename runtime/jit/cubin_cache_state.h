/* What the cache's own files share: its state, reading one kernel, the list of what there is, and the builds that made it. */
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
    int64_t limit;                         /* bytes of the user's directory */
    int shared;
    atomic_flag warned;
    atomic_uint systems_warned; /* bits, by their index */
    flp_cubin_cache_locks locks;
};

/* The user's directory, made where create is 1; -1 where there is none to use. One that is not there yet is no warning. */
int flp_cubin_cache_state_open_user(flp_cubin_cache *cache, int create);

/* What a directory is made with: the user's, and those inside. */
unsigned flp_cubin_cache_state_mode(const flp_cubin_cache *cache);

/* Goes through the system directories: *next is systems at first. 0 behind the last. */
int flp_cubin_cache_state_next_system(const char **next, char path[FLP_CUBIN_CACHE_PATH_BYTES]);

/* Reads name ("ab/ab12...ef.flpk"); 1 and *cubin where it is whole. key_text NULL: whatever key it has. touch 1: it was used. */
int flp_cubin_cache_state_read(int directory, const char *name, const flp_text *key_text, int touch, flp_cubin *cubin);

/* ---- the NVRTC builds that published into a directory: a machine without NVRTC cannot know its key, and tries each ---- */

typedef struct {
    char *text;   /* owns the names */
    char **names; /* in the order of their first store; malformed lines are left out */
    size_t count;
} flp_cubin_cache_builds;

/* No file, or no memory: count 0. */
void flp_cubin_cache_builds_read(int directory, flp_cubin_cache_builds *builds);
void flp_cubin_cache_builds_free(flp_cubin_cache_builds *builds);

/* Appends build with one write where it is not in the file yet. FLP_IO_FAILED. */
flp_status flp_cubin_cache_builds_add(int directory, const char *build);

/* ---- what lies in a directory, and keeping it small ---- */

typedef struct {
    char name[FLP_CUBIN_CACHE_NAME_BYTES];
    int64_t bytes;
    struct timespec used;
} flp_cubin_cache_item;

typedef struct {
    flp_cubin_cache_item *items; /* kernels, in name order; freed by the caller */
    size_t count, capacity;
    int64_t bytes;                        /* of all */
    int64_t refused_files, refused_bytes; /* of these, what this user cannot read or must not trust, */
    int64_t refused;                      /* and how many with subdirectories of that kind */
} flp_cubin_cache_list;

/* What cannot be read or trusted (or remembered, for want of memory) is left out. sweep 1: also removes what killed processes left. */
void flp_cubin_cache_list_read(int directory, int sweep, flp_cubin_cache_list *list);

/* Removes the least recently used kernels (of the same age: by name) until at most limit bytes remain, and old leftovers. */
void flp_cubin_cache_list_trim(int directory, int64_t limit);
#endif
