/* The library's mutexes. While a thread has one, its log lines wait: a callback that calls the library must find none of them locked. */
#ifndef FLP_BASE_MUTEX_H
#define FLP_BASE_MUTEX_H
#include <pthread.h>

void flp_mutex_lock(pthread_mutex_t *mutex);
/* Behind the thread's last mutex the lines that waited are logged: what a function does after this may follow a callback's own calls. */
void flp_mutex_unlock(pthread_mutex_t *mutex);
#endif
