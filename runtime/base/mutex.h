/* Locks and unlocks the library's mutexes. While a thread holds one, its log lines are queued: the log callback may call the library, and must then
 * find none of its mutexes locked. */
#ifndef FLP_BASE_MUTEX_H
#define FLP_BASE_MUTEX_H
#include <pthread.h>

#include "base/log.h"

static inline void flp_mutex_lock(pthread_mutex_t *mutex)
{
    flp_log_hold();
    pthread_mutex_lock(mutex);
}

/* When the thread unlocks its last mutex, its queued lines are delivered. The callback may call the library then, before the code that follows this runs. */
static inline void flp_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    flp_log_resume();
}
#endif
