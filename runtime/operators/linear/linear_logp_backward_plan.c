/* linear_logp_backward as an operator: the table of its problem's fields, and its plans' kernels, workspace, description and numerics. */
#include "operators/linear/linear_logp_backward_plan.h"

#include <float.h>
#include <inttypes.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/plan.h"
#include "operators/linear/chunk_tuning.h"
#include "operators/linear/linear_budget.h"
#include "operators/linear/linear_logp_cpu.h"
#include "operators/linear/linear_logp_plan.h"

#define AT(field) offsetof(flp_linear_logp_backward_problem, field)

/* Outputs that only the forward writes must be 0 here, so that one problem has one string. */
const flp_field flp_linear_logp_backward_field_forward[] = {
    { "forward.argmax", FLP_FIELD_CHOICE, AT(forward.argmax), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0: only linear_logp itself writes it" },
    { "forward.entropy", FLP_FIELD_CHOICE, AT(forward.entropy), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0: only linear_logp itself writes it" },
    { .name = NULL }
};
const flp_field flp_linear_logp_backward_field_gradients[] = {
    { "grad_hidden", FLP_FIELD_DTYPE, AT(grad_hidden), .prefix = "gh_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_weight", FLP_FIELD_DTYPE, AT(grad_weight), .prefix = "gw_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_bias", FLP_FIELD_DTYPE, AT(grad_bias), .prefix = "gb_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_hidden_stride", FLP_FIELD_STRIDE, AT(grad_hidden_stride), .prefix = "ghs", .value_name = "stride", .rows_at = AT(forward.rows),
      .columns_at = AT(forward.hidden), .dtype_at = AT(grad_hidden), .like_at = AT(forward.hidden_stride) },
    { "grad_weight_stride", FLP_FIELD_STRIDE, AT(grad_weight_stride), .prefix = "gws", .value_name = "stride", .rows_at = AT(forward.vocab),
      .columns_at = AT(forward.hidden), .transposed_at = AT(forward.weight_layout), .dtype_at = AT(grad_weight), .like_at = AT(forward.weight_stride) },
    { "accumulate", FLP_FIELD_BITS, AT(accumulate), .words = { "acc_hidden", "acc_weight", "acc_bias" }, .allowed = 255 },
    { .name = NULL }
};
_Static_assert(FLP_ACCUMULATE_HIDDEN == 1u << 0 && FLP_ACCUMULATE_WEIGHT == 1u << 1 && FLP_ACCUMULATE_BIAS == 1u << 2, "bits in the order of their words");
const flp_field flp_linear_logp_backward_field_budget[] = { { "memory_budget", FLP_FIELD_COUNT, AT(memory_budget), .prefix = "budget", .value_name = "bytes" },
                                                            { "grad_filter_eps", FLP_FIELD_NUMBER, AT(grad_filter_eps), .prefix = "filter",
                                                              .value_name = "number", .least = 0, .most = FLT_MAX, .wanted = "0 or a finite number above" },
                                                            { .name = NULL } };
static const flp_field upstream[] = { { "g_lse", FLP_FIELD_CHOICE, AT(g_lse), .words = { [1] = "g_lse" }, FLP_FIELD_FLAG },
                                      { "g_entropy", FLP_FIELD_CHOICE, AT(g_entropy), .words = { [1] = "g_entropy" }, FLP_FIELD_FLAG },
                                      { .name = NULL } };
static const flp_field with_forward[] = { { "with_forward", FLP_FIELD_CHOICE, AT(with_forward), .words = { [1] = "forward" }, FLP_FIELD_FLAG, .takes_plan = 1 },
                                          { .name = NULL } };

static const flp_field *const fields[] = { flp_linear_logp_field_inputs,
                                           flp_linear_logp_backward_field_forward,
                                           flp_linear_logp_field_precision,
                                           flp_linear_logp_backward_field_gradients,
                                           upstream,
                                           flp_linear_logp_backward_field_budget,
                                           with_forward,
                                           flp_linear_logp_field_backend,
                                           NULL };

static flp_status check_stride(const char *field, flp_dtype dtype, int64_t stride)
{
    if (dtype != FLP_NONE || stride == 0)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted 0: the gradient is not asked for", field, stride);
}

static flp_status check_accumulate(const flp_linear_logp_backward_problem *problem)
{
    const unsigned possible = (problem->grad_hidden ? FLP_ACCUMULATE_HIDDEN : 0u) | (problem->grad_weight ? FLP_ACCUMULATE_WEIGHT : 0u) |
                              (problem->grad_bias ? FLP_ACCUMULATE_BIAS : 0u);

    if (!(problem->accumulate & ~possible))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "accumulate: got 0x%x, wanted no bits but 0x%x, of the gradients asked for", problem->accumulate, possible);
}

flp_status flp_linear_logp_backward_problem_check_gradients(flp_linear_logp_backward_problem *normal)
{
    flp_status status = flp_linear_logp_problem_check(&normal->forward);

    if (status == FLP_OK && normal->forward.vocab_total > 0 && normal->with_forward)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "with_forward: got 1, wanted 0: a shard's rows are merged between the two");

    if (status == FLP_OK && normal->grad_bias != FLP_NONE && normal->forward.bias_dtype == FLP_NONE)
        status =
            flp_status_fail(FLP_BAD_ARGUMENT, "grad_bias: got %s, wanted FLP_NONE: the forward's bias_dtype is FLP_NONE", flp_dtype_name(normal->grad_bias));
    if (status == FLP_OK && normal->grad_hidden == FLP_NONE && normal->grad_weight == FLP_NONE && normal->grad_bias == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden, grad_weight, grad_bias: got FLP_NONE for all, wanted one of them");
    if (status == FLP_OK)
        status = check_accumulate(normal);
    if (status == FLP_OK)
        status = check_stride("grad_hidden_stride", normal->grad_hidden, normal->grad_hidden_stride);
    return status == FLP_OK ? check_stride("grad_weight_stride", normal->grad_weight, normal->grad_weight_stride) : status;
}

/* A memory_budget of 0 is not replaced by the default, which depends on the rows: to dispatch, a problem with a larger bound on the rows is the same one. */
static flp_status check_problem(void *normal)
{
    flp_status status = flp_linear_logp_backward_problem_check_gradients(normal);
    flp_linear_work work;

    if (status != FLP_OK)
        return status;
    work = flp_linear_budget_backward_work(normal);
    return flp_linear_budget_check(&work);
}

/* Parts of the workspace that have rows rounded up to FLP_BACKWARD_ROW_BLOCK must have room for all rows of the last cluster. */
static flp_status check_cluster_rows(const flp_manifest *manifest)
{
    const int rows = manifest->block_rows * manifest->cluster;

    if (rows <= FLP_BACKWARD_ROW_BLOCK)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: block_rows times cluster is %d, wanted at most %d", manifest->variant, rows, FLP_BACKWARD_ROW_BLOCK);
}

/* Checks the numbers by which launches divide: a kernel from a cache brings its own manifest. */
static flp_status check_manifest(const flp_manifest *manifest, int has_tile)
{
    if (manifest->threads >= 1 && manifest->cluster >= 1 && (!has_tile || (manifest->block_rows >= 1 && manifest->block_columns >= 1)))
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, cluster %d, block_rows %d, block_columns %d; wanted at least 1", manifest->variant,
                           manifest->threads, manifest->cluster, manifest->block_rows, manifest->block_columns);
}

