/* Starts the library's threads. */
#include "base/thread.h"

#include <signal.h>

int flp_thread_start(pthread_t *handle, const pthread_attr_t *attributes, void *(*run)(void *data), void *data)
{
    static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL };
    sigset_t blocked, callers;
    int error;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &callers); /* a new thread begins with the mask of the one that starts it */
    error = pthread_create(handle, attributes, run, data);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return error;
}
