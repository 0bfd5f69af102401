/* Measures what starting costs: a cold compilation, a warm start from the disk, and the dispatch of a known problem. */
#ifndef FLP_BENCH_START_H
#define FLP_BENCH_START_H
#include <jansson.h>

#include "device/gpu.h"

/* One tile kernel of problem, without a device: emitting, compiling and storing it; then finding it on the disk again. *result: an object
 * of statistics in milliseconds. Fresh cache directories below $TMPDIR, removed again. */
flp_status flp_start_measure_kernel(const char *problem, int compute_capability, json_t **result);

/* The whole plan of problem on the device: cold, from the disk, and known to the context. */
flp_status flp_start_measure_plan(const char *problem, json_t **result);

/* Nanoseconds of finding the plan of a known problem, by the last hit and by the table, on the CPU path and, with a gpu (may be NULL), on the GPU path. With
 * a gpu also of a whole flp_linear_logp and of a plan's execution until they have launched, and of what these take besides their launches. */
flp_status flp_start_measure_dispatch(flp_gpu *gpu, json_t **result);
#endif
