/* Measures one operation alone, back to back for a while: its time, and its energy by NVML's counter. */
#ifndef FLP_BENCH_SOLO_H
#define FLP_BENCH_SOLO_H
#include "measure.h"

typedef struct {
    double milliseconds, joules, watts; /* of one operation, except for watts; joules and watts 0: they are not known */
} flp_solo;

/* Runs the operation for a quarter of options->solo_ms untimed, then for solo_ms. The counter moves in steps, some tens of milliseconds apart, so the power
 * is measured from one step to a later one, and an operation's joules are that power times its time. why [FLP_STATUS_MESSAGE_BYTES]: "", or why there are no
 * joules, which is no failure: no NVML, no counter of this device, or one that did not move twice. */
flp_status flp_solo_measure(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, const flp_measured *measured, flp_solo *result, char *why);
#endif