/* Checks that each role which the problem needs has a kernel, and that no others have one, except optional roles. */
static flp_status check_kernels(const flp_plan *common)
{
    const flp_linear_logp_backward_problem *problem = &flp_linear_logp_backward_plan_of(common)->problem;
    flp_role_set wanted = FLP_ROLE_SET(VALID_ROWS) | FLP_ROLE_SET(GATHER), optional = 0;

    if (flp_vocab_chunks_have_gradients(problem) && !flp_vocab_chunks_all_saved(problem, &flp_linear_logp_backward_plan_of(common)->work.chunks))
        wanted |= FLP_ROLE_SET(GRAD_LOGITS);
    if (problem->grad_hidden != FLP_NONE)
        wanted |= FLP_ROLE_SET(HIDDEN_PRODUCT) | FLP_ROLE_SET(HIDDEN_FINISH);
    if (flp_linear_logp_backward_plan_of(common)->work.chunks.part_columns > 0)
        wanted |= FLP_ROLE_SET(HIDDEN_SUM);
    if (problem->grad_weight != FLP_NONE)
        wanted |= FLP_ROLE_SET(WEIGHT_PRODUCT) | FLP_ROLE_SET(TARGET_ORDER);
    if (problem->grad_bias != FLP_NONE)
        wanted |= FLP_ROLE_SET(BIAS);
    if (problem->forward.vocab_total > 0)
        wanted |= FLP_ROLE_SET(SHARD_TARGETS) | (flp_vocab_chunks_have_gradients(problem) ? FLP_ROLE_SET(OTHER_SHARDS) : 0);
    if (problem->grad_filter_eps > 0) /* on the path that skips blocks */
        optional |= FLP_ROLE_SET(FILTER);
    if (problem->with_forward)
        optional |= FLP_LINEAR_LOGP_ROLES;
    return flp_plan_check_kernels(common, wanted, optional);
}

