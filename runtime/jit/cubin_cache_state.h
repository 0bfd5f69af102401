/* What the cache's own files share: its state, and reading one kernel. */
#ifndef FLP_JIT_CUBIN_CACHE_STATE_H
#define FLP_JIT_CUBIN_CACHE_STATE_H
#include <stdatomic.h>
#include "base/text.h"
#include "jit/cubin_cache.h"
#include "jit/cubin_cache_directory.h"
#include "jit/cubin_cache_lock.h"

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
#endif
