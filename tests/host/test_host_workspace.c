/* Workspaces on the host machine: under every memory budget, and with fewer rows than the plan's, each part is accessed only in its lifetime. */
#include <string.h>

#include "host/budgeted_loss.h"
#include "host/host_linear_cross_entropy.h"
#include "host/host_suite.h"
#include "host/host_workspace.h"
#include "operators/linear/linear_workspace.h"
#include "runtime/assertions.h"

/* ---- linear_cross_entropy under tight budgets ---- */

#define SHAPE(type, n, v) .dtype = type, .rows = n, .hidden = 24, .vocab = v
#define ENTROPY .problem.entropy = 1, .outputs = 1

/* The vocabulary has so many splits, or there are so few rows, that what the forward hands over to its combine is larger than a chunk's derivatives. */
static const struct {
    int compute_capability; /* 0: both */
    flp_cross_entropy_case c;
} tight[] = {
    { 0, { .gradient = { .name = "fp16, one row", .forward.problem = { SHAPE(FLP_F16, 1, 250) } }, ENTROPY } },
    { 90, { .gradient = { .name = "fp16, many entries", .forward.problem = { SHAPE(FLP_F16, 2, 11200) } } } },
    { 80, { .gradient = { .name = "fp32, many entries", .forward.problem = { SHAPE(FLP_F32, 2, 17000) } } } },
    { 0,
      { .gradient = { .name = "bf16 with label smoothing", .forward.problem = { SHAPE(FLP_BF16, 1, 600) } },
        .problem.label_smoothing = 1,
        .label_smoothing = 0.1,
        ENTROPY } },
    { 90, { .gradient = { .name = "bf16 with softcap", .forward.problem = { SHAPE(FLP_BF16, 1, 600), .softcap = 5 } }, ENTROPY } },
    { 0, { .gradient = { .name = "a loss of everything, one row", .forward.problem = { SHAPE(FLP_BF16, 1, 250) } }, .problem.token_loss = "everything" } },
    { 0, { .gradient = { .name = "bf16, saved exponentials", .forward.problem = { SHAPE(FLP_BF16, 40, 1500) } } } },
    { 90,
      { .gradient = { .name = "bf16, saved exponentials, fp32 gradients",
                      .forward.problem = { SHAPE(FLP_BF16, 40, 1500), .bias_dtype = FLP_F32 },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } } },
    { 90,
      { .gradient = { .name = "bf16, filter, fp32 rows",
                      .forward.problem = { SHAPE(FLP_BF16, 40, 1500) },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16, .grad_filter_eps = 1e-9 } },
        ENTROPY } },
};
enum { TIGHT = sizeof(tight) / sizeof(*tight), BUDGETS = 3 };

/* The cases with many entries take as long as all others. If only some cases run, the portable path runs them with their least budget, and Hopper's with the
 * plan for many rows. */
static int is_left_out(const flp_cross_entropy_case *c, int compute_capability, int budget)
{
    return flp_host_every() > 1 && c->gradient.forward.problem.vocab > 10000 && budget != (compute_capability == 90 ? BUDGETS : 0);
}

/* Runs each case under its least budget, and under larger ones, in which other chunks fit. */
static void run_under_budgets(int compute_capability)
{
    flp_context *context = flp_host_suite_start(compute_capability);

    assert_non_null(context);
    for (int i = 0; i < TIGHT; i++) {
        const flp_cross_entropy_case c = flp_budgeted_loss_complete(&tight[i].c);
        const int64_t rows = c.problem.backward.forward.rows;
        int64_t least, few;

        if (tight[i].compute_capability != 0 && tight[i].compute_capability != compute_capability)
            continue;
        least = flp_budgeted_loss_least(context, &c, rows), few = flp_budgeted_loss_least(context, &c, 300);
        if (flp_host_every() == 1) /* the operator's own cases run without a budget, too */
            flp_budgeted_loss_run(context, &c, rows, 0, (uint64_t)i);
        for (int j = 0; j < BUDGETS; j++)
            if ((j == 0 || (i + j) % flp_host_every() == 0) && !is_left_out(&c, compute_capability, j))
                flp_budgeted_loss_run(context, &c, rows, least + j * (1000 + j * least), (uint64_t)(i + j));
        if (!is_left_out(&c, compute_capability, BUDGETS))
            flp_budgeted_loss_run(context, &c, 300, few, (uint64_t)i); /* a plan for many rows, executed with few */
    }
    flp_context_destroy(context);
}

