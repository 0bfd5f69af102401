/* One case of the forward and its backward: correctness, memory, and speed beside cuBLAS's bare products in both regimes. */
#ifndef FLP_BENCH_BACKWARD_H
#define FLP_BENCH_BACKWARD_H
#include "forward.h"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_backward_cases[];

/* 1 where text begins as a problem of linear_logp_backward. */
int flp_backward_is_case(const char *text);

/* The problem with its defaults. FLP_BAD_ARGUMENT: text, or what the baselines do not have: another dtype than bf16, a bias, [D, V], strides,
 * upstream gradients beside g_logp. */
flp_status flp_backward_parse(const char *text, flp_linear_logp_backward_problem *problem);

/* *results: an array for the results file: the backward beside three products (logits, grad_hidden, grad_weight), and forward and backward
 * beside four; with_forward these alone, where the saved exponentials hold all the vocabulary beside three. A problem with a filter is measured on the
 * inputs of peaked_inputs.h. FLP_BAD_ARGUMENT: as flp_backward_parse. FLP_INTERNAL: a gradient is further from fp64 than it may be. */
flp_status flp_backward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results);
#endif
