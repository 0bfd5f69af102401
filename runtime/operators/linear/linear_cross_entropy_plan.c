/* linear_cross_entropy as an operator: the table of its problem's fields, the plans of its two passes, and the loss between them. */
#include "operators/linear/linear_cross_entropy_plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "core/plan.h"
#include "core/context.h"
#include "operators/linear/chunk_tuning.h"
#include "operators/linear/linear_budget.h"
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"

#define AT(field) offsetof(flp_linear_cross_entropy_problem, field)

/* g_lse and g_entropy are up to the loss: check_gradients refuses any value but 0. */
static const flp_field upstream[] = { { "backward.g_lse", FLP_FIELD_CHOICE, AT(backward.g_lse), FLP_FIELD_FLAG },
                                      { "backward.g_entropy", FLP_FIELD_CHOICE, AT(backward.g_entropy), FLP_FIELD_FLAG },
                                      { "backward.with_forward", FLP_FIELD_CHOICE, AT(backward.with_forward), .allowed = FLP_FIELD_ALLOWS(0),
                                        .wanted = "0: it is in the same call" },
                                      { "reserved", FLP_FIELD_CHOICE, AT(reserved), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0" },
                                      { .name = NULL } };
static const flp_field outputs[] = { { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG }, { .name = NULL } };
static const flp_field loss[] = { { "reduction", FLP_FIELD_CHOICE, AT(reduction), .words = { [FLP_REDUCE_SUM] = "sum", [FLP_REDUCE_NONE] = "none" },
                                    .allowed = FLP_FIELD_ALLOWS(FLP_REDUCE_MEAN) | FLP_FIELD_ALLOWS(FLP_REDUCE_SUM) | FLP_FIELD_ALLOWS(FLP_REDUCE_NONE),
                                    .wanted = "FLP_REDUCE_MEAN, FLP_REDUCE_SUM or FLP_REDUCE_NONE" },
                                  { "label_smoothing", FLP_FIELD_CHOICE, AT(label_smoothing), .words = { [1] = "smoothing" }, FLP_FIELD_FLAG },
                                  { "class_weights", FLP_FIELD_DTYPE, AT(class_weights), .prefix = "classes_", FLP_FIELD_FLOAT_OR_NONE },
                                  { "token_weights", FLP_FIELD_CHOICE, AT(token_weights), .words = { [1] = "tokens" }, FLP_FIELD_FLAG },
                                  { "token_loss", FLP_FIELD_NAME, AT(token_loss), .prefix = "loss_", .value_name = "name" },
                                  { .name = NULL } };

static const flp_field *const fields[] = { flp_linear_logp_field_inputs,
                                           outputs,
                                           flp_linear_logp_field_precision,
                                           flp_linear_logp_backward_field_forward,
                                           upstream,
                                           flp_linear_logp_backward_field_gradients,
                                           flp_linear_logp_backward_field_budget,
                                           loss,
                                           flp_linear_logp_field_backend,
                                           NULL };

/* The name by which the generator knows the loss: token_loss, or one of the two cross-entropies. */
static const char *loss_name(const flp_linear_cross_entropy_problem *normal)
{
    if (normal->token_loss[0])
        return normal->token_loss;
    return normal->label_smoothing ? "smoothed_cross_entropy" : "cross_entropy";
}

/* For the loss alone: fields that concern gradients must be 0. */
static flp_status check_without_gradients(const flp_linear_logp_backward_problem *backward)
{
    const struct {
        const char *name;
        int64_t value;
    } fields[] = { { "grad_hidden_stride", backward->grad_hidden_stride },
                   { "grad_weight_stride", backward->grad_weight_stride },
                   { "accumulate", (int64_t)backward->accumulate },
                   { "memory_budget", backward->memory_budget } };

    if (backward->grad_filter_eps != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.grad_filter_eps: got %g, wanted 0: no gradient is asked for", backward->grad_filter_eps);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].value != 0)
            return flp_status_fail(FLP_BAD_ARGUMENT, "backward.%s: got %" PRId64 ", wanted 0: no gradient is asked for", fields[i].name, fields[i].value);
    return FLP_OK;
}

static flp_status check_gradients(flp_linear_cross_entropy_problem *normal)
{
    flp_linear_logp_backward_problem *backward = &normal->backward;
    flp_status status;

    if (backward->g_lse || backward->g_entropy)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.g_lse, backward.g_entropy: got %d, %d, wanted 0, 0: the loss decides", backward->g_lse,
                               backward->g_entropy);
    if (flp_vocab_chunks_have_gradients(backward))
        return flp_linear_logp_backward_problem_check_gradients(backward);
    status = check_without_gradients(backward);
    return status == FLP_OK ? flp_linear_logp_problem_check(&backward->forward) : status;
}

/* The least memory_budget that is possible depends on the token loss, too (plan_work). Fills the loss' name up with zeros. */
static flp_status check_problem(void *filled)
{
    flp_linear_cross_entropy_problem *normal = filled;
    char *name = normal->token_loss;
    const size_t length = strnlen(name, FLP_TOKEN_LOSS_NAME_BYTES);
    flp_status status = check_gradients(normal);

    if (status == FLP_OK)
        status = flp_problem_check_range("memory_budget", normal->backward.memory_budget, 0, INT64_MAX);
    if (status != FLP_OK)
        return status;
    if (length == FLP_TOKEN_LOSS_NAME_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length ||
        (length > 0 && (name[0] < 'a' || name[0] > 'z')))
        return flp_status_fail(FLP_BAD_ARGUMENT, "token_loss: got \"%.*s\", wanted at most %d letters a to z, digits and _, a letter first", (int)length, name,
                               FLP_TOKEN_LOSS_NAME_BYTES - 1);
    if (length > 0 && normal->label_smoothing)
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got 1, wanted 0: %s says what the loss is", name);
    memset(name + length, 0, FLP_TOKEN_LOSS_NAME_BYTES - length);
    return FLP_OK;
}

static flp_linear_cross_entropy_plan *own(flp_plan *common)
{
    return (flp_linear_cross_entropy_plan *)(void *)common;
}

static int is_shard(const flp_linear_cross_entropy_plan *plan)
{
    return plan->problem.backward.forward.vocab_total > 0;
}

/* Why the forward leaves no saved exponentials; NULL where it does. A saved exponential times a factor of its row is the derivative only where the loss has no
 * other terms that differ from one vocabulary entry to the next. */
static const char *no_saved_exp(const flp_linear_cross_entropy_plan *plan)
{
    const int *derivative = plan->program.derivative;

    if (is_shard(plan))
        return "a shard's forward and the rest are two calls";
    if (derivative[FLP_TOKEN_ENTROPY] >= 0 || derivative[FLP_TOKEN_UNIFORM] >= 0)
        return "the loss takes more of a row's logits than its target's and their lse (label smoothing, entropy, uniform)";
    return flp_vocab_chunks_no_saved_exp(&plan->problem.backward);
}

static int wants_entropy(const flp_linear_cross_entropy_plan *plan)
{
    return plan->problem.entropy || plan->program.uses[FLP_TOKEN_ENTROPY];
}

/* Fills in the call's work, with the most splits that a forward may have, and its chunks. */
static flp_status plan_work(flp_linear_cross_entropy_plan *plan)
{
    const flp_linear_logp_backward_problem *normal = &plan->problem.backward;
    const int gradients = flp_vocab_chunks_have_gradients(&plan->problem.backward);
    flp_linear_work *work = &plan->backward.work;
    flp_status status;

    *work = (flp_linear_work){
        .forward = &normal->forward,
        .splits = flp_linear_budget_most_splits(normal->forward.vocab),
        .entropy = wants_entropy(plan),
        .losses = 1,
        .logit_sums = plan->program.uses[FLP_TOKEN_UNIFORM],
        .backward = normal,
        .chunks.saves_exp = gradients && !no_saved_exp(plan),
    };
    if (!gradients)
        return FLP_OK;
    status = flp_linear_budget_check(work);
    if (status == FLP_OK)
        work->chunks = flp_linear_budget_spend(work);
    return status;
}

static flp_status begin(flp_plan *common)
{
    flp_linear_cross_entropy_plan *plan = own(common);
    flp_status status = flp_token_loss_load(common->context, loss_name(&plan->problem), &plan->program);

    return status == FLP_OK ? plan_work(plan) : status;
}

static void hint(const flp_plan *common, char *text)
{
    const flp_linear_work *work = &flp_linear_cross_entropy_plan_of(common)->backward.work;

    flp_vocab_chunks_hint(work->backward, &work->chunks, text);
}

static flp_status take_tuning(flp_plan *common, const char *tuning)
{
    flp_linear_work *work = &own(common)->backward.work;

    return flp_chunk_tuning_apply(work, tuning, &work->chunks);
}

static void offer_tunings(const flp_plan *common, int decides_bits, int64_t most_bytes, flp_text *tunings)
{
    flp_chunk_tuning_offer(&flp_linear_cross_entropy_plan_of(common)->backward.work, decides_bits, most_bytes, tunings);
}

/* ---- the passes' plans ---- */

/* The roles that linear_logp has only for a shard. Its backward has the first of them, too. */
static const flp_role_set shard_roles = FLP_ROLE_SET(SHARD_TARGETS) | FLP_ROLE_SET(MERGE);
static const flp_role_set not_backward = FLP_LINEAR_LOGP_ROLES | FLP_ROLE_SET(MERGE) | FLP_ROLE_SET(MERGE_SUMS) | FLP_ROLE_SET(TOKEN_LOSS);

static flp_status set_up_forward(flp_linear_cross_entropy_plan *plan)
{
    flp_status status;

    plan->forward.problem = plan->problem.backward.forward;
    plan->forward.problem.entropy = wants_entropy(plan);
    plan->forward.common.target_errors = plan->common.target_errors;
    status = flp_plan_set_up_pass(&plan->common, &flp_linear_logp_operator, FLP_LINEAR_LOGP_ROLES | (is_shard(plan) ? shard_roles : 0), &plan->forward.common);
    return status == FLP_OK ? flp_linear_logp_backward_check_forward(&plan->forward, &plan->backward.work) : status;
}

/* The pass has no target_errors, because the forward has counted the bad targets. */
static flp_status set_up_backward(flp_linear_cross_entropy_plan *plan)
{
    plan->backward.problem = plan->problem.backward;
    plan->backward.statistics = flp_tally_at(&plan->common, FLP_TALLY_FILTER);
    plan->backward.no_saved_exp = no_saved_exp(plan);
    plan->backward.problem.g_lse = 1;
    plan->backward.problem.g_entropy = plan->program.derivative[FLP_TOKEN_ENTROPY] >= 0;
    return flp_plan_set_up_pass(&plan->common, &flp_linear_logp_backward_operator, ~not_backward, &plan->backward.common);
}

/* Checks the roles of the loss; the passes check their own. */
static flp_status set_up(flp_plan *common)
{
    flp_linear_cross_entropy_plan *plan = own(common);
    const flp_role_set wanted = FLP_ROLE_SET(TOKEN_LOSS) | (is_shard(plan) ? FLP_ROLE_SET(MERGE_SUMS) : 0);
    flp_status status = flp_plan_check_kernels(common, wanted, ~wanted);

    if (status != FLP_OK)
        return status;
    plan->token_loss = common->kernels[FLP_ROLE_TOKEN_LOSS];
    plan->merge_sums = common->kernels[FLP_ROLE_MERGE_SUMS];
    if (plan->token_loss->manifest.threads < 1)
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d; wanted at least 1", plan->token_loss->manifest.variant,
                               plan->token_loss->manifest.threads);
    status = set_up_forward(plan);
    return status == FLP_OK ? set_up_backward(plan) : status;
}

