/* Measures one case of scale: correctness, and speed beside copying the same bytes. */
#ifndef FLP_BENCH_SCALE_H
#define FLP_BENCH_SCALE_H
#include "forward.h"

/* What follows the problem in a case whose factor is 1; in others it is -1. */
#define FLP_SCALE_ONE ":one"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_scale_cases[];

/* 1 where text begins as a problem of scale. */
int flp_scale_is_case(const char *text);

/* Whether flp_scale_run takes text, without a device. FLP_BAD_ARGUMENT: it does not. */
flp_status flp_scale_check_case(const char *text);

/* *result: the case's object for the results file. FLP_BAD_ARGUMENT: text, or a problem with no rows, with strides or with no whole 16 bytes.
 * FLP_INTERNAL: an element differs from the product, rounded once. */
flp_status flp_scale_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result);
#endif