static void hint(const flp_plan *common, char *text)
{
    const flp_linear_work *work = &flp_linear_logp_backward_plan_of(common)->work;

    flp_vocab_chunks_hint(work->backward, &work->chunks, text);
}

flp_status flp_linear_logp_backward_check_forward(const flp_linear_logp_plan *forward, flp_linear_work *work)
{
    if (flp_linear_logp_plan_saves_exp(forward) != work->chunks.saves_exp || forward->split.splits > work->splits)
        return flp_status_fail(FLP_NO_VARIANT, "%s has %d splits, wanted at most %d, and a forward that leaves %s", forward->tile->manifest.variant,
                               forward->split.splits, work->splits, work->chunks.saves_exp ? "saved exponentials" : "none");
    work->splits = forward->split.splits;
    return work->chunks.saves_exp ? check_cluster_rows(&forward->tile->manifest) : FLP_OK;
}

/* Fills in the forward's problem, on every path, and the chunks. */
static flp_status begin(flp_plan *common)
{
    flp_linear_logp_backward_plan *plan = (flp_linear_logp_backward_plan *)(void *)common;

    plan->forward.problem = plan->problem.forward;
    plan->forward.problem.entropy = plan->problem.g_entropy;
    plan->work = flp_linear_budget_backward_work(&plan->problem);
    plan->work.chunks = flp_linear_budget_spend(&plan->work);
    return FLP_OK;
}

static flp_status take_tuning(flp_plan *common, const char *tuning)
{
    flp_linear_logp_backward_plan *plan = (flp_linear_logp_backward_plan *)(void *)common;

    return flp_chunk_tuning_apply(&plan->work, tuning, &plan->work.chunks);
}

static void offer_tunings(const flp_plan *common, int decides_bits, int64_t most_bytes, flp_text *tunings)
{
    flp_chunk_tuning_offer(&flp_linear_logp_backward_plan_of(common)->work, decides_bits, most_bytes, tunings);
}

static flp_status set_up_forward(flp_linear_logp_backward_plan *plan)
{
    flp_status status;

    plan->forward.common.target_errors = plan->common.target_errors;
    status = flp_plan_set_up_pass(&plan->common, &flp_linear_logp_operator, FLP_LINEAR_LOGP_ROLES, &plan->forward.common);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_check_forward(&plan->forward, &plan->work);
    plan->no_saved_exp = flp_vocab_chunks_no_saved_exp(&plan->problem);
    return status;
}

