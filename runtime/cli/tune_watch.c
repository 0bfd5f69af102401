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
#include "cli/console.h"
#include "tune/hung.h"

enum { POLL_MICROSECONDS = 20000 };
/* How much slower than the default a sound candidate may be, and how much longer than hang_seconds a compilation, or making a problem's target, may take. */
static const double patience = 10;

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

static double seconds_since(int64_t since)
{
    return since ? 1e-9 * (double)(nanoseconds_now() - since) : 0;
}

static void begin(flp_tune_slot *slot, flp_tune_activity activity, const char *templates, const char *tuning)
{
    slot->activity = activity;
    snprintf(slot->templates, sizeof slot->templates, "%s", templates);
    snprintf(slot->tuning, sizeof slot->tuning, "%s", tuning);
    atomic_store(&slot->since, nanoseconds_now());
}

void flp_tune_slot_open(flp_tune_slot *slot, const char *problem, double hang_seconds)
{
    slot->hang_seconds = hang_seconds;
    slot->default_seconds = 0;
    slot->identity = (flp_record_identity){ .arch = "" };
    snprintf(slot->identity.problem, sizeof slot->identity.problem, "%s", problem);
    begin(slot, FLP_TUNE_TARGET, "", "");
}

void flp_tune_slot_opened(flp_tune_slot *slot, const flp_record_identity *identity)
{
    atomic_store(&slot->since, 0);
    if (identity)
        slot->identity = *identity;
}

void flp_tune_slot_begin(flp_tune_slot *slot, int is_default, const char *templates, const char *tuning)
{
    begin(slot, is_default ? FLP_TUNE_DEFAULT : FLP_TUNE_CANDIDATE, templates, tuning);
}

/* 1 where candidates may take longer than hang_seconds because the default is slow. */
static int is_raised(const flp_tune_slot *slot)
{
    return patience * slot->default_seconds > slot->hang_seconds;
}

int flp_tune_slot_end(flp_tune_slot *slot)
{
    const double seconds = seconds_since(atomic_exchange(&slot->since, 0));
    const int was_raised = is_raised(slot);
    if (slot->activity == FLP_TUNE_DEFAULT && seconds > slot->default_seconds)
        slot->default_seconds = seconds;
    return !was_raised && is_raised(slot);
}

double flp_tune_slot_limit(const flp_tune_slot *slot)
{
    if (slot->default_seconds <= 0)
        return patience * slot->hang_seconds;
    return is_raised(slot) ? patience * slot->default_seconds : slot->hang_seconds;
}

void flp_tune_slot_compile(flp_tune_slot *slot, int candidate, const char *templates, const char *tuning)
{
    for (int i = 0; i < FLP_TUNE_COMPILATIONS; i++) {
        int64_t free_one = 0;
        /* INT64_MAX, a time in the future, reserves the entry while its other fields are written: it cannot be late yet. */
        if (!atomic_compare_exchange_strong(&slot->compiling[i].since, &free_one, INT64_MAX))
            continue;
        slot->compiling[i].candidate = candidate;
        snprintf(slot->compiling[i].templates, sizeof slot->compiling[i].templates, "%s", templates);
        snprintf(slot->compiling[i].tuning, sizeof slot->compiling[i].tuning, "%s", tuning);
        atomic_store(&slot->compiling[i].since, nanoseconds_now());
        return;
    }
}

void flp_tune_slot_compiled(flp_tune_slot *slot, int candidate)
{
    for (int i = 0; i < FLP_TUNE_COMPILATIONS; i++) {
        const int64_t since = atomic_load(&slot->compiling[i].since);
        if (since && since != INT64_MAX && slot->compiling[i].candidate == candidate)
            atomic_store(&slot->compiling[i].since, 0);
    }
}

static void pass_on(int signal_number)
{
    if (child > 0)
        kill((pid_t)child, signal_number);
}

/* Forks the process that works. It has a process group of its own, so that a signal from the terminal reaches the watching process alone, which passes it on
 * once. */
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

