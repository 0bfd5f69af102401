/* A vocabulary cut into shards. */
#include "shards.h"

#include <stddef.h>

#include "base/dtype.h"
#include "cpu/convert.h"

const flp_cutting flp_cuttings[FLP_CUTTINGS] = {
    { "one shard", 1, { 0, 16 } },
    { "2 shards", 2, { 0, 8, 16 } },
    { "4 shards", 4, { 0, 4, 8, 12, 16 } },
    { "8 shards", 8, { 0, 2, 4, 6, 8, 10, 12, 14, 16 } },
    { "uneven shards", 4, { 0, 3, 7, 12, 16 } },
    { "empty shards", 7, { 0, 0, 3, 7, 7, 12, 16, 16 } },
};

/* A weight [D, V] of two bytes an entry is cut at even entries only: an odd one lies at no whole word of its row. */
static int64_t cut_at(const flp_linear_logp_problem *whole, int sixteenths)
{
    const int64_t cut = sixteenths * whole->vocab / 16;

    return whole->weight_layout == FLP_HIDDEN_VOCAB && whole->dtype != FLP_F32 && sixteenths < 16 ? cut / 2 * 2 : cut;
}

flp_linear_logp_problem flp_shard_of(const flp_linear_logp_problem *whole, const flp_cutting *cutting, int rank)
{
    flp_linear_logp_problem shard = *whole;

    shard.vocab_total = whole->vocab;
    shard.vocab_first = cut_at(whole, cutting->cut[rank]);
    shard.vocab = cut_at(whole, cutting->cut[rank + 1]) - shard.vocab_first;
    return shard;
}

const void *flp_shard_tensor(const void *whole, const flp_linear_logp_problem *shard, flp_dtype dtype, int64_t step)
{
    return whole && shard->vocab > 0 ? (const char *)whole + shard->vocab_first * step * flp_dtype_bytes(dtype) : NULL;
}

int64_t flp_shard_step(const flp_linear_logp_problem *shard, int64_t stride)
{
    return shard->weight_layout == FLP_HIDDEN_VOCAB ? 1 : stride;
}

flp_linear_logp_args flp_shard_args(const flp_linear_logp_args *whole, const flp_linear_logp_problem *shard, float *partials)
{
    flp_linear_logp_args args = *whole;

    args.weight = flp_shard_tensor(whole->weight, shard, shard->dtype, flp_shard_step(shard, shard->weight_stride));
    args.bias = flp_shard_tensor(whole->bias, shard, shard->bias_dtype, 1);
    args.logp = args.lse = args.entropy = NULL;
    args.argmax = NULL;
    args.partials = partials;
    return args;
}

flp_linear_logp_merge_args flp_shard_merge_args(const flp_linear_logp_args *whole, const float *partials, int ranks)
{
    return (flp_linear_logp_merge_args){ .rows = whole->rows,
                                         .ranks = ranks,
                                         .flags = whole->flags,
                                         .partials = partials,
                                         .target = whole->target,
                                         .ignore_index = whole->ignore_index,
                                         .logp = whole->logp,
                                         .lse = whole->lse,
                                         .entropy = whole->entropy,
                                         .argmax = whole->argmax,
                                         .stream = whole->stream };
}

/* ---- gradients ---- */

flp_linear_logp_backward_problem flp_shard_backward_of(const flp_linear_logp_backward_problem *whole, const flp_cutting *cutting, int rank)
{
    flp_linear_logp_backward_problem shard = *whole;

    shard.forward = flp_shard_of(&whole->forward, cutting, rank);
    if (shard.grad_hidden != FLP_NONE) {
        shard.grad_hidden = FLP_F32;
        shard.grad_hidden_stride = whole->forward.hidden;
        shard.accumulate &= ~(unsigned)FLP_ACCUMULATE_HIDDEN;
    }
    return shard;
}

flp_linear_logp_backward_args flp_shard_backward_args(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args,
                                                      const flp_linear_logp_backward_problem *shard, float *grad_hidden)
{
    const flp_linear_logp_problem *forward = &shard->forward;
    flp_linear_logp_backward_args of = *args;

    of.weight = flp_shard_tensor(args->weight, forward, forward->dtype, flp_shard_step(forward, forward->weight_stride));
    of.bias = flp_shard_tensor(args->bias, forward, forward->bias_dtype, 1);
    of.grad_hidden = shard->grad_hidden != FLP_NONE ? grad_hidden : NULL;
    of.grad_weight = (void *)flp_shard_tensor(args->grad_weight, forward, whole->grad_weight, flp_shard_step(forward, whole->grad_weight_stride));
    of.grad_bias = (void *)flp_shard_tensor(args->grad_bias, forward, whole->grad_bias, 1);
    return of;
}

