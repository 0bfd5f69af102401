/* Measures one case of the backward, and of the forward with it: correctness, memory, and speed beside cuBLAS's bare products in the requested regimes. */
#ifndef FLP_BENCH_BACKWARD_H
#define FLP_BENCH_BACKWARD_H
#include "forward.h"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_backward_cases[];

/* 1 where text begins as a problem of linear_logp_backward. */
int flp_backward_is_case(const char *text);

/* Parses a problem, with a temperature behind it or not, and fills in its defaults. FLP_BAD_ARGUMENT: text, or what the baselines do not have: another dtype
 * than bf16, a bias, strides, sums into existing gradients, upstream gradients besides g_logp, or a filter together with a softcap, a temperature or [D, V]. */
flp_status flp_backward_parse(const char *text, flp_linear_logp_backward_problem *problem, flp_temperature *temperature);

/* *results: an array for the results file with two entries: the backward beside three products (logits, grad_hidden, grad_weight), and forward and backward
 * together beside four (the logits twice). A problem with_forward has one entry, forward and backward together, beside three products where the saved
 * exponentials hold the whole vocabulary, else beside four. Without grad_weight there is one product less. A problem with a filter is measured on the inputs
 * of peaked_inputs.h. FLP_BAD_ARGUMENT: as flp_backward_parse. FLP_INTERNAL: a gradient is further from fp64 than it may be. */
flp_status flp_backward_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results);
#endif