static flp_status set_up(flp_plan *common)
{
    flp_linear_logp_backward_plan *plan = (flp_linear_logp_backward_plan *)(void *)common;
    const struct {
        flp_role role;
        int has_tile;
        const flp_kernel **kernel;
    } kernels[] = {
        { FLP_ROLE_VALID_ROWS, 0, &plan->rows },
        { FLP_ROLE_GATHER, 0, &plan->gather },
        { FLP_ROLE_GRAD_LOGITS, 1, &plan->grad_logits },
        { FLP_ROLE_HIDDEN_PRODUCT, 1, &plan->hidden_product },
        { FLP_ROLE_HIDDEN_SUM, 0, &plan->sum },
        { FLP_ROLE_HIDDEN_FINISH, 0, &plan->finish },
        { FLP_ROLE_WEIGHT_PRODUCT, 1, &plan->weight_product },
        { FLP_ROLE_TARGET_ORDER, 0, &plan->target_order },
        { FLP_ROLE_BIAS, 0, &plan->bias },
        { FLP_ROLE_FILTER, 0, &plan->filter },
        { FLP_ROLE_SHARD_TARGETS, 0, &plan->shard_targets },
        { FLP_ROLE_OTHER_SHARDS, 0, &plan->other_shards },
    };
    flp_status status = check_kernels(common);

    if (status == FLP_OK && plan->problem.with_forward)
        status = set_up_forward(plan);
    if (plan->common.target_errors)
        plan->statistics = flp_tally_at(&plan->common, FLP_TALLY_FILTER);

    for (size_t i = 0; status == FLP_OK && i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        const flp_kernel *kernel = *kernels[i].kernel = common->kernels[kernels[i].role];
        status = kernel ? check_manifest(&kernel->manifest, kernels[i].has_tile) : FLP_OK;
    }
    if (status == FLP_OK && plan->grad_logits)
        status = check_cluster_rows(&plan->grad_logits->manifest);
    if (status == FLP_OK && plan->sum)
        status = check_cluster_rows(&plan->hidden_product->manifest);
    return status;
}

static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    flp_linear_workspace_lay_out(&flp_linear_logp_backward_plan_of(common)->work, rows, workspace);
}

/* As on the other paths, a backward uses what its forward has left in the workspace; here this takes fewer bytes for each row. */
static int64_t cpu_workspace_bytes(const flp_plan *common, int64_t rows)
{
    const int64_t bytes = (int64_t)(sizeof(flp_backward_cpu_workspace) + (size_t)rows * sizeof(flp_row_shares));

    if (!flp_linear_logp_backward_plan_of(common)->problem.with_forward || rows == 0)
        return 0;
    return (bytes + FLP_WORKSPACE_ALIGNMENT - 1) / FLP_WORKSPACE_ALIGNMENT * FLP_WORKSPACE_ALIGNMENT;
}

static void describe_optional(flp_text *text, const char *role, const flp_kernel *kernel)
{
    if (kernel)
        flp_describe_kernel(text, role, &kernel->manifest);
}

/* The chunks of grad_hidden's sums where all are of saved exponentials. */
static void describe_saved_chunks(flp_text *text, const flp_linear_logp_backward_problem *problem, const flp_backward_chunks *chunks)
{
    const int64_t vocab = problem->forward.vocab, columns = chunks->lent_columns > 0 ? chunks->lent_columns : flp_int64_larger(vocab, 1);

    flp_text_append(text, "chunks: %" PRId64 " of %" PRId64 " vocabulary entries, of saved exponentials\n", flp_int64_divide_up(vocab, columns), columns);
}

