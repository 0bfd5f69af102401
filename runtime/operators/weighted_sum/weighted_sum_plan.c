/* weighted_sum as an operator: what its plans hold, need and say. */
#include "operators/weighted_sum/weighted_sum_plan.h"

#include <stddef.h>

#include "base/status.h"
#include "operators/weighted_sum/weighted_sum_cpu.h"
#include "core/describe.h"
#include "operators/weighted_sum/weighted_sum_problem.h"

/* Where there are rows enough: blocks that are short, in the order of memory, still long enough to be worth their start. */
enum { ROWS_PER_BLOCK = 32, WAVES = 16 /* blocks for each that the device holds at once, at most */ };

static int64_t divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

unsigned flp_weighted_sum_plan_blocks(const flp_weighted_sum_plan *plan, int64_t rows)
{
    const flp_manifest *manifest = &plan->sum->manifest;
    const int64_t resident = (int64_t)plan->common.device.facts.multiprocessors * manifest->resident_blocks;
    const int64_t teams = divide_up(rows, manifest->block_rows);
    const int64_t blocks = clamp(divide_up(rows, ROWS_PER_BLOCK), resident, WAVES * resident);

    return (unsigned)clamp(blocks, 1, teams < 1 ? 1 : teams);
}

static flp_status set_up(flp_plan *common)
{
    flp_weighted_sum_plan *plan = (flp_weighted_sum_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, FLP_ROLE_SET(SUM), 0);
    const flp_manifest *manifest;

    if (status != FLP_OK)
        return status;
    plan->sum = common->kernels[FLP_ROLE_SUM];
    manifest = &plan->sum->manifest;
    if (manifest->block_rows >= 1 && manifest->resident_blocks >= 1)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: block_rows %d, resident_blocks %d; wanted at least 1", manifest->variant, manifest->block_rows,
                           manifest->resident_blocks);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s", flp_weighted_sum_plan_of(common)->sum->manifest.numerics);
    else
        flp_text_append(text, "%s", flp_weighted_sum_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_weighted_sum_plan *plan = flp_weighted_sum_plan_of(common);
    const flp_manifest *manifest = &plan->sum->manifest;

    flp_describe_kernel(text, "sum", manifest);
    flp_text_append(text, "sum team: %d threads a row, %d rows a block at a time\n", manifest->threads / manifest->block_rows, manifest->block_rows);
    flp_text_append(text, "sum blocks: %u\n", flp_weighted_sum_plan_blocks(plan, plan->problem.rows));
}

const flp_operator flp_weighted_sum_operator = {
    .name = "weighted_sum",
    .problem_bytes = sizeof(flp_weighted_sum_problem),
    .problem_struct = &flp_sized_weighted_sum_problem,
    .rows_at = offsetof(flp_weighted_sum_problem, rows),
    .pointer_alignment_at = offsetof(flp_weighted_sum_problem, pointer_alignment),
    .backend_at = offsetof(flp_weighted_sum_problem, backend),
    .fields = flp_weighted_sum_fields,
    .plan_bytes = sizeof(flp_weighted_sum_plan),
    .problem_at = offsetof(flp_weighted_sum_plan, problem),
    .set_up = set_up,
    .describe = describe,
    .write_numerics = write_numerics,
};
_Static_assert(sizeof(flp_weighted_sum_problem) <= FLP_PROBLEM_BYTES, "FLP_PROBLEM_BYTES is too small");
