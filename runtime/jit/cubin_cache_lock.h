/* Locks between processes: flock on a lock file, which the holder removes on release. */
#ifndef FLP_JIT_CUBIN_CACHE_LOCK_H
#define FLP_JIT_CUBIN_CACHE_LOCK_H
#include <pthread.h>

struct flp_cubin_cache_lock_entry;

typedef struct {
    pthread_mutex_t mutex;
    struct flp_cubin_cache_lock_entry *held;
} flp_cubin_cache_locks;

/* Takes the lock of the file `name` in the open directory, waiting at most this many seconds. Returns the lock's descriptor; or -1 where the lock was not free
 * in time, or the file system has no locks. The caller may close directory afterwards. */
int flp_cubin_cache_lock_take(flp_cubin_cache_locks *locks, int directory, const char *name, double seconds);

/* Removes the lock file and releases the lock. lock may be -1. */
void flp_cubin_cache_lock_release(flp_cubin_cache_locks *locks, int lock);

/* Removes a lock file that a killed process has left, unless the lock is held. */
void flp_cubin_cache_lock_sweep(int directory, const char *name);
#endif
