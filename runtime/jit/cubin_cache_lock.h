/* Locks between processes: flock on a file that its holder removes. */
#ifndef FLP_JIT_CUBIN_CACHE_LOCK_H
#define FLP_JIT_CUBIN_CACHE_LOCK_H
#include <pthread.h>

struct flp_cubin_cache_lock_entry;

typedef struct {
    pthread_mutex_t mutex;
    struct flp_cubin_cache_lock_entry *held;
} flp_cubin_cache_locks;

/* Waits at most seconds for the lock file name in directory. Returns its descriptor or -1: not had in time, or the file system
 * does not do it. directory may be closed afterwards. */
int flp_cubin_cache_lock_take(flp_cubin_cache_locks *locks, int directory, const char *name, double seconds);

/* Removes the file and lets the next one in; -1 is allowed. */
void flp_cubin_cache_lock_release(flp_cubin_cache_locks *locks, int lock);

/* Removes a lock file that a killed process left, unless someone holds it. */
void flp_cubin_cache_lock_sweep(int directory, const char *name);
#endif
