/* The operators: their schemas, which both ways of registering them read, and what they do with a frame. */
#ifndef FLP_BINDING_TORCH_OPERATORS_H
#define FLP_BINDING_TORCH_OPERATORS_H
#include "torch_frame.h"

enum { FLP_TORCH_OPERATORS = 17 };

typedef struct {
    const char *schema; /* as torch parses it, without the namespace */
    int inputs, outputs;
    int (*run)(flp_torch_frame *frame); /* 0, or frame->error says why not */
} flp_torch_operator;

/* Indexed by the operator's number. */
extern const flp_torch_operator *const flp_torch_operators[FLP_TORCH_OPERATORS];

extern const flp_torch_operator flp_torch_linear_logp;
extern const flp_torch_operator flp_torch_linear_logp_partials;
extern const flp_torch_operator flp_torch_linear_logp_merge;
extern const flp_torch_operator flp_torch_linear_logp_backward;
extern const flp_torch_operator flp_torch_linear_logp_backward_partial;
extern const flp_torch_operator flp_torch_linear_logp_saving;
extern const flp_torch_operator flp_torch_linear_logp_backward_saved;
extern const flp_torch_operator flp_torch_linear_cross_entropy;
extern const flp_torch_operator flp_torch_linear_cross_entropy_accumulate;
extern const flp_torch_operator flp_torch_linear_cross_entropy_partials;
extern const flp_torch_operator flp_torch_linear_cross_entropy_merge;
extern const flp_torch_operator flp_torch_linear_cross_entropy_merge_accumulate;
extern const flp_torch_operator flp_torch_logits_logp;
extern const flp_torch_operator flp_torch_logits_logp_backward;
extern const flp_torch_operator flp_torch_weighted_sum;
extern const flp_torch_operator flp_torch_weighted_sum_backward;
extern const flp_torch_operator flp_torch_scale;

/* Python calls these through ctypes. */
FLP_API int flp_torch_operator_count(void);
FLP_API const char *flp_torch_schema(int op);
FLP_API int flp_torch_run(int op, flp_torch_frame *frame);
#endif
