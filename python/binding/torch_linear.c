/* What the linear operators have in common: the inputs that each begins with, shards, and the gradients. */
#include "torch_linear.h"
#include "core/row_buckets.h"
#include <string.h>

int flp_torch_lies_transposed(const flp_torch_value *weight)
{
    bool rows_lie = weight->sizes[1] <= 1 || weight->strides[1] == 1, columns_lie = weight->sizes[0] <= 1 || weight->strides[0] == 1;

    if (rows_lie && (weight->sizes[0] <= 1 || weight->strides[0] >= weight->sizes[1]))
        return 0;
    return columns_lie && (weight->sizes[1] <= 1 || weight->strides[1] >= weight->sizes[0]) ? 1 : -1;
}

int64_t flp_torch_weight_stride(const flp_torch_value *weight, bool transposed)
{
    if (transposed)
        return weight->sizes[1] > 1 ? weight->strides[1] : weight->sizes[0];
    return flp_torch_row_stride(weight);
}

int flp_torch_read_linear(flp_torch_frame *frame, flp_torch_linear *l)
{
    const flp_torch_value *in = frame->inputs, *hidden = &in[HIDDEN], *weight = &in[WEIGHT];
    int transposed;

    memset(l, 0, sizeof(*l));
    if (flp_torch_check_matrix(frame, "hidden", hidden, -1, -1, FLP_TORCH_FLOATS) ||
        flp_torch_check_tensor(frame, "weight", weight, 2, FLP_TORCH_DTYPES(hidden->dtype) & FLP_TORCH_FLOATS))
        return 1;
    l->rows = hidden->sizes[0], l->columns = hidden->sizes[1], l->vocab = weight->sizes[0];
    if (weight->sizes[1] != l->columns)
        return flp_torch_fail(frame, "weight has %lld columns, wanted hidden's %lld", (long long)weight->sizes[1], (long long)l->columns);
    transposed = flp_torch_lies_transposed(weight);
    if (transposed < 0)
        return flp_torch_fail(frame, "weight has strides (%lld, %lld), wanted 1 for one of them", (long long)weight->strides[0], (long long)weight->strides[1]);
    l->transposed = transposed;
    if (flp_torch_check_optional_vector(frame, "bias", &in[BIAS], l->vocab, FLP_TORCH_FLOATS) ||
        flp_torch_check_vector(frame, "target", &in[TARGET], l->rows, FLP_TORCH_INDICES) ||
        flp_torch_check_optional_vector(frame, "row_temperature", &in[ROW_TEMPERATURE], l->rows, FLP_TORCH_F32))
        return 1;
    memset(&l->problem, 0, sizeof(l->problem)); /* its bytes are the plan's key */
    l->problem.dtype = hidden->dtype;
    l->problem.rows = flp_row_buckets_rows(l->rows);
    l->problem.hidden = l->columns;
    l->problem.vocab = l->vocab;
    l->problem.weight_layout = l->transposed ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN;
    l->problem.hidden_stride = flp_torch_row_stride(hidden);
    l->problem.weight_stride = flp_torch_weight_stride(weight, l->transposed);
    l->problem.pointer_alignment = flp_torch_alignment_of(hidden->data, weight->data);
    l->problem.bias_dtype = flp_torch_dtype_of(&in[BIAS]);
    l->problem.target_dtype = in[TARGET].dtype;
    l->problem.softcap = in[SOFTCAP].number;
    l->problem.precision = in[EXACT].integer ? FLP_PRECISION_EXACT : FLP_PRECISION_TENSOR;
    l->problem.backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
    l->args = (flp_linear_logp_args){
        .rows = l->rows,
        .hidden = flp_torch_some(hidden->data),
        .weight = weight->data,
        .bias = flp_torch_data_of(&in[BIAS]),
        .target = flp_torch_some(in[TARGET].data),
        .ignore_index = in[IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? in[IGNORE_INDEX].integer : 0,
        .flags = (in[IGNORE_INDEX].kind == FLP_TORCH_NUMBER ? FLP_IGNORE_INDEX : 0) | (frame->device < 0 ? FLP_CHECK_TARGETS : 0),
        .temperature = flp_torch_given(&in[ROW_TEMPERATURE]) ? 0 : in[TEMPERATURE].number,
        .row_temperature = flp_torch_data_of(&in[ROW_TEMPERATURE]),
        .stream = frame->stream,
    };
    return 0;
}

/* ---- shards of the vocabulary */

int flp_torch_read_shard(flp_torch_frame *frame, int first, flp_torch_linear *l)
{
    const int64_t vocab_first = frame->inputs[first].integer, vocab_total = frame->inputs[first + 1].integer;

    if (vocab_total < 1)
        return flp_torch_fail(frame, "vocab_total is %lld, wanted 1 or more", (long long)vocab_total);
    l->problem.vocab_first = vocab_first, l->problem.vocab_total = vocab_total;
    return 0;
}

int flp_torch_read_partials(flp_torch_frame *frame, const flp_torch_value *partials, int64_t rows, int64_t *ranks)
{
    if (flp_torch_check_matrix(frame, "partials", partials, -1, FLP_PARTIAL_FLOATS, FLP_TORCH_F32))
        return 1;
    *ranks = 1;
    if (rows == 0)
        return 0;
    if (partials->sizes[0] == 0 || partials->sizes[0] % rows != 0 || flp_torch_row_stride(partials) != FLP_PARTIAL_FLOATS)
        return flp_torch_fail(frame, "partials has %lld rows, wanted a multiple of hidden's %lld, in one piece", (long long)partials->sizes[0],
                              (long long)rows);
    *ranks = partials->sizes[0] / rows;
    return 0;
}

/* ---- gradients */

/* A shard's part of grad_hidden is rounded only after the sum over the ranks. */
static flp_dtype grad_hidden_dtype(const flp_torch_linear *l)
{
    return l->problem.vocab_total > 0 ? FLP_F32 : l->problem.dtype;
}

void flp_torch_set_gradients(const flp_torch_frame *frame, const flp_torch_linear *l, const bool wanted[3], flp_linear_logp_backward_problem *problem)
{
    if (wanted[0])
        problem->grad_hidden = grad_hidden_dtype(l), problem->grad_hidden_stride = l->columns;
    if (wanted[1])
        problem->grad_weight = l->problem.dtype, problem->grad_weight_stride = l->transposed ? l->vocab : l->columns;
    if (wanted[2])
        problem->grad_bias = flp_torch_dtype_of(&frame->inputs[BIAS]);
}

int flp_torch_make_gradients(flp_torch_frame *frame, const flp_torch_linear *l, int first, const bool wanted[3], flp_linear_logp_backward_problem *problem,
                             void *data[3])
{
    const flp_torch_value *bias = &frame->inputs[BIAS];

    if (wanted[2] && !flp_torch_given(bias))
        return flp_torch_fail(frame, "the gradient of bias is wanted, and there is no bias");
    if (flp_torch_make_matrix(frame, first, grad_hidden_dtype(l), l->rows, l->columns, false, wanted[0], &data[0]) ||
        flp_torch_make_matrix(frame, first + 1, l->problem.dtype, l->vocab, l->columns, l->transposed, wanted[1], &data[1]) ||
        flp_torch_make_vector(frame, first + 2, flp_torch_given(bias) ? bias->dtype : FLP_F32, l->vocab, wanted[2], &data[2]))
        return 1;
    flp_torch_set_gradients(frame, l, wanted, problem);
    if (wanted[0] && l->rows == 0)
        data[0] = (void *)flp_torch_nothing;
    for (int i = 1; i < 3; i++)
        if (wanted[i] && l->vocab == 0)
            data[i] = (void *)flp_torch_nothing;
    return 0;
}
