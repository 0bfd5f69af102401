/* The offsets of saved exponentials on the host machine: a kernel of its own finds them, and they are those that the tile kernel finds, as on portable paths. */
#include <stdlib.h>
#include <string.h>

#include "base/int64.h"
#include "host/budgeted_loss.h"
#include "host/host_linear_cross_entropy.h"
#include "host/host_suite.h"
#include "core/workspace.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_workspace.h"
#include "runtime/assertions.h"

/* Any tile of saved exponentials has at least TILE_ROWS rows in these cases. */
enum { PLAN_ROWS = 2048, MOST_ROWS = 150, TILE_ROWS = 64, UNWRITTEN = 0xff };

static const flp_cross_entropy_case cases[] = {
    { .gradient = { .name = "offsets: one row", .forward = { .problem = { .dtype = FLP_BF16, .rows = 1, .hidden = 200, .vocab = 300 } } } },
    { .gradient = { .name = "offsets: one block", .forward = { .problem = { .dtype = FLP_BF16, .rows = 64, .hidden = 136, .vocab = 300 } } } },
    { .gradient = { .name = "offsets: two blocks, of which the second has a row",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 65, .hidden = 136, .vocab = 700 }, .rows = FLP_CASE_BOUNDARY_TARGETS } } },
    { .gradient = { .name = "offsets: three blocks, temperatures",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 64, .vocab = 300 }, .rows = FLP_CASE_ROW_TEMPERATURES } } },
    { .gradient = { .name = "offsets: ignored rows",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 64, .vocab = 300 }, .rows = FLP_CASE_IGNORED_ROWS } } },
    { .gradient = { .name = "offsets: all ignored",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 64, .vocab = 300 }, .rows = FLP_CASE_ALL_IGNORED } } },
    { .gradient = { .name = "offsets: a vocabulary of less than a tile",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 64, .vocab = 40 }, .rows = FLP_CASE_NAN_ROWS } } },
    { .gradient = { .name = "offsets: bias",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 200, .vocab = 700, .bias_dtype = FLP_F32 },
                                 .bias = FLP_CASE_STEP_200 } } },
    { .gradient = { .name = "offsets: large offsets",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 64, .vocab = 300, .bias_dtype = FLP_F32 }, .bias = FLP_CASE_UP } } },
    { .gradient = { .name = "offsets: masked",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 70, .hidden = 64, .vocab = 700, .bias_dtype = FLP_F32 },
                                 .bias = FLP_CASE_FIRST_MASKED } } },
    { .gradient = { .name = "offsets: [D, V]",
                    .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 136, .vocab = 704, .weight_layout = FLP_HIDDEN_VOCAB } } } },
    { .gradient = { .name = "offsets: [D, V], bias",
                    .forward = { .problem = { .dtype = FLP_BF16,
                                              .rows = 70,
                                              .hidden = 136,
                                              .vocab = 304,
                                              .weight_layout = FLP_HIDDEN_VOCAB,
                                              .bias_dtype = FLP_BF16 },
                                 .bias = FLP_CASE_PLAIN_BIAS } } },
};
enum { CASES = sizeof(cases) / sizeof(*cases) };

/* What the launch has written. is_flagged: whether the flag of a block that has a valid row, or that of all blocks, was not cleared. */
typedef struct {
    float offset[MOST_ROWS];
    int32_t overflow[MOST_ROWS];
    int is_found, is_flagged;
} offsets;

static offsets found;
static int64_t rows;
static int is_apart;

static void note_plan(flp_plan *plan)
{
    flp_linear_cross_entropy_plan *of = (flp_linear_cross_entropy_plan *)plan;

    assert_true(of->backward.work.chunks.saves_exp);
    assert_non_null(of->forward.offsets);
    if (!is_apart)
        of->forward.offsets = NULL;
}

static void watch(const flp_workspace *workspace, int step)
{
    float *offset = flp_workspace_at(workspace, FLP_PART_SAVED_EXP_OFFSET);
    int32_t *overflow = flp_workspace_at(workspace, FLP_PART_OVERFLOW), *block_overflow = flp_workspace_at(workspace, FLP_PART_BLOCK_OVERFLOW);
    const size_t flags = 1 + (size_t)flp_int64_divide_up(rows, TILE_ROWS);

    if (step == FLP_STEP_OFFSETS) {
        memset(offset, UNWRITTEN, (size_t)rows * sizeof(*offset));
        memset(overflow, UNWRITTEN, (size_t)rows * sizeof(*overflow));
        memset(block_overflow, UNWRITTEN, flags * sizeof(*block_overflow));
    } else if (step == FLP_STEP_TILES) {
        memset(&found, 0, sizeof(found));
        memcpy(found.offset, offset, (size_t)rows * sizeof(*offset));
        memcpy(found.overflow, overflow, (size_t)rows * sizeof(*overflow));
        found.is_found = 1;
        for (int64_t i = 0; i < rows; i++) /* of the rows that were written, which are the first */
            found.is_flagged |= !overflow[i] && (block_overflow[0] || block_overflow[1 + i / (2 * TILE_ROWS)]);
    }
}

static void find(flp_context *context, const flp_cross_entropy_case *c, int by_own_kernel, offsets *result)
{
    is_apart = by_own_kernel;
    memset(&found, 0, sizeof(found));
    flp_budgeted_loss_run(context, c, PLAN_ROWS, 0, PLAN_ROWS);
    assert_true(found.is_found && !found.is_flagged);
    *result = found;
}

static void both_kernels_find_the_same(void **state)
{
    flp_context *context = flp_host_suite_start(90);
    offsets own, of_tile;

    (void)state;
    assert_non_null(context);
    flp_host_linear_cross_entropy_planned = note_plan;
    flp_workspace_watcher = watch;
    for (int i = 0; i < CASES; i++) {
        const flp_cross_entropy_case c = flp_budgeted_loss_complete(&cases[i]);

        rows = c.problem.backward.forward.rows;
        assert_in_range(rows, 1, MOST_ROWS);
        find(context, &c, 1, &own);
        find(context, &c, 0, &of_tile);
        assert_memory_equal(own.offset, of_tile.offset, sizeof(own.offset));
        assert_memory_equal(own.overflow, of_tile.overflow, sizeof(own.overflow));
    }
    flp_workspace_watcher = NULL;
    flp_host_linear_cross_entropy_planned = NULL;
    flp_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(both_kernels_find_the_same) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