void flp_shard_sum_hidden(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args, const float *parts, int ranks)
{
    const int64_t columns = whole->forward.hidden, part = args->rows * columns;

    for (int64_t i = 0; args->grad_hidden && i < part; i++) {
        char *to = (char *)args->grad_hidden + (i / columns * whole->grad_hidden_stride + i % columns) * flp_dtype_bytes(whole->grad_hidden);
        float sum = 0, old = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += parts[rank * part + i];
        if (whole->accumulate & FLP_ACCUMULATE_HIDDEN)
            flp_convert_to_f32(whole->grad_hidden, to, &old, 1);
        sum += old;
        flp_convert_from_f32(whole->grad_hidden, &sum, to, 1);
    }
}

/* ---- losses ---- */

flp_linear_cross_entropy_problem flp_shard_cross_entropy_of(const flp_linear_cross_entropy_problem *whole, const flp_cutting *cutting, int rank)
{
    flp_linear_cross_entropy_problem shard = *whole;

    shard.backward = flp_shard_backward_of(&whole->backward, cutting, rank);
    shard.backward.memory_budget = 0; /* a whole's may be too small for a shard */
    return shard;
}

flp_linear_cross_entropy_args flp_shard_cross_entropy_args(const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                                           const flp_linear_cross_entropy_problem *shard, float *partials, float *grad_hidden)
{
    const flp_linear_logp_backward_args gradients = {
        .weight = args->weight, .bias = args->bias, .grad_weight = args->grad_weight, .grad_bias = args->grad_bias
    };
    const flp_linear_logp_backward_args own = flp_shard_backward_args(&whole->backward, &gradients, &shard->backward, grad_hidden);
    flp_linear_cross_entropy_args of = *args;

    of.weight = own.weight;
    of.bias = own.bias;
    of.grad_hidden = own.grad_hidden;
    of.grad_weight = own.grad_weight;
    of.grad_bias = own.grad_bias;
    of.partials = partials;
    return of;
}

/* As a call without a plan has it. */
static int alignment_of(const flp_linear_cross_entropy_args *args, flp_dtype dtype)
{
    const uintptr_t element = (uintptr_t)flp_dtype_bytes(dtype), gradients = (uintptr_t)args->grad_hidden | (uintptr_t)args->grad_weight;
    const uintptr_t addresses = (uintptr_t)args->hidden | (uintptr_t)args->weight | (gradients & (element - 1) ? element : gradients) | 16;

    return (int)(addresses & -addresses);
}

static flp_status merge_by_plan(flp_context *context, const flp_linear_cross_entropy_problem *shard, const flp_linear_cross_entropy_args *args,
                                flp_shard_cross_entropy *run)
{
    flp_linear_cross_entropy_problem problem = *shard;
    flp_plan *plan;
    flp_status status;

    problem.backward.forward.pointer_alignment = alignment_of(args, shard->backward.forward.dtype);
    status = flp_linear_cross_entropy_plan_create(context, &problem, &plan);

    if (status != FLP_OK)
        return status;
    status = flp_linear_cross_entropy_execute_merge(plan, args);
    if (status == FLP_OK)
        status = flp_plan_target_errors(plan, &run->bad_count, &run->bad_first);
    flp_plan_destroy(plan);
    return status;
}

flp_status flp_shard_run_cross_entropy_parts(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                             const flp_cutting *cutting, flp_shard_cross_entropy *run)
{
    const int64_t of_rank = args->rows * FLP_PARTIAL_FLOATS, part = args->rows * whole->backward.forward.hidden;
    flp_status status = FLP_OK;

    for (int rank = 0; status == FLP_OK && rank < cutting->ranks; rank++) {
        const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(whole, cutting, rank);
        const flp_linear_cross_entropy_args of = flp_shard_cross_entropy_args(whole, args, &shard, run->partials + rank * of_rank, NULL);
        status = flp_linear_cross_entropy_partials(context, &shard, &of);
    }
    for (int rank = 0; status == FLP_OK && rank < cutting->ranks; rank++) {
        const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(whole, cutting, rank);
        flp_linear_cross_entropy_args of = flp_shard_cross_entropy_args(whole, args, &shard, run->partials, run->grad_hidden + rank * part);
        of.ranks = cutting->ranks;
        status = merge_by_plan(context, &shard, &of, run);
    }
    return status;
}

flp_status flp_shard_run_cross_entropy(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                       const flp_cutting *cutting, flp_shard_cross_entropy *run)
{
    const flp_linear_logp_backward_args sums = { .rows = args->rows, .grad_hidden = args->grad_hidden };
    const flp_status status = flp_shard_run_cross_entropy_parts(context, whole, args, cutting, run);

    if (status == FLP_OK && whole->backward.grad_hidden != FLP_NONE)
        flp_shard_sum_hidden(&whole->backward, &sums, run->grad_hidden, cutting->ranks);
    return status;
}
