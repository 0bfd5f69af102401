/* Mutexes that hold the log back. */
#include "base/mutex.h"

#include "base/log.h"

void flp_mutex_lock(pthread_mutex_t *mutex)
{
    flp_log_hold();
    pthread_mutex_lock(mutex);
}

void flp_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
    flp_log_resume();
}
