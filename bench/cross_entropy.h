/* Measures one case of linear_cross_entropy with gradients: correctness, memory, and speed beside cuBLAS's bare products in the requested regimes. */
#ifndef FLP_BENCH_CROSS_ENTROPY_H
#define FLP_BENCH_CROSS_ENTROPY_H
#include "forward.h"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_cross_entropy_bench_cases[];

/* 1 where text begins as a problem of linear_cross_entropy. */
int flp_cross_entropy_is_bench_case(const char *text);

/* Whether flp_cross_entropy_bench_run takes text, without a device. FLP_BAD_ARGUMENT: it does not. */
flp_status flp_cross_entropy_bench_check_case(const char *text);

/* *result: an entry for the results file, with cuBLAS's three products (logits, grad_hidden, grad_weight, all in bf16) as the baseline. FLP_BAD_ARGUMENT:
 * text, or what the baseline does not have. FLP_INTERNAL: a gradient is further from fp64 than it may be. */
flp_status flp_cross_entropy_bench_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result);
#endif
