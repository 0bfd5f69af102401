/* A process that watches the one that tunes: a kernel that hangs takes its process with it, and only from outside can that be ended. */
#ifndef FLP_CLI_TUNE_WATCH_H
#define FLP_CLI_TUNE_WATCH_H
#include <stdatomic.h>
#include "tune/record.h"

enum { FLP_TUNE_COMPILATIONS = 256 };

/* A compilation that is under way. */
typedef struct {
    _Atomic(int64_t) since; /* as the slot's */
    int candidate;
    char tuning[FLP_RECORD_TUNING_BYTES], templates[FLP_RECORD_DIGEST_BYTES];
} flp_tune_compilation;

typedef enum {
    FLP_TUNE_TARGET,   /* its arrays, the reference, the default's kernels */
    FLP_TUNE_DEFAULT,  /* a check or run of the default */
    FLP_TUNE_CANDIDATE /* of another */
} flp_tune_activity;

/* What a device works at, in memory that both processes see. Candidates may take hang_seconds, or ten times what the default took where that is more;
 * all else ten times hang_seconds. */
typedef struct {
    _Atomic(int64_t) since; /* nanoseconds of the monotonic clock; 0: nothing */
    flp_tune_activity activity;
    double hang_seconds, default_seconds; /* default_seconds: of its longest check or run */
    flp_record_identity identity;         /* of the problem; while its target is made, the problem alone */
    char tuning[FLP_RECORD_TUNING_BYTES], templates[FLP_RECORD_DIGEST_BYTES];
    char *done; /* in such memory: where it says that no process tunes the problem any more, */
    int *code;  /* and the exit code, for the first failure */
    flp_tune_compilation compiling[FLP_TUNE_COMPILATIONS];
} flp_tune_slot;

/* Zeroed memory that forked processes share; NULL: there is none. It lasts as long as the process. */
void *flp_tune_watch_memory(size_t bytes);

/* A problem's target begins to be made; then it has been made, or not: identity NULL. */
void flp_tune_slot_open(flp_tune_slot *slot, const char *problem, double hang_seconds);
void flp_tune_slot_opened(flp_tune_slot *slot, const flp_record_identity *identity);
/* A check or run; is_default: of what the others are compared with; templates: that the candidate's kernels reach, under which it is noted if it hangs.
 * end is 1 where the default took so long for the first time that candidates may take longer than hang_seconds. */
void flp_tune_slot_begin(flp_tune_slot *slot, int is_default, const char *templates, const char *tuning);
int flp_tune_slot_end(flp_tune_slot *slot);
/* A compilation; from any thread. */
void flp_tune_slot_compile(flp_tune_slot *slot, int candidate, const char *templates, const char *tuning);
void flp_tune_slot_compiled(flp_tune_slot *slot, int candidate);

/* What a check or run of a candidate may take; as long as the default had none, ten times hang_seconds. */
double flp_tune_slot_limit(const flp_tune_slot *slot);

/* Runs work in a child process and returns its exit code. Where something of a slot takes longer than it may, the child is killed and another one begins:
 * without the candidate, which is noted in the directory as hung, or without the problem, where it was the target or the default. Signals that interrupt are
 * passed on. */
int flp_tune_watch(flp_tune_slot *slots, int count, const char *directory, int (*work)(void *data), void *data);
#endif
