/* Maps files, and turns the SIGBUS of a page that can no longer be read into a message. */
#include "cli/mapped_file.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/status.h"
#include "cli/console.h"

#define MOST_GUARDS 16

/* The mapped files, for the signal handler. `start` is written last: an entry that has one is complete. */
static struct {
    _Atomic(const char *) start; /* NULL: free */
    size_t count;
    char message[1024];
} guards[MOST_GUARDS];

static void explain_fault(int signal_number, siginfo_t *what, void *context)
{
    (void)context;
    for (int i = 0; i < MOST_GUARDS; i++) {
        const char *start = atomic_load(&guards[i].start), *at = what->si_addr;
        if (start != NULL && at >= start && at < start + guards[i].count)
            flp_console_end(guards[i].message);
    }
    signal(signal_number, SIG_DFL); /* not a mapped file: the instruction runs again, and the default action ends the process */
}

static void install_handler(void)
{
    struct sigaction action = { .sa_sigaction = explain_fault, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

/* Takes a guard for the file and returns its index; -1 if all are taken: the file is then mapped without one. */
static int guard(const char *path, const void *bytes, size_t count)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int found = 0;
    pthread_mutex_lock(&lock);
    install_handler(); /* each time, because other code may have replaced it since */
    while (found < MOST_GUARDS && atomic_load(&guards[found].start) != NULL)
        found++;
    if (found < MOST_GUARDS) {
        guards[found].count = count;
        snprintf(guards[found].message, sizeof guards[found].message, "%s: a part could not be read: the file was cut short, or its disk failed", path);
        atomic_store(&guards[found].start, bytes);
    }
    pthread_mutex_unlock(&lock);
    return found < MOST_GUARDS ? found : -1;
}

static flp_status map(const char *path, flp_mapped_file *file)
{
    if (fstat(file->descriptor, &file->facts) != 0)
        return flp_status_fail(FLP_IO_FAILED, "%s", strerror(errno));
    if (!S_ISREG(file->facts.st_mode))
        return flp_status_fail(FLP_IO_FAILED, "a %s, wanted a regular file, which can be mapped: write what it gives into one first",
                               S_ISDIR(file->facts.st_mode)    ? "directory"
                               : S_ISFIFO(file->facts.st_mode) ? "pipe"
                                                               : "device or socket");
    if (file->facts.st_size == 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "the file is empty");
    void *bytes = mmap(NULL, (size_t)file->facts.st_size, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (bytes == MAP_FAILED)
        return flp_status_fail(FLP_IO_FAILED, "cannot be mapped: %s", strerror(errno));
    file->bytes = bytes;
    file->count = (size_t)file->facts.st_size;
    file->guard = guard(path, bytes, file->count);
    return FLP_OK;
}

flp_status flp_mapped_file_open(const char *path, flp_mapped_file *file)
{
    memset(file, 0, sizeof *file);
    /* Without O_NONBLOCK, opening a pipe would wait for a writer. */
    file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->descriptor < 0)
        return flp_status_fail(FLP_IO_FAILED, "%s", strerror(errno));
    flp_status status = map(path, file);
    if (status != FLP_OK)
        close(file->descriptor);
    return status;
}

flp_status flp_mapped_file_check(const flp_mapped_file *file)
{
    struct stat now;
    if (fstat(file->descriptor, &now) != 0)
        return flp_status_fail(FLP_IO_FAILED, "%s", strerror(errno));
    if (now.st_size != file->facts.st_size)
        return flp_status_fail(FLP_IO_FAILED, "the file had %lld bytes when it was opened and has %lld now", (long long)file->facts.st_size,
                               (long long)now.st_size);
    if (now.st_mtim.tv_sec != file->facts.st_mtim.tv_sec || now.st_mtim.tv_nsec != file->facts.st_mtim.tv_nsec)
        return flp_status_fail(FLP_IO_FAILED, "the file was written to while it was read");
    return FLP_OK;
}

void flp_mapped_file_forget(flp_mapped_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

void flp_mapped_file_close(flp_mapped_file *file)
{
    if (file->bytes == NULL)
        return;
    if (file->guard >= 0)
        atomic_store(&guards[file->guard].start, NULL);
    munmap(file->bytes, file->count);
    flp_mapped_file_forget(file);
    memset(file, 0, sizeof *file);
}
