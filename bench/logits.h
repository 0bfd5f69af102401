/* Measures one case of logits_logp, either direction: correctness, and speed beside reading or copying the same bytes in the requested regimes. */
#ifndef FLP_BENCH_LOGITS_H
#define FLP_BENCH_LOGITS_H
#include "base/text.h"
#include "forward.h"

/* The cases that are measured where none are named; ends with NULL. */
extern const char *const flp_logits_cases[];

/* 1 where text begins as a problem of logits_logp or logits_logp_backward. */
int flp_logits_is_case(const char *text);

/* Appends the names of the kernels that a plan of logits_logp, or of its backward, launches for `rows` rows, in order, with " + " between them. GPU paths
 * only. In bench/logits_kernels.c. */
void flp_logits_name_kernels(const flp_plan *plan, int is_backward, int64_t rows, flp_text *names);

/* Whether flp_logits_run takes text, without a device. FLP_BAD_ARGUMENT: it does not. */
flp_status flp_logits_check_case(const char *text);

/* *result: the case's object for the results file. FLP_BAD_ARGUMENT: text, or fp16. FLP_INTERNAL: a row is further from fp64 than it may be. */
flp_status flp_logits_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result);
#endif