/* The chunks after the saved exponentials. */
static void describe_chunks(flp_text *text, const flp_linear_logp_backward_problem *problem, const flp_linear_work *work)
{
    const flp_backward_chunks *chunks = &work->chunks;
    const int64_t rows = flp_linear_work_chunk_rows(work, problem->forward.rows);
    int64_t own = 0, wide = 0, borrowing = 0, slabs = 0;

    for (int64_t first = chunks->saved_columns; first < problem->forward.vocab; slabs++) {
        const flp_vocab_slab slab = flp_vocab_slab_at(problem, chunks, rows, first);

        borrowing += slab.borrowed >= 0;
        for (int64_t i = 0; i < slab.chunks; i++) {
            const int64_t columns = flp_vocab_chunk_at(problem, chunks, rows, first).columns;

            own += columns != chunks->borrowed_columns;
            wide += columns == chunks->borrowed_columns;
            first += columns;
        }
    }
    flp_text_append(text, "chunks: %" PRId64 " of %" PRId64 " vocabulary entries", own, chunks->columns);
    if (wide > 0)
        flp_text_append(text, ", before them %" PRId64 " of %" PRId64 ", %" PRId64 " of them with their scratch in grad_weight's unwritten part", wide,
                        chunks->borrowed_columns, borrowing);
    if (slabs < own + wide)
        flp_text_append(text, "; all but grad_hidden's products for %" PRId64 " groups of them", slabs);
    flp_text_append(text, "\n");
}

/* The kernels that only a plan with gradients has. */
static void describe_gradient_kernels(flp_text *text, const flp_linear_logp_backward_plan *plan)
{
    describe_optional(text, "logit gradients", plan->grad_logits);
    describe_optional(text, "grad_hidden product", plan->hidden_product);
    describe_optional(text, "sum of grad_hidden's parts", plan->sum);
    describe_optional(text, "grad_hidden", plan->finish);
    describe_optional(text, "grad_weight product", plan->weight_product);
    describe_optional(text, "order of targets", plan->target_order);
    describe_optional(text, "other shards' targets", plan->other_shards);
    describe_optional(text, "grad_bias", plan->bias);
    describe_optional(text, "filter", plan->filter);
    if (plan->problem.grad_filter_eps > 0 && !plan->filter)
        flp_text_append(text, "filter: none, blocks are passed over on the path sm_90a alone\n");
}

static void describe_hidden_product(flp_text *text, const flp_linear_logp_backward_problem *problem, const flp_backward_chunks *chunks)
{
    if (chunks->in_forward)
        flp_text_append(text, "grad_hidden product: in the forward, of %" PRId64 " rows at a time\n", chunks->row_chunk);
    if (chunks->part_columns > 0)
        flp_text_append(text, "grad_hidden product: in %" PRId64 " parts of %" PRId64 " vocabulary entries\n", flp_vocab_chunks_parts(problem, chunks),
                        chunks->part_columns);
    if (chunks->hidden_first)
        flp_text_append(text, "grad_hidden product: before grad_weight's, with rows times their factors in a place of their own\n");
}

/* Which exponentials are saved, and what that spares. */
static void describe_saved_exp(flp_text *text, const flp_linear_logp_backward_plan *plan)
{
    const flp_linear_logp_backward_problem *problem = &plan->problem;
    const flp_backward_chunks *chunks = &plan->work.chunks;
    const flp_vocab_lending none = { .first = -1 };
    const flp_vocab_lending lending = chunks->lent_columns > 0 ? flp_vocab_chunks_lending(problem, chunks, problem->forward.rows) : none;
    const int64_t vocab = problem->forward.vocab, first = flp_int64_smaller(chunks->saved_columns, vocab), with_rest = chunks->saves_rest ? vocab : first;
    const int64_t again = lending.again * chunks->lent_columns + (lending.rest > 0 ? 0 : with_rest - first), saved = with_rest - again;
    const int products = 1 + (problem->grad_hidden != FLP_NONE) + (problem->grad_weight != FLP_NONE);

    if (again > 0)
        flp_text_append(text, "exponentials computed again: %" PRId64 " vocabulary entries, whose rows leave no room in grad_weight\n", again);
    if (saved > 0)
        flp_text_append(text, "saved exponentials: %" PRId64 " vocabulary entries, %" PRId64 " bytes%s\n", saved,
                        flp_linear_work_chunk_rows(&plan->work, problem->forward.rows) * (chunks->lent_columns > 0 ? saved : chunks->saved_columns) *
                            flp_dtype_bytes(problem->forward.dtype),
                        lending.first >= 0 ? " of grad_weight's unwritten part" : "");
    else if (plan->no_saved_exp)
        flp_text_append(text, "saved exponentials: none, %s\n", plan->no_saved_exp);
    if (saved == 0)
        flp_text_append(text, "flops: %d N V D, the logits computed anew\n", 2 * products);
    else
        flp_text_append(text, "flops: %.2f N V D, the logits of %" PRId64 " vocabulary entries computed anew\n",
                        2 * (products - 1) + 2 * (double)(vocab - saved) / (double)vocab, vocab - saved);
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    const flp_linear_logp_backward_problem *problem = &plan->problem;
    const flp_backward_chunks *chunks = &plan->work.chunks;

    if (problem->with_forward)
        flp_linear_logp_operator.describe(&plan->forward.common, text);
    describe_optional(text, "shard's targets", plan->shard_targets);
    flp_describe_kernel(text, "rows", &plan->rows->manifest);
    flp_describe_kernel(text, "gather", &plan->gather->manifest);
    if (flp_vocab_chunks_keep_packed(problem, chunks))
        flp_text_append(text, "valid rows: packed in %" PRId64 " bytes\n",
                        problem->forward.rows * flp_linear_work_packed_stride(&plan->work) * flp_dtype_bytes(problem->forward.dtype));
    if (!flp_vocab_chunks_have_gradients(problem))
        return;
    describe_gradient_kernels(text, plan);
    if (flp_vocab_chunks_all_saved(problem, chunks))
        describe_saved_chunks(text, problem, chunks);
    else
        describe_chunks(text, problem, &plan->work);
    describe_hidden_product(text, problem, chunks);
    describe_saved_exp(text, plan);
}

