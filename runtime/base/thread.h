/* Threads of the library. */
#ifndef FLP_BASE_THREAD_H
#define FLP_BASE_THREAD_H
#include <pthread.h>

/* Starts a thread with all signals blocked, so that the host's signal handlers run on the host's own threads only. Not blocked are the signals of a fault of
 * the thread's own instructions (SIGBUS, SIGSEGV, SIGFPE, SIGILL): if they were, a fault would end the process without calling the handler that explains it.
 * attributes: NULL for the default's. Returns 0 or an errno, as pthread_create. */
int flp_thread_start(pthread_t *handle, const pthread_attr_t *attributes, void *(*run)(void *data), void *data);
#endif