/* ---- workspace, description, numerics ---- */

static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    flp_linear_workspace_lay_out(&flp_linear_cross_entropy_plan_of(common)->backward.work, rows, workspace);
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);

    flp_linear_logp_operator.describe(&plan->forward.common, text);
    if (plan->merge_sums)
        flp_describe_kernel(text, "sums of the merge", &plan->merge_sums->manifest);
    flp_describe_kernel(text, "loss", &plan->token_loss->manifest);
    flp_linear_logp_backward_operator.describe(&plan->backward.common, text);
    if (flp_vocab_chunks_have_gradients(&plan->problem.backward))
        flp_text_append(text, "flops before these: 2 N V D\n");
    if (plan->backward.work.chunks.row_chunk > 0)
        flp_text_append(text, "rows: %" PRId64 " at a time\n", plan->backward.work.chunks.row_chunk);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);

    if (!flp_plan_on_gpu(common)) {
        flp_linear_cross_entropy_cpu_numerics(plan->problem.backward.forward.dtype, text);
        flp_text_append(text, ";loss_%s", plan->program.identity);
        flp_linear_logp_write_shard(&plan->problem.backward.forward, text);
        return;
    }
    flp_linear_logp_operator.write_numerics(&plan->forward.common, text);
    if (plan->merge_sums)
        flp_text_append(text, ";%s", plan->merge_sums->manifest.numerics);
    flp_text_append(text, ";%s", plan->token_loss->manifest.numerics);
    if (flp_vocab_chunks_have_gradients(&plan->problem.backward)) {
        flp_text_append(text, ";");
        flp_linear_logp_backward_operator.write_numerics(&plan->backward.common, text);
    }
}

const flp_operator flp_linear_cross_entropy_operator = {
    FLP_OPERATOR_OF(linear_cross_entropy, backward.forward.),
    .fields = fields,
    .check = check_problem,
    .stays_on_gpu = 1,
    .begin = begin,
    .hint = hint,
    .take_tuning = take_tuning,
    .offer_tunings = offer_tunings,
    .set_up = set_up,
    .lay_out = lay_out,
    .describe = describe,
    .write_numerics = write_numerics,
};
