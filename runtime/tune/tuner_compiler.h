/* Compiles candidates one after another, in threads beside the timing or in the calling thread. */
#ifndef FLP_TUNE_TUNER_COMPILER_H
#define FLP_TUNE_TUNER_COMPILER_H
#include "tune/tuner.h"

typedef struct flp_tuner_compiler flp_tuner_compiler;

/* order: the candidates, which lives as long as the compiler. FLP_OUT_OF_MEMORY; threads that do not start are done without. */
flp_status flp_tuner_compiler_create(const flp_tuner_device *device, const int *order, int count, int jobs, flp_tuner_compiler **compiler);
/* Waits for what is being compiled. */
void flp_tuner_compiler_destroy(flp_tuner_compiler *compiler);

/* No further one is begun. */
void flp_tuner_compiler_cease(flp_tuner_compiler *compiler);
/* 1 while there are some that were not taken. */
int flp_tuner_compiler_busy(flp_tuner_compiler *compiler);

typedef struct {
    int candidate;
    flp_status status;
    char reason[FLP_TUNER_REASON_BYTES]; /* of a failure */
} flp_tuner_compiled;

/* The next that is done: 1, or 0 where there is none yet. Without threads it compiles one; wait: up to a tenth of a second for the threads. */
int flp_tuner_compiler_take(flp_tuner_compiler *compiler, int wait, flp_tuner_compiled *compiled);
#endif