/* The widths of the chunks belong to the identity, because grad_hidden is summed up chunk by chunk. */
static void write_arithmetic(const flp_plan *common, flp_text *text)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    const flp_backward_chunks *chunks = &plan->work.chunks;

    if (!flp_plan_on_gpu(common)) {
        if (plan->problem.with_forward) {
            flp_linear_logp_cpu_numerics(plan->problem.forward.dtype, text);
            flp_text_append(text, ";");
        }
        flp_linear_logp_backward_cpu_numerics(plan->problem.forward.dtype, text);
        return;
    }
    if (plan->problem.with_forward) {
        flp_linear_logp_operator.write_numerics(&plan->forward.common, text);
        flp_text_append(text, ";");
    }
    flp_text_append(text, "%s", plan->grad_logits ? plan->grad_logits->manifest.numerics : "all_saved");
    if (plan->hidden_product)
        flp_text_append(text, ";%s;chunk%" PRId64 ".%" PRId64 ".%" PRId64, plan->hidden_product->manifest.numerics, chunks->columns, chunks->borrowed_columns,
                        chunks->borrowed_rows);
    if (chunks->saved_columns > 0)
        flp_text_append(text, ";saved%" PRId64 "%s", chunks->saved_columns, chunks->in_forward ? ".in_forward" : "");
    if (chunks->part_columns > 0)
        flp_text_append(text, ".parts%" PRId64, chunks->part_columns);
    if (chunks->lent_columns > 0)
        flp_text_append(text, ".%" PRId64 "%s", chunks->lent_columns, chunks->saves_rest ? ".rest" : "");
    if (plan->weight_product)
        flp_text_append(text, ";%s", plan->weight_product->manifest.numerics);
    if (plan->bias)
        flp_text_append(text, ";%s", plan->bias->manifest.numerics);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    write_arithmetic(common, text);
    flp_linear_logp_write_shard(&flp_linear_logp_backward_plan_of(common)->problem.forward, text);
}

const flp_operator flp_linear_logp_backward_operator = {
    FLP_OPERATOR_OF(linear_logp_backward, forward.),
    .fields = fields,
    .check = check_problem,
    .stays_on_gpu = 1,
    .begin = begin,
    .hint = hint,
    .take_tuning = take_tuning,
    .offer_tunings = offer_tunings,
    .set_up = set_up,
    .lay_out = lay_out,
    .cpu_workspace_bytes = cpu_workspace_bytes,
    .describe = describe,
    .write_numerics = write_numerics,
};
