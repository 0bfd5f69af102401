/* logits_logp as an operator: the tables of its problems' fields, both directions; the shapes of the launches; its plans' kernels, workspace, description and
 * numerics. */
#include "operators/logits/logits_logp_plan.h"

#include <stddef.h>

#include "base/int64.h"
#include "base/status.h"
#include "core/plan.h"
#include "params/logits_logp.h"

#define AT(field) offsetof(flp_logits_logp_problem, field)
#define BACKWARD_AT(field) offsetof(flp_logits_logp_backward_problem, field)

/* With row_index, the logits may have more rows than the call. So the strides have no rows_at: they are checked for FLP_PROBLEM_ROWS_MAX rows. */
static const flp_field forward[] = { { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
                                     FLP_FIELD_ROWS(AT(rows)),
                                     FLP_FIELD_EXTENT("vocab", AT(vocab), "v"),
                                     { "logits_stride", FLP_FIELD_STRIDE, AT(logits_stride), .prefix = "ls", .value_name = "stride", .columns_at = AT(vocab) },
                                     FLP_FIELD_POINTERS(AT(pointer_alignment)),
                                     FLP_FIELD_TARGETS(AT(target_dtype)),
                                     FLP_FIELD_SOFTCAP(AT(softcap)),
                                     { "argmax", FLP_FIELD_CHOICE, AT(argmax), .words = { [1] = "argmax" }, FLP_FIELD_FLAG },
                                     { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
                                     FLP_FIELD_BACKEND(AT(backend)),
                                     { .name = NULL } };
static const flp_field *const fields[] = { forward, NULL };

static const flp_field backward[] = {
    { "dtype", FLP_FIELD_DTYPE, BACKWARD_AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
    FLP_FIELD_ROWS(BACKWARD_AT(rows)),
    FLP_FIELD_EXTENT("vocab", BACKWARD_AT(vocab), "v"),
    { "logits_stride", FLP_FIELD_STRIDE, BACKWARD_AT(logits_stride), .prefix = "ls", .value_name = "stride", .columns_at = BACKWARD_AT(vocab) },
    { "grad_stride", FLP_FIELD_STRIDE, BACKWARD_AT(grad_stride), .prefix = "gs", .value_name = "stride", .columns_at = BACKWARD_AT(vocab) },
    FLP_FIELD_POINTERS(BACKWARD_AT(pointer_alignment)),
    FLP_FIELD_TARGETS(BACKWARD_AT(target_dtype)),
    FLP_FIELD_SOFTCAP(BACKWARD_AT(softcap)),
    { "entropy", FLP_FIELD_CHOICE, BACKWARD_AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
    { "fused", FLP_FIELD_CHOICE, BACKWARD_AT(fused), .words = { [1] = "fused" }, FLP_FIELD_FLAG },
    FLP_FIELD_BACKEND(BACKWARD_AT(backend)),
    { .name = NULL }
};
const flp_field *const flp_logits_logp_backward_fields[] = { backward, NULL };

enum {
    UNITS_PER_BLOCK = 2, /* rows or parts of rows for each resident block where rows are few, so that all blocks finish at about the same time */
    WARP = 32
};

static int64_t resident(const flp_manifest *kernel, int multiprocessors)
{
    return (int64_t)multiprocessors * kernel->resident_blocks;
}

/* log2 of the number of warps that share a row: the smallest power of two that is not less than the row's segments, or all warps of the block. */
static int choose_team(const flp_manifest *kernel, int64_t segments)
{
    int log2 = 0;

    while ((1 << log2) < segments && (2 << log2) <= kernel->threads / WARP)
        log2++;
    return log2;
}

static int64_t count_segments(const flp_manifest *kernel, int64_t vocab)
{
    return flp_int64_divide_up(vocab, kernel->block_columns);
}

static int64_t teams(const flp_manifest *kernel, int team_log2)
{
    return kernel->threads / WARP >> team_log2;
}

/* The shape of the forward's kernel for any number of rows, at least 1. */
static flp_logits_logp_shape shape_of_rows(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab), blocks = resident(kernel, multiprocessors);
    const int team_log2 = choose_team(kernel, segments);
    int64_t parts = 1;

    if (rows < UNITS_PER_BLOCK * blocks && teams(kernel, team_log2) == 1)
        parts = flp_int64_smaller(flp_int64_divide_up(UNITS_PER_BLOCK * blocks, rows), segments);
    if (parts == 1 && segments > FLP_LOGITS_SHARED_SEGMENTS)
        parts = 2;
    parts = flp_int64_divide_up(segments, flp_int64_divide_up(segments, parts)); /* so that none is empty */
    return (flp_logits_logp_shape){ .segments = (int32_t)segments,
                                    .parts = (int32_t)parts,
                                    .team_log2 = team_log2,
                                    .blocks = (unsigned)flp_int64_smaller(flp_int64_divide_up(rows * parts, teams(kernel, team_log2)), blocks) };
}

/* The shape of the forward's kernel with a cluster for each row. clusters: how many of them the device holds at once. blocks 0: there are more rows than that,
 * or they are too long. */
static flp_logits_logp_shape shape_of_few(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);
    const int fits = segments <= FLP_LOGITS_SHARED_SEGMENTS && rows <= clusters;

    return (flp_logits_logp_shape){ .segments = (int32_t)segments, .parts = 1, .blocks = fits ? (unsigned)(rows * kernel->cluster) : 0 };
}

flp_logits_logp_shape flp_logits_logp_shape_fused(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);
    const int team_log2 = choose_team(kernel, segments);
    const int64_t rows_of_unit = kernel->block_rows ? kernel->block_rows : teams(kernel, team_log2), units = flp_int64_divide_up(rows, rows_of_unit);
    const int fits = segments <= FLP_LOGITS_SHARED_SEGMENTS;

    /* Fewer rows would leave multiprocessors idle. They fit the L2, so it costs little that the other kernels read them twice. */
    if (!fits || (2 * units < clusters && rows_of_unit == 1 && segments > kernel->threads / WARP))
        return (flp_logits_logp_shape){ .segments = (int32_t)segments, .parts = 1 };
    return (flp_logits_logp_shape){
        .segments = (int32_t)segments, .parts = 1, .team_log2 = team_log2, .blocks = (unsigned)(flp_int64_smaller(units, clusters) * kernel->cluster)
    };
}

flp_logits_logp_shape flp_logits_logp_shape_gradient(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);

    return (flp_logits_logp_shape){ .segments = (int32_t)segments,
                                    .parts = 1,
                                    .blocks = (unsigned)flp_int64_smaller(flp_int64_divide_up(rows * segments, kernel->threads / WARP),
                                                                          resident(kernel, multiprocessors)) };
}

