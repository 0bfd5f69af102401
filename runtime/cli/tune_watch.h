/* A process that watches the one that tunes. A kernel that hangs blocks its process, which can then be ended from outside only. */
#ifndef FLP_CLI_TUNE_WATCH_H
#define FLP_CLI_TUNE_WATCH_H
#include <stdatomic.h>
#include "tune/record.h"

enum { FLP_TUNE_COMPILATIONS = 256 };

/* A compilation that is running. */
typedef struct {
    _Atomic(int64_t) since; /* as the slot's */
    int candidate;
    char tuning[FLP_RECORD_TUNING_BYTES], templates[FLP_RECORD_DIGEST_BYTES];
} flp_tune_compilation;

typedef enum {
    FLP_TUNE_TARGET,   /* making a problem's arrays, its reference and the default's kernels */
    FLP_TUNE_DEFAULT,  /* a check or run of the default */
    FLP_TUNE_CANDIDATE /* a check or run of another candidate */
} flp_tune_activity;

/* What a device is working on, in memory that both processes see. A check or run of a candidate may take hang_seconds, or ten times what the default took
 * where that is more; everything else may take ten times hang_seconds. */
typedef struct {
    _Atomic(int64_t) since; /* nanoseconds of the monotonic clock; 0: nothing */
    flp_tune_activity activity;
    double hang_seconds, default_seconds; /* default_seconds: of its longest check or run */
    flp_record_identity identity;         /* of the problem; until its target is made, only the string is set */
    char tuning[FLP_RECORD_TUNING_BYTES], templates[FLP_RECORD_DIGEST_BYTES];
    char *done; /* in shared memory: set to 1 when no process is to tune the problem any more */
    int *code;  /* in shared memory: the exit code of the first failure */
    flp_tune_compilation compiling[FLP_TUNE_COMPILATIONS];
} flp_tune_slot;

/* Zeroed memory that forked processes share; NULL: there is none. It lasts as long as the process. */
void *flp_tune_watch_memory(size_t bytes);

/* To be called before and after a problem's target is made. identity NULL: it could not be made. */
void flp_tune_slot_open(flp_tune_slot *slot, const char *problem, double hang_seconds);
void flp_tune_slot_opened(flp_tune_slot *slot, const flp_record_identity *identity);
/* To be called before and after a check or run. is_default: it is the default's, with which the others are compared. templates: the digest of the templates
 * that the candidate's kernels reach, with which it is noted if it hangs. end returns 1 where the default has taken so long, for the first time, that
 * candidates may take longer than hang_seconds. */
void flp_tune_slot_begin(flp_tune_slot *slot, int is_default, const char *templates, const char *tuning);
int flp_tune_slot_end(flp_tune_slot *slot);
/* To be called before and after a compilation, from any thread. */
void flp_tune_slot_compile(flp_tune_slot *slot, int candidate, const char *templates, const char *tuning);
void flp_tune_slot_compiled(flp_tune_slot *slot, int candidate);

/* The seconds that a check or run of a candidate may take; before the default was timed, ten times hang_seconds. */
double flp_tune_slot_limit(const flp_tune_slot *slot);

/* Runs work in a child process and returns its exit code. Where an activity of a slot takes longer than it may, the child is killed and another one starts:
 * without the candidate, which is noted as hung in the directory, or without the problem, where the activity was making the target or running the default.
 * Passes SIGINT and SIGTERM on to the child. */
int flp_tune_watch(flp_tune_slot *slots, int count, const char *directory, int (*work)(void *data), void *data);
#endif
