/* The library's mutexes. While a thread has one, its log lines wait: a callback that calls the library must find none of them locked. */
#ifndef FLP_BASE_MUTEX_H
#define FLP_BASE_MUTEX_H
#include <pthread.h>

#include "base/log.h"

static inline void flp_mutex_lock(pthread_mutex_t *mutex)
{
    flp_log_hold();
    pthread_mutex_lock(mutex);
}

/* Behind the thread's last mutex the lines that waited are logged: what a function does after this may follow a callback's own calls. */
static inline void flp_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    flp_log_resume();
}
#endif
