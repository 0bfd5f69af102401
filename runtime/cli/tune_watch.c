/* Starts, watches and ends the process that tunes. */
#include "cli/tune_watch.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/status.h"
#include "cli/console.h"
#include "tune/hung.h"

enum { POLL_MICROSECONDS = 20000 };

static volatile sig_atomic_t child;

void *flp_tune_watch_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int64_t nanoseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void flp_tune_slot_begin(flp_tune_slot *slot, const flp_record_identity *identity, const char *tuning)
{
    slot->identity = *identity;
    snprintf(slot->tuning, sizeof slot->tuning, "%s", tuning);
    atomic_store(&slot->since, nanoseconds_now());
}

void flp_tune_slot_end(flp_tune_slot *slot)
{
    atomic_store(&slot->since, 0);
}

static void pass_on(int signal_number)
{
    if (child > 0)
        kill((pid_t)child, signal_number);
}

/* A group of its own: what the terminal sends reaches the watching process alone, which passes it on once. */
static pid_t start(int (*work)(void *data), void *data)
{
    const pid_t watching = getpid();
    fflush(NULL);
    const pid_t started = fork();
    if (started != 0)
        return started;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != watching)
        _exit(FLP_EXIT_FAILED);
    const int code = flp_console_finish(work(data));
    _exit(code);
}

/* The slot that has stood still for too long; NULL: none. */
static flp_tune_slot *find_hung(flp_tune_slot *slots, int count, double seconds)
{
    for (int i = 0; i < count; i++) {
        const int64_t since = atomic_load(&slots[i].since);
        if (since && 1e-9 * (double)(nanoseconds_now() - since) > seconds)
            return &slots[i];
    }
    return NULL;
}

static void note(flp_tune_slot *slot, double seconds, const char *directory)
{
    flp_console_error("warning: %s: %s hung for %.3g s and was ended; it is not tried again", slot->identity.problem,
                      slot->tuning[0] ? slot->tuning : "default", seconds);
    if (flp_hung_note(directory, &slot->identity, slot->tuning) != FLP_OK)
        flp_console_error("warning: not kept: %s", flp_error_message());
}

/* Until the child has ended, or hangs: then the slot is returned and the child is gone. */
static flp_tune_slot *wait_for_child(flp_tune_slot *slots, int count, double seconds, int *result)
{
    const pid_t watched = (pid_t)child;
    pid_t ended;
    while ((ended = waitpid(watched, result, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        flp_tune_slot *hung = find_hung(slots, count, seconds);
        if (hung) {
            kill(watched, SIGKILL);
            while (waitpid(watched, result, 0) < 0 && errno == EINTR)
                continue;
            return hung;
        }
        usleep(POLL_MICROSECONDS);
    }
    return NULL;
}

int flp_tune_watch(flp_tune_slot *slots, int count, double seconds, const char *directory, int (*work)(void *data), void *data)
{
    const struct sigaction passing = { .sa_handler = pass_on };
    for (;;) {
        int result = 0;
        child = start(work, data);
        if (child < 0) {
            flp_console_error("cannot start a process that tunes: %m");
            return FLP_EXIT_FAILED;
        }
        sigaction(SIGINT, &passing, NULL);
        sigaction(SIGTERM, &passing, NULL);
        flp_tune_slot *hung = wait_for_child(slots, count, seconds, &result);
        child = 0;
        if (!hung && WIFEXITED(result))
            return WEXITSTATUS(result);
        if (!hung) {
            flp_console_error("the process that tunes was ended by signal %d", WTERMSIG(result));
            return FLP_EXIT_FAILED;
        }
        note(hung, seconds, directory);
        for (int i = 0; i < count; i++)
            flp_tune_slot_end(&slots[i]);
    }
}