/* An activity that takes too long. */
typedef struct {
    flp_tune_slot *slot; /* NULL: nothing does */
    flp_tune_activity activity;
    const char *work, *templates, *tuning;
    double seconds;
} late;

static late find_late_run(flp_tune_slot *slot)
{
    static const char *const works[] = { "making its arrays and the reference", "the default", "" };
    const double limit = slot->activity == FLP_TUNE_CANDIDATE ? flp_tune_slot_limit(slot) : patience * slot->hang_seconds;
    const int is_late = seconds_since(atomic_load(&slot->since)) > limit;
    return (late){ is_late ? slot : NULL, slot->activity, works[slot->activity], slot->templates, slot->tuning, limit };
}

static late find_late(flp_tune_slot *slots, int count)
{
    for (int i = 0; i < count; i++) {
        const late run = find_late_run(&slots[i]);
        const double limit = patience * slots[i].hang_seconds;
        if (run.slot)
            return run;
        for (int j = 0; j < FLP_TUNE_COMPILATIONS; j++)
            if (seconds_since(atomic_load(&slots[i].compiling[j].since)) > limit)
                return (late){ &slots[i], FLP_TUNE_CANDIDATE, "the compilation of ", slots[i].compiling[j].templates, slots[i].compiling[j].tuning, limit };
    }
    return (late){ NULL, FLP_TUNE_TARGET, "", "", "", 0 };
}

/* Leaves the problem out, because its target or its default took too long: without the default's time, candidates cannot be judged. A larger --hang may
 * help. */
static void give_up(const late *hung)
{
    flp_console_error("%s: %s took longer than %.3g s and was ended; the problem is left out, wanted a --hang above %.3g", hung->slot->identity.problem,
                      hung->work, hung->seconds, hung->slot->hang_seconds);
    *hung->slot->done = 1;
    if (*hung->slot->code == FLP_EXIT_OK)
        *hung->slot->code = FLP_EXIT_FAILED;
}

static void note(const late *hung, const char *directory)
{
    flp_record_identity identity = hung->slot->identity;
    snprintf(identity.templates, sizeof identity.templates, "%s", hung->templates);
    flp_console_error("warning: %s: %s%s hung for %.3g s and was ended; it is not tried again", hung->slot->identity.problem, hung->work,
                      hung->tuning[0] ? hung->tuning : "default", hung->seconds);
    if (flp_hung_note(directory, &identity, hung->tuning) != FLP_OK)
        flp_console_error("warning: not kept: %s", flp_error_message());
}

/* Waits until the child ends, or kills it when an activity takes too long; returns that activity. */
static late wait_for_child(flp_tune_slot *slots, int count, int *result)
{
    const pid_t watched = (pid_t)child;
    pid_t ended;
    while ((ended = waitpid(watched, result, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        const late hung = find_late(slots, count);
        if (hung.slot) {
            kill(watched, SIGKILL);
            while (waitpid(watched, result, 0) < 0 && errno == EINTR)
                continue;
            return hung;
        }
        usleep(POLL_MICROSECONDS);
    }
    return (late){ NULL, FLP_TUNE_TARGET, "", "", "", 0 };
}

static void clear(flp_tune_slot *slot)
{
    atomic_store(&slot->since, 0);
    for (int i = 0; i < FLP_TUNE_COMPILATIONS; i++)
        atomic_store(&slot->compiling[i].since, 0);
}

int flp_tune_watch(flp_tune_slot *slots, int count, const char *directory, int (*work)(void *data), void *data)
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
        const late hung = wait_for_child(slots, count, &result);
        child = 0;
        if (!hung.slot && WIFEXITED(result))
            return WEXITSTATUS(result);
        if (!hung.slot) {
            flp_console_error("the process that tunes was ended by signal %d", WTERMSIG(result));
            return FLP_EXIT_FAILED;
        }
        if (hung.activity == FLP_TUNE_CANDIDATE)
            note(&hung, directory);
        else
            give_up(&hung);
        for (int i = 0; i < count; i++)
            clear(&slots[i]);
    }
}