void flp_logits_logp_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser, flp_workspace *workspace)
{
    static const char *const steps[] = { "rows", "combine", "gradient" };
    const int64_t number = sizeof(float), sums = rows * segments;
    const struct {
        const char *name;
        int wanted;
        int64_t bytes;
        flp_logits_logp_step last;
    } parts[] = {
        [FLP_LOGITS_PART_PARTIAL] = { "partial", 1, sums * 2 * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_BEST] = { "best", argmax, sums * 2 * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_MOMENT] = { "moment", entropy, sums * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_NORMALISER] = { "normaliser", normaliser, rows * 4 * number, FLP_LOGITS_STEP_GRADIENT },
    };

    *workspace = (flp_workspace){ .steps = steps };
    for (size_t i = 0; rows > 0 && i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i].wanted)
            workspace->part[i] = (flp_workspace_part){ .name = parts[i].name, .bytes = parts[i].bytes, .first = FLP_LOGITS_STEP_ROWS, .last = parts[i].last };
    flp_workspace_lay_out(workspace);
}

flp_status flp_logits_logp_forward_check_manifest(const flp_manifest *manifest)
{
    if (manifest->threads >= 32 && manifest->block_columns >= 1 && manifest->cluster >= 1)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_columns %d, cluster %d; wanted at least 32, 1, 1", manifest->variant,
                           manifest->threads, manifest->block_columns, manifest->cluster);
}

flp_status flp_logits_logp_forward_take(const flp_plan *plan, flp_logits_logp_forward *forward)
{
    flp_status status;

    *forward = (flp_logits_logp_forward){ plan->kernels[FLP_ROLE_ROWS], plan->kernels[FLP_ROLE_COMBINE], plan->kernels[FLP_ROLE_FEW_ROWS] };
    status = flp_logits_logp_forward_check_manifest(&forward->rows->manifest);
    if (status == FLP_OK)
        status = flp_logits_logp_forward_check_manifest(&forward->combine->manifest);
    return status == FLP_OK && forward->few ? flp_logits_logp_forward_check_manifest(&forward->few->manifest) : status;
}

