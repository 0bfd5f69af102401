/* Starts the library's threads. */
#include "base/thread.h"

#include <signal.h>

int flp_thread_start(pthread_t *handle, const pthread_attr_t *attributes, void *(*run)(void *data), void *data)
{
    sigset_t all, callers;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers); /* a new thread begins with the mask of the one that starts it */
    error = pthread_create(handle, attributes, run, data);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return error;
}
