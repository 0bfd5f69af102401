/* A process that watches the one that tunes: a kernel that hangs takes its process with it, and only from outside can that be ended. */
#ifndef FLP_CLI_TUNE_WATCH_H
#define FLP_CLI_TUNE_WATCH_H
#include <stdatomic.h>
#include "tune/record.h"

/* What a device runs, in memory that both processes see. */
typedef struct {
    _Atomic(int64_t) since; /* nanoseconds of the monotonic clock; 0: nothing */
    flp_record_identity identity;
    char tuning[FLP_RECORD_TUNING_BYTES];
} flp_tune_slot;

/* Zeroed memory that forked processes share; NULL: there is none. It lasts as long as the process. */
void *flp_tune_watch_memory(size_t bytes);

void flp_tune_slot_begin(flp_tune_slot *slot, const flp_record_identity *identity, const char *tuning);
void flp_tune_slot_end(flp_tune_slot *slot);

/* Runs work in a child process and returns its exit code. Where a slot stands still for longer than `seconds`, the child is killed, its candidate noted in the
 * directory as hung, and another child begins. Signals that interrupt are passed on. */
int flp_tune_watch(flp_tune_slot *slots, int count, double seconds, const char *directory, int (*work)(void *data), void *data);
#endif
