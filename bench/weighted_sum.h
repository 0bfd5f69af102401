/* Measures one case of weighted_sum, either direction: correctness, and speed beside reading, writing or copying x once, and beside cuBLAS. */
#ifndef FLP_BENCH_WEIGHTED_SUM_H
#define FLP_BENCH_WEIGHTED_SUM_H
#include "forward.h"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_weighted_sum_cases[];

/* 1 where text begins as a problem of weighted_sum or weighted_sum_backward. */
int flp_weighted_sum_is_case(const char *text);

/* Whether flp_weighted_sum_run takes text, without a device. FLP_BAD_ARGUMENT: it does not. */
flp_status flp_weighted_sum_check_case(const char *text);

/* *results: an array with an object for each baseline, for the results file. FLP_BAD_ARGUMENT: text, or what the baselines do not have: fp16,
 * several dtypes, strides. FLP_INTERNAL: a result is further from fp64 than it may be. */
flp_status flp_weighted_sum_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results);
#endif