flp_logits_logp_pass flp_logits_logp_forward_choose(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows)
{
    const flp_logits_logp_shape shape = shape_of_rows(&forward->rows->manifest, multiprocessors, vocab, rows);
    flp_logits_logp_shape few = { .blocks = 0 };

    /* Where rows are not cut into parts, the kernel for any number of rows is a single launch, too. */
    if (forward->few && shape.parts > 1)
        few = shape_of_few(&forward->few->manifest, forward->few->clusters, vocab, rows);
    return few.blocks > 0 ? (flp_logits_logp_pass){ forward->few, few } : (flp_logits_logp_pass){ forward->rows, shape };
}

int64_t flp_logits_logp_forward_cut_rows(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows)
{
    int64_t low = 0, high = rows;

    /* If this kernel does not cut the rows, it does not cut more rows either. The fewest rows may have a kernel of their own, which cuts none. */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (shape_of_rows(&forward->rows->manifest, multiprocessors, vocab, middle).parts > 1)
            low = middle;
        else
            high = middle - 1;
    }
    return low > 0 && flp_logits_logp_forward_choose(forward, multiprocessors, vocab, low).shape.parts > 1 ? low : 0;
}

void flp_logits_logp_forward_describe(const flp_logits_logp_forward *forward, flp_text *text)
{
    flp_describe_kernel(text, "rows", &forward->rows->manifest);
    flp_describe_kernel(text, "combine", &forward->combine->manifest);
    if (!forward->few)
        return;
    flp_describe_kernel(text, "few rows", &forward->few->manifest);
    flp_text_append(text, "few rows: up to %d, a cluster of %d each\n", forward->few->clusters, forward->few->manifest.cluster);
}

flp_logits_logp_pass flp_logits_logp_plan_pass(const flp_logits_logp_plan *plan, int64_t rows)
{
    return flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, rows);
}

static flp_status set_up(flp_plan *common)
{
    flp_logits_logp_plan *plan = (flp_logits_logp_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, FLP_LOGITS_LOGP_FORWARD_ROLES, FLP_LOGITS_LOGP_FORWARD_OPTIONAL_ROLES);

    return status == FLP_OK ? flp_logits_logp_forward_take(common, &plan->forward) : status;
}

/* Rows that are not cut into parts need no workspace. */
static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_shape shape = rows > 0 ? flp_logits_logp_plan_pass(plan, rows).shape : (flp_logits_logp_shape){ .parts = 1 };

    flp_logits_logp_lay_out(shape.parts > 1 ? rows : 0, shape.segments, plan->problem.argmax, plan->problem.entropy, 0, workspace);
}

/* Of the two kernels that read rows, one is launched. */
static int launches(const flp_plan *common, flp_role role, int64_t rows)
{
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(flp_logits_logp_plan_of(common), rows > 0 ? rows : 1);

    return (role != FLP_ROLE_ROWS && role != FLP_ROLE_FEW_ROWS) || pass.kernel == common->kernels[role];
}

static int64_t most_rows(const flp_plan *common, int64_t rows)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);

    return flp_logits_logp_forward_cut_rows(&plan->forward, common->device.facts.multiprocessors, plan->problem.vocab, rows);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);

    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s", plan->forward.rows->manifest.numerics);
    else
        flp_text_append(text, "%s", flp_logits_logp_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, plan->problem.rows ? plan->problem.rows : 1);

    flp_logits_logp_forward_describe(&plan->forward, text);
    flp_text_append(text, "launch: %s, %u blocks; %d segments a row of %d logits, in %d parts\n", pass.kernel->manifest.variant, pass.shape.blocks,
                    pass.shape.segments, pass.kernel->manifest.block_columns, pass.shape.parts);
}

const flp_operator flp_logits_logp_operator = {
    FLP_OPERATOR_OF(logits_logp, ),
    .fields = fields,
    .launches = launches,
    .set_up = set_up,
    .lay_out = lay_out,
    .most_rows = most_rows,
    .describe = describe,
    .write_numerics = write_numerics,
};
