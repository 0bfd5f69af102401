/* linear_cross_entropy on the CPU path: the rows' losses, between the two passes. */
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "base/int64.h"
#include "base/status.h"
#include "cpu/convert.h"
#include "cpu/large_memory.h"
#include "operators/linear/linear_logp_cpu.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/row_set.h"
#include "operators/linear/vocab_chunks.h"
#include "operators/linear/vocab_shard.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SAVED_BYTES ((int64_t)512 << 20)

typedef struct {
    const flp_linear_cross_entropy_problem *problem;
    const flp_linear_logp_problem *forward;
    const flp_cross_entropy_call *call;
    const flp_linear_cross_entropy_args *args;
    const flp_token_program *program;
    flp_linear_logp_args inputs; /* those with which args begins */
    flp_thread_pool *pool;

    float *memory;                             /* holds the following arrays, except those that the caller passes */
    float *logp, *lse, *entropy, *uniform;     /* [N] */
    float *g_logp, *g_lse, *g_entropy, *g_sum; /* [N] */
    flp_row_shares *shares;                    /* [N]: statistics of the valid rows */
    int64_t vocab;                             /* for a shard, that of the whole vocabulary */
    float *class_weights;                      /* [vocab]; NULL: all 1 */
    double class_weight_mean;                  /* sum_v w[v] / vocab */
    flp_saved_logits saved;                    /* data NULL: none */
} job;

/* ---- memory ---- */

static void load_class_weights(job *work, float *to)
{
    int64_t vocab = work->vocab;
    double sum = 0;
    work->class_weight_mean = 1;
    if (work->args->class_weights == NULL)
        return; /* none are requested, or the call has no rows */
    work->class_weights = to;
    flp_convert_to_f32(work->problem->class_weights, work->args->class_weights, to, (size_t)vocab);
    for (int64_t v = 0; v < vocab; v++)
        sum += to[v];
    work->class_weight_mean = sum / (double)vocab;
}

/* From a shard's first entry on: its passes count its entries from 0. */
static const float *own_class_weights(const job *work)
{
    return work->class_weights == NULL ? NULL : work->class_weights + work->forward->vocab_first;
}

/* Allocates memory to save as many logits as the budget allows. Results have the same bits without it, so a failure is no error. */
static void allocate_saved(job *work)
{
    const flp_linear_logp_backward_problem *backward = &work->problem->backward;
    int64_t budget = backward->memory_budget > 0 ? backward->memory_budget : DEFAULT_SAVED_BYTES, chunks, bytes;
    if (!flp_vocab_chunks_have_gradients(backward) || work->forward->vocab_total > 0)
        return;
    chunks = (work->forward->vocab + FLP_CHUNK_COLUMNS - 1) / FLP_CHUNK_COLUMNS;
    bytes = chunks * FLP_CHUNK_COLUMNS * FLP_LANES * (int64_t)sizeof(float);
    work->saved = (flp_saved_logits){ NULL, flp_int64_smaller((work->args->rows + FLP_LANES - 1) / FLP_LANES, budget / bytes), chunks };
    if (work->saved.sets > 0)
        work->saved.data = flp_large_memory_allocate(work->saved.sets, (size_t)bytes);
}

