/* logits_logp and its gradient. */
#include "torch_tensors.h"
#include "core/row_buckets.h"
#include <string.h>

#define LOGITS "Tensor logits, Tensor target, Tensor? row_temperature, float temperature, float softcap, int? ignore_index, "
enum { L_LOGITS, L_TARGET, L_ROW_TEMPERATURE, L_TEMPERATURE, L_SOFTCAP, L_IGNORE_INDEX, LOGITS_INPUTS };

static int check_logits(flp_torch_frame *frame)
{
    const flp_torch_value *in = frame->inputs;

    return flp_torch_check_matrix(frame, "logits", &in[L_LOGITS], -1, -1, FLP_TORCH_FLOATS) ||
           flp_torch_check_vector(frame, "target", &in[L_TARGET], in[L_LOGITS].sizes[0], FLP_TORCH_INDICES) ||
           flp_torch_check_optional_vector(frame, "row_temperature", &in[L_ROW_TEMPERATURE], in[L_LOGITS].sizes[0], FLP_TORCH_F32);
}

static int ignores_rows(const flp_torch_frame *frame)
{
    return frame->inputs[L_IGNORE_INDEX].kind == FLP_TORCH_NUMBER;
}

/* The fields that both problems have, and both args. The problem's bytes are the plan's key. */
#define FILL_PROBLEM(frame, problem, written)                                           \
    do {                                                                                \
        const flp_torch_value *in_ = (frame)->inputs, *logits_ = &in_[L_LOGITS];        \
        memset(&(problem), 0, sizeof(problem));                                         \
        (problem).dtype = logits_->dtype;                                               \
        (problem).rows = flp_row_buckets_rows(logits_->sizes[0]);                       \
        (problem).vocab = logits_->sizes[1];                                            \
        (problem).logits_stride = flp_torch_row_stride(logits_);                        \
        (problem).pointer_alignment = flp_torch_alignment_of(logits_->data, (written)); \
        (problem).target_dtype = in_[L_TARGET].dtype;                                   \
        (problem).backend = (frame)->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;   \
        (problem).softcap = in_[L_SOFTCAP].number;                                      \
    } while (0)
#define LOGITS_ARGS(frame)                                                                                                          \
    .rows = (frame)->inputs[L_LOGITS].sizes[0], .logits = (frame)->inputs[L_LOGITS].data, .target = (frame)->inputs[L_TARGET].data, \
    .ignore_index = ignores_rows(frame) ? (frame)->inputs[L_IGNORE_INDEX].integer : 0,                                              \
    .flags = (ignores_rows(frame) ? FLP_IGNORE_INDEX : 0u) | ((frame)->device < 0 ? FLP_CHECK_TARGETS : 0u),                        \
    .temperature = flp_torch_given(&(frame)->inputs[L_ROW_TEMPERATURE]) ? 0 : (frame)->inputs[L_TEMPERATURE].number,                \
    .row_temperature = flp_torch_data_of(&(frame)->inputs[L_ROW_TEMPERATURE]), .stream = (frame)->stream

static int logits_logp(flp_torch_frame *frame)
{
    enum { WANTS_ENTROPY = LOGITS_INPUTS, WANTS_ARGMAX };
    const flp_torch_value *in = frame->inputs;
    flp_logits_logp_problem problem;
    flp_logits_logp_args args;
    flp_plan *plan;
    int64_t rows;

    if (check_logits(frame))
        return 1;
    FILL_PROBLEM(frame, problem, NULL);
    problem.argmax = in[WANTS_ARGMAX].integer != 0;
    problem.entropy = in[WANTS_ENTROPY].integer != 0;
    args = (flp_logits_logp_args){ LOGITS_ARGS(frame) };
    rows = args.rows;
    if (flp_torch_make_vector(frame, 0, FLP_F32, rows, true, (void **)&args.logp) || flp_torch_make_vector(frame, 1, FLP_F32, rows, true, (void **)&args.lse) ||
        flp_torch_make_vector(frame, 2, FLP_F32, rows, problem.entropy, (void **)&args.entropy) ||
        flp_torch_make_vector(frame, 3, FLP_I32, rows, problem.argmax, (void **)&args.argmax))
        return 1;
    if (rows == 0)
        return 0;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_LOGITS_LOGP, &problem, &plan) ||
        flp_torch_make_workspace(frame, -1, plan, rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_logits_logp_execute(plan, &args));
}

enum { LOGP = LOGITS_INPUTS, LSE, ENTROPY, G_LOGP, G_LSE, G_ENTROPY }; /* the backward's further inputs */

static int check_gradients(flp_torch_frame *frame, int64_t rows)
{
    const flp_torch_value *in = frame->inputs;

    return flp_torch_check_vector(frame, "logp", &in[LOGP], rows, FLP_TORCH_F32) || flp_torch_check_vector(frame, "lse", &in[LSE], rows, FLP_TORCH_F32) ||
           flp_torch_check_vector(frame, "g_logp", &in[G_LOGP], rows, FLP_TORCH_F32) ||
           flp_torch_check_optional_vector(frame, "g_lse", &in[G_LSE], rows, FLP_TORCH_F32) ||
           flp_torch_check_optional_vector(frame, "g_entropy", &in[G_ENTROPY], rows, FLP_TORCH_F32) ||
           (flp_torch_given(&in[G_ENTROPY]) && flp_torch_check_vector(frame, "entropy", &in[ENTROPY], rows, FLP_TORCH_F32));
}

static int logits_logp_backward(flp_torch_frame *frame)
{
    const flp_torch_value *in = frame->inputs, *logits = &in[L_LOGITS];
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args;
    flp_plan *plan;
    int64_t rows;

    if (check_logits(frame) || check_gradients(frame, logits->sizes[0]))
        return 1;
    rows = logits->sizes[0];
    args = (flp_logits_logp_backward_args){
        LOGITS_ARGS(frame),
        .g_logp = in[G_LOGP].data,
        .g_lse = flp_torch_data_of(&in[G_LSE]),
        .g_entropy = flp_torch_data_of(&in[G_ENTROPY]),
        .lse = in[LSE].data,
        .entropy = flp_torch_given(&in[G_ENTROPY]) ? in[ENTROPY].data : NULL,
        .logp = in[LOGP].data,
    };
    if (flp_torch_make_matrix(frame, 0, logits->dtype, rows, logits->sizes[1], false, true, &args.grad_logits))
        return 1;
    FILL_PROBLEM(frame, problem, args.grad_logits);
    problem.grad_stride = logits->sizes[1];
    problem.entropy = flp_torch_given(&in[G_ENTROPY]);
    if (rows == 0)
        return 0;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_LOGITS_LOGP_BACKWARD, &problem, &plan) ||
        flp_torch_make_workspace(frame, -1, plan, rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_logits_logp_backward_execute(plan, &args));
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_logits_logp = { "logits_logp(" LOGITS "bool entropy, bool argmax) -> (Tensor, Tensor, Tensor, Tensor)", LOGITS_INPUTS + 2, 4,
                                                   logits_logp };

const flp_torch_operator flp_torch_logits_logp_backward = {
    "logits_logp_backward(" LOGITS "Tensor logp, Tensor lse, Tensor? entropy, Tensor g_logp, Tensor? g_lse, Tensor? g_entropy) -> Tensor", LOGITS_INPUTS + 6, 1,
    logits_logp_backward
};
