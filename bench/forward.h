/* Measures one case of the forward: correctness, memory, and speed beside the baseline in the requested regimes. */
#ifndef FLP_BENCH_FORWARD_H
#define FLP_BENCH_FORWARD_H
#include <jansson.h>

#include "fusedlogp.h"
#include "measure.h"
#include "temperature.h"

typedef struct {
    flp_measure_options measure;
    unsigned regimes; /* bit 1 << flp_measure_regime */
    flp_backend backend;
} flp_forward_options;

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_forward_cases[];

/* Parses a canonical problem string, or one without "linear_logp:bf16:" before it, with a temperature behind it or not. FLP_BAD_ARGUMENT: text, no rows,
 * strides or sizes that flp_cublas_takes refuses, or a softcap together with a bias. */
flp_status flp_forward_parse(const char *text, flp_linear_logp_problem *problem, flp_temperature *temperature);

/* *result: the case's object for the results file. FLP_BAD_ARGUMENT: as flp_forward_parse. FLP_INTERNAL: a row is further from fp64 than it may be. */
flp_status flp_forward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result);
#endif
