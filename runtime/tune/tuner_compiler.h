/* Compiles candidates in their order, in threads during the timing, or in the calling thread. */
#ifndef FLP_TUNE_TUNER_COMPILER_H
#define FLP_TUNE_TUNER_COMPILER_H
#include "tune/tuner.h"

typedef struct flp_tuner_compiler flp_tuner_compiler;

/* order: the candidates in the order in which they are compiled; must live as long as the compiler. jobs: threads; fewer are used where some cannot be started.
 * FLP_OUT_OF_MEMORY. */
flp_status flp_tuner_compiler_create(const flp_tuner_device *device, const int *order, int count, int jobs, flp_tuner_compiler **compiler);
/* Waits for compilations that are under way. NULL is allowed. */
void flp_tuner_compiler_destroy(flp_tuner_compiler *compiler);

/* Begins no further compilation. */
void flp_tuner_compiler_cease(flp_tuner_compiler *compiler);
/* 1 while there are candidates that were or will be compiled and were not taken yet. */
int flp_tuner_compiler_busy(flp_tuner_compiler *compiler);

typedef struct {
    int candidate;
    flp_status status;
    char reason[FLP_TUNER_REASON_BYTES]; /* of a failure */
} flp_tuner_compiled;

/* Takes the next candidate that is compiled. Returns 1, or 0 where none is ready. Without threads it compiles one itself; with threads and wait 1, it waits for
 * one up to a tenth of a second. */
int flp_tuner_compiler_take(flp_tuner_compiler *compiler, int wait, flp_tuner_compiled *compiled);
#endif
