/* What starting costs: a cold compilation, a warm start from the disk, and the dispatch of a known problem. */
#ifndef FLP_BENCH_START_H
#define FLP_BENCH_START_H
#include <jansson.h>

#include "device/gpu.h"

/* One tile kernel of problem, without a device: emitting, compiling and storing it; then finding it on the disk again. *result: an object
 * of statistics in milliseconds. Fresh cache directories below $TMPDIR, removed again. */
flp_status flp_start_measure_kernel(const char *problem, int compute_capability, json_t **result);

/* The whole plan of problem on the device: cold, from the disk, and known to the context. */
flp_status flp_start_measure_plan(const char *problem, json_t **result);

/* Nanoseconds of finding a known problem: last hit and table, on the CPU path; with a gpu (may be NULL) also on the device, of a
 * whole flp_linear_logp and of a plan's execution until they have launched, and of what these take over their bare launches. */
flp_status flp_start_measure_dispatch(flp_gpu *gpu, json_t **result);
#endif