static flp_status prepare(job *work)
{
    const flp_linear_cross_entropy_args *args = work->args;
    int64_t rows = args->rows, classes = args->class_weights != NULL ? work->vocab : 0;
    float *at = work->memory = malloc((size_t)(8 * rows + classes + 1) * sizeof *at);
    work->shares = malloc((size_t)(rows + 1) * sizeof *work->shares);
    if (at == NULL || work->shares == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path: %" PRId64 " rows, %" PRId64 " class weights", rows, classes);
    float **const own[] = { &work->logp, &work->lse, &work->entropy, &work->uniform, &work->g_logp, &work->g_lse, &work->g_entropy, &work->g_sum };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        *own[i] = at + (int64_t)i * rows;
    if (args->logp != NULL)
        work->logp = args->logp;
    if (args->lse != NULL)
        work->lse = args->lse;
    if (args->entropy != NULL)
        work->entropy = args->entropy;
    load_class_weights(work, at + 8 * rows);
    allocate_saved(work);
    return FLP_OK;
}

/* ---- the passes ---- */

static flp_status run_forward(const job *work, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_cross_entropy_args *args = work->args;
    const int *uses = work->program->uses;
    flp_linear_logp_args forward = { .logp = work->logp, .lse = work->lse, .entropy = args->entropy != NULL || uses[FLP_TOKEN_ENTROPY] ? work->entropy : NULL };
    const flp_linear_logp_more more = { .class_weights = work->class_weights,
                                        .shares = work->shares,
                                        .uniform = uses[FLP_TOKEN_UNIFORM] ? work->uniform : NULL,
                                        .saved = work->saved.data ? &work->saved : NULL,
                                        .blanks_others = 1 };
    memcpy(&forward, args, FLP_LINEAR_INPUT_BYTES);
    return flp_linear_logp_cpu(work->pool, work->forward, &forward, &more, bad_count, bad_first);
}

static flp_status run_backward(const job *work)
{
    const flp_linear_cross_entropy_args *args = work->args;
    const int *derivative = work->program->derivative;
    const int entropy = derivative[FLP_TOKEN_ENTROPY] >= 0;
    flp_linear_logp_backward_args backward = {
        .lse = work->lse,
        .logp = work->logp, /* read where there are no shares: a merge's cannot be passed, because their origin is no logit */
        .g_logp = work->g_logp,
        .g_lse = work->g_lse,
        .entropy = entropy ? work->entropy : NULL,
        .g_entropy = entropy ? work->g_entropy : NULL,
        .grad_hidden = args->grad_hidden,
        .grad_weight = args->grad_weight,
        .grad_bias = args->grad_bias,
    };
    const flp_backward_uniform uniform = { .g_sum = work->g_sum, .class_weights = own_class_weights(work) };
    const flp_backward_more more = { .shares = work->forward->vocab_total > 0 ? NULL : work->shares,
                                     .uniform = derivative[FLP_TOKEN_UNIFORM] >= 0 ? &uniform : NULL,
                                     .saved = work->saved.data ? &work->saved : NULL };
    memcpy(&backward, args, FLP_LINEAR_INPUT_BYTES);
    return flp_linear_logp_backward_cpu(work->pool, &work->problem->backward, &backward, &more, NULL, NULL);
}

/* ---- losses ---- */

static flp_row_kind kind_of(const job *work, int64_t i, int64_t *target)
{
    *target = flp_row_set_target(work->forward, &work->inputs, i);
    return flp_row_kind_of(work->forward, &work->inputs, *target);
}

static double token_weight(const job *work, int64_t i)
{
    return work->args->token_weights != NULL ? work->args->token_weights[i] : 1;
}

static double class_weight(const job *work, int64_t target)
{
    return work->class_weights != NULL ? work->class_weights[target] : 1;
}

/* The factor by which the sum of the losses is multiplied. */
static double reduction_factor(const job *work)
{
    double divisor = 0;
    int64_t target;
    if (work->problem->reduction != FLP_REDUCE_MEAN)
        return 1;
    for (int64_t i = 0; i < work->args->rows; i++)
        if (kind_of(work, i, &target) == FLP_ROW_VALID)
            divisor += token_weight(work, i) * class_weight(work, target);
    return divisor == 0 ? 0 : 1 / divisor;
}

/* factor * value, but 0 for a factor of 0 whatever the value is: what a row of weight 0 holds counts for nothing. */
static double scaled(double factor, double value)
{
    return factor == 0 ? 0 : factor * value;
}

/* What a row's loss adds to a sum that is multiplied by `factor`, which is 0 where the rows' weights add up to 0. A bad target's NaN remains. */
static double counted(double factor, double loss)
{
    return factor == 0 && !isnan(loss) ? 0 : loss;
}

static void store_derivatives(const job *work, int64_t i, double factor, const flp_token_result *result)
{
    double uniform = result->derivative[FLP_TOKEN_UNIFORM];
    work->g_logp[i] = (float)scaled(factor, result->derivative[FLP_TOKEN_LOGP]);
    work->g_lse[i] = (float)scaled(factor, result->derivative[FLP_TOKEN_LSE] + uniform * work->class_weight_mean);
    work->g_entropy[i] = (float)scaled(factor, result->derivative[FLP_TOKEN_ENTROPY]);
    work->g_sum[i] = (float)(scaled(-factor, uniform) / (double)work->vocab);
}

/* Returns row i's weighted loss, and stores the derivatives of g_loss * factor * that loss. */
static double row_loss(const job *work, int64_t i, double factor)
{
    const flp_linear_cross_entropy_args *args = work->args;
    const int *uses = work->program->uses;
    flp_token_row row = { .statistic = { 0 } };
    flp_token_result result;
    int64_t target;
    flp_row_kind kind = kind_of(work, i, &target);
    if (kind != FLP_ROW_VALID)
        return kind == FLP_ROW_IGNORED ? 0 : NAN;
    row.statistic[FLP_TOKEN_LOGP] = work->shares[i].logp;
    row.statistic[FLP_TOKEN_LSE] = work->shares[i].lse;
    row.statistic[FLP_TOKEN_CLASS_WEIGHT] = class_weight(work, target);
    if (uses[FLP_TOKEN_ENTROPY])
        row.statistic[FLP_TOKEN_ENTROPY] = work->shares[i].entropy;
    if (uses[FLP_TOKEN_UNIFORM])
        row.statistic[FLP_TOKEN_UNIFORM] = work->uniform[i];
    for (int k = 0; k < work->program->inputs; k++)
        row.input[k] = work->call->input[k][i];
    flp_token_program_run(work->program, work->call->parameter, &row, &result);
    double g_loss = args->g_loss == NULL ? 1 : args->g_loss[work->problem->reduction == FLP_REDUCE_NONE ? i : 0];
    store_derivatives(work, i, g_loss * factor * token_weight(work, i), &result);
    return scaled(token_weight(work, i), result.loss);
}

static void compute_losses(const job *work)
{
    const double factor = reduction_factor(work);
    double sum = 0;
    for (int64_t i = 0; i < work->args->rows; i++) {
        double loss = row_loss(work, i, factor);
        if (work->problem->reduction == FLP_REDUCE_NONE)
            work->args->loss[i] = (float)loss;
        else
            sum += counted(factor, loss);
    }
    if (work->problem->reduction != FLP_REDUCE_NONE)
        work->args->loss[0] = (float)(factor * sum);
}

/* ---- a shard of the vocabulary ---- */

/* Rows that are not valid get empty partials. */
static flp_status leave_partials(const job *work)
{
    flp_linear_logp_problem shard = *work->forward;
    flp_linear_logp_args inputs = { .partials = work->args->partials };
    const flp_linear_logp_more more = { .class_weights = own_class_weights(work), .logit_sums = work->program->uses[FLP_TOKEN_UNIFORM], .blanks_others = 1 };
    shard.entropy = work->problem->entropy || work->program->uses[FLP_TOKEN_ENTROPY];
    memcpy(&inputs, work->args, FLP_LINEAR_INPUT_BYTES);
    return flp_linear_logp_cpu(work->pool, &shard, &inputs, &more, NULL, NULL);
}

static void blank_row(const job *work, int64_t i, flp_row_kind kind, int64_t *bad_count, int64_t *bad_first)
{
    work->logp[i] = kind == FLP_ROW_IGNORED ? 0 : NAN;
    work->lse[i] = work->entropy[i] = 0;
    if (kind == FLP_ROW_BAD)
        flp_row_count_bad(i, bad_count, bad_first);
}

/* Writes the statistics of the rows where a forward without shards writes them. */
static flp_status merge_rows(const job *work, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_partial *parts = (const flp_linear_partial *)(const void *)work->args->partials;
    const int64_t rows = work->args->rows;
    for (int64_t i = 0; i < rows; i++) {
        int64_t target;
        const flp_row_kind kind = kind_of(work, i, &target);
        if (kind != FLP_ROW_VALID) {
            blank_row(work, i, kind, bad_count, bad_first);
            continue;
        }
        const flp_vocab_shard_row merged = flp_vocab_shard_merge(parts + i, (int)work->args->ranks, rows);
        work->shares[i] = merged.shares;
        work->logp[i] = (float)merged.shares.logp;
        work->lse[i] = (float)merged.shares.lse;
        work->entropy[i] = (float)merged.shares.entropy;
        work->uniform[i] = (float)(work->class_weight_mean * merged.shares.lse - merged.logit_sum / (double)work->vocab);
    }
    return FLP_OK;
}

/* ---- calls ---- */

static flp_status begin(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call, job *work)
{
    *work = (job){ .problem = problem, .forward = &problem->backward.forward, .call = call, .args = call->args, .program = call->program, .pool = pool };
    work->vocab = flp_vocab_shard_whole(work->forward);
    memcpy(&work->inputs, work->args, FLP_LINEAR_INPUT_BYTES);
    return prepare(work);
}

static flp_status end(job *work, flp_status status)
{
    free(work->memory);
    free(work->saved.data);
    free(work->shares);
    return status;
}

/* After the rows' statistics: the losses and the gradients. */
static flp_status finish(job *work, flp_status status)
{
    if (status == FLP_OK)
        compute_losses(work);
    if (status == FLP_OK && flp_vocab_chunks_have_gradients(&work->problem->backward))
        status = run_backward(work);
    return end(work, status);
}

flp_status flp_linear_cross_entropy_cpu(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call,
                                        int64_t *bad_count, int64_t *bad_first)
{
    job work;
    flp_status status = begin(pool, problem, call, &work);

    return finish(&work, status == FLP_OK ? run_forward(&work, bad_count, bad_first) : status);
}

flp_status flp_linear_cross_entropy_cpu_partials(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call)
{
    job work;
    flp_status status = begin(pool, problem, call, &work);

    return end(&work, status == FLP_OK ? leave_partials(&work) : status);
}

flp_status flp_linear_cross_entropy_cpu_merge(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call,
                                              int64_t *bad_count, int64_t *bad_first)
{
    job work;
    flp_status status = begin(pool, problem, call, &work);

    return finish(&work, status == FLP_OK ? merge_rows(&work, bad_count, bad_first) : status);
}

void flp_linear_cross_entropy_cpu_numerics(flp_dtype dtype, flp_text *text)
{
    flp_text_append(text, "linear_cross_entropy:cpu3:");
    flp_linear_logp_cpu_numerics(dtype, text);
    flp_text_append(text, ";");
    flp_linear_logp_backward_cpu_numerics(dtype, text);
}