static void every_budget_gives_the_same_gradients_on_hopper(void **state)
{
    (void)state;
    run_under_budgets(90);
}

static void every_budget_gives_the_same_gradients_elsewhere(void **state)
{
    (void)state;
    run_under_budgets(80);
}

/* ---- the poison ---- */

static flp_linear_part wrong_part;
static flp_linear_step wrong_last;

static void watch_with_a_wrong_life(const flp_workspace *workspace, int step)
{
    flp_workspace wrong = *workspace;

    wrong.part[wrong_part].last = (int)wrong_last;
    flp_host_workspace_watch(&wrong, step);
}

/* Runs a small cross-entropy, in which a part's lifetime is said to end with step `last`. It has sums of grad_hidden, since that is not in hidden's dtype. 1:
 * it succeeds. */
static int run_with_a_wrong_life(flp_linear_part part, flp_linear_step last, char *message, size_t bytes)
{
    const flp_cross_entropy_case given = {
        .gradient = { .name = "a wrong life", .forward.problem = { SHAPE(FLP_F16, 5, 600) }, .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F16 } }
    };
    const flp_cross_entropy_case c = flp_budgeted_loss_complete(&given);
    flp_context *context = flp_host_suite_start(90);
    int done;

    wrong_part = part;
    wrong_last = last;
    flp_workspace_watcher = watch_with_a_wrong_life;
    flp_host_suite_begin(1);
    done = flp_host_linear_cross_entropy_run(context, &c, 5, message, bytes);
    flp_context_destroy(context);
    return done;
}

static void a_part_that_is_read_behind_its_life_is_named(void **state)
{
    static const struct {
        flp_linear_part part;
        flp_linear_step last;
        const char *at, *life;
    } lives[] = {
        { FLP_PART_PARTIAL, FLP_STEP_TILES, "no part lives at \"combine\"", "\"partial\" lives from \"tiles\" to \"tiles\"" },
        { FLP_PART_SUMS, FLP_STEP_GATHER, "no part lives at \"grad_hidden product\"",
          "\"sums\" lives from \"gathering for the forward\" to \"gathering for the forward\"" },
        { FLP_PART_G_LOGP, FLP_STEP_LOSSES, "no part lives at \"derivatives of rows\"", "\"g_logp\" lives from \"tiles that overflowed\" to \"losses\"" },
        { FLP_PART_TARGET_ORDER, FLP_STEP_ORDER_TARGETS, "no part lives at \"grad_weight product behind grad_hidden's\"",
          "\"target order\" lives from \"order of targets\"" },
        { FLP_PART_PACKED_INDEX, FLP_STEP_WEIGHT, "no part lives at \"grad_hidden\"", "\"packed index\" lives from \"index of valid rows\"" },
    };
    char message[8192];

    (void)state;
    assert_true(run_with_a_wrong_life(FLP_PART_PARTIAL, FLP_STEP_COMBINE, message, sizeof(message)));
    for (size_t i = 0; i < sizeof(lives) / sizeof(*lives); i++) {
        assert_false(run_with_a_wrong_life(lives[i].part, lives[i].last, message, sizeof(message)));
        assert_non_null(strstr(message, "workspace: "));
        assert_non_null(strstr(message, lives[i].at));
        assert_non_null(strstr(message, lives[i].life));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_that_is_read_behind_its_life_is_named),
        cmocka_unit_test(every_budget_gives_the_same_gradients_on_hopper),
        cmocka_unit_test(every_budget_gives_the_same_gradients_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
