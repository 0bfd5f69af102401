/* Workspaces on the host machine: under every memory budget, and with fewer rows than the plan's, each part is accessed only in its lifetime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "host/host_device.h"
#include "host/host_linear_cross_entropy.h"
#include "host/host_linear_logp_backward.h"
#include "host/host_suite.h"
#include "host/host_workspace.h"
#include "operators/linear/linear_cross_entropy_plan.h"
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

static flp_cross_entropy_case complete(const flp_cross_entropy_case *given)
{
    flp_cross_entropy_case c = *given;

    flp_gradient_case_complete(0, &c.gradient);
    c.problem.backward = c.gradient.problem;
    return c;
}

static flp_status make_plan(flp_context *context, const flp_cross_entropy_case *c, int64_t rows, int64_t budget, flp_plan **plan)
{
    flp_linear_cross_entropy_problem problem = c->problem;

    *plan = NULL;
    problem.backward.forward.rows = rows;
    problem.backward.memory_budget = budget;
    assert_succeeds(flp_token_loss_define(context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss));
    return flp_linear_cross_entropy_plan_create(context, &problem, plan);
}

/* The least budget, as the message that refuses a smaller one names it. */
static int64_t least_budget(flp_context *context, const flp_cross_entropy_case *c, int64_t rows)
{
    flp_plan *plan;
    long long least = 0;
    const char *at;

    assert_int_equal(FLP_BAD_ARGUMENT, make_plan(context, c, rows, 1, &plan));
    at = strstr(flp_error_message(), "at least ");
    assert_non_null(at);
    assert_int_equal(1, sscanf(at, "at least %lld", &least));
    assert_int_equal(FLP_BAD_ARGUMENT, make_plan(context, c, rows, least - 1, &plan));
    return least;
}

static void run_within(flp_context *context, const flp_cross_entropy_case *given, int64_t plan_rows, int64_t budget, uint64_t seed)
{
    flp_cross_entropy_case c = *given;
    char message[8192] = "";
    flp_plan *plan;

    if (budget > 0) {
        assert_succeeds(make_plan(context, &c, plan_rows, budget, &plan));
        assert_true(flp_plan_workspace_bytes(plan, plan_rows) <= budget);
        flp_plan_destroy(plan);
    }
    c.problem.backward.memory_budget = budget;
    flp_host_suite_begin(seed);
    if (!flp_host_linear_cross_entropy_run(context, &c, plan_rows, message, sizeof(message)))
        fail_msg("%s, budget %lld, plan of %lld rows, seed %llu: %s", c.gradient.name, (long long)budget, (long long)plan_rows, (unsigned long long)seed,
                 message);
}

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
        const flp_cross_entropy_case c = complete(&tight[i].c);
        const int64_t rows = c.problem.backward.forward.rows;
        int64_t least, few;

        if (tight[i].compute_capability != 0 && tight[i].compute_capability != compute_capability)
            continue;
        least = least_budget(context, &c, rows), few = least_budget(context, &c, 300);
        if (flp_host_every() == 1) /* the operator's own cases run without a budget, too */
            run_within(context, &c, rows, 0, (uint64_t)i);
        for (int j = 0; j < BUDGETS; j++)
            if ((j == 0 || (i + j) % flp_host_every() == 0) && !is_left_out(&c, compute_capability, j))
                run_within(context, &c, rows, least + j * (1000 + j * least), (uint64_t)(i + j));
        if (!is_left_out(&c, compute_capability, BUDGETS))
            run_within(context, &c, 300, few, (uint64_t)i); /* a plan for many rows, executed with few */
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

/* ---- saved exponentials in grad_weight, in many blocks ---- */

static const struct {
    flp_cross_entropy_case c;
    int blocks;           /* of LENT_COLUMNS columns; as many of them */
    int saved;            /* are saved, */
    int in_workspace;     /* 1: in the workspace, not in grad_weight */
    int scaled_elsewhere; /* 1: rows times their factors are in the workspace, too */
    int at_once;          /* the number of the other blocks that are computed again at once, behind those that are saved */
    int slab;             /* the number of blocks of a slab */
    int on_hopper;        /* 1: on Hopper alone, whose tensor map of the saved exponentials it is about; it takes long */
} lending[] = {
    { { .gradient = { .name = "lent, all blocks", .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 } } }, 3, 3, 0, 0, 0, 3, 0 },
    { { .gradient = { .name = "lent, all blocks, grad_weight alone",
                      .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 },
                      .problem = { .grad_hidden = FLP_NONE, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      3,
      3,
      0,
      0,
      0,
      3,
      0 },
    { { .gradient = { .name = "lent, a slab for each block",
                      .forward.problem = { .dtype = FLP_BF16, .rows = 64, .hidden = 256, .vocab = 4700 },
                      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      5,
      5,
      0,
      0,
      0,
      1,
      0 },
    { { .gradient = { .name = "lent, a narrower last slab", .forward.problem = { .dtype = FLP_BF16, .rows = 160, .hidden = 256, .vocab = 7700 } } },
      7,
      7,
      0,
      0,
      0,
      2,
      1 },
    { { .gradient = { .name = "lent, one block, fp32 gradients",
                      .forward = { .rows = FLP_CASE_EQUAL_TARGETS,
                                   .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 64, .vocab = 3100, .bias_dtype = FLP_F32 } },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } },
      3,
      1,
      0,
      0,
      1,
      1,
      0 },
    { { .gradient = { .name = "lent, blocks together computed again",
                      .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 128, .vocab = 7100 },
                      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      9,
      4,
      0,
      0,
      2,
      1,
      0 },
    { { .gradient = { .name = "lent, no room in grad_weight", .forward.problem = { .dtype = FLP_BF16, .rows = 100, .hidden = 64, .vocab = 2400 } } },
      3,
      1,
      1,
      1,
      1,
      1,
      0 },
};
enum { LENDING = sizeof(lending) / sizeof(*lending), LENT_COLUMNS = 768 };

static int lending_case;

/* The bytes of a narrow chunk's derivatives. */
static int64_t slab_chunk_bytes(const flp_linear_work *work)
{
    return work->forward->rows * FLP_BACKWARD_COLUMNS * flp_dtype_bytes(work->forward->dtype);
}

/* Makes the blocks narrow and more than there may be room for: a plan for such small sizes would have few. */
static void lend_narrow_blocks(flp_plan *plan)
{
    flp_linear_work *work = &((flp_linear_cross_entropy_plan *)(void *)plan)->backward.work;
    flp_vocab_lending lent;

    assert_true(work->chunks.saves_exp && !work->chunks.direct);
    work->chunks.lent_columns = LENT_COLUMNS;
    work->chunks.saved_columns = (int64_t)lending[lending_case].blocks * LENT_COLUMNS;
    work->chunks.columns = FLP_BACKWARD_COLUMNS;
    work->chunks.borrowed_columns = 0;
    work->chunks.borrowed_rows = 0; /* room for all chunks in the workspace */
    work->chunks.slab_bytes = 2 * slab_chunk_bytes(work);
    plan->workspace_bytes = flp_plan_workspace_bytes(plan, work->forward->rows);
    lent = flp_vocab_chunks_lending(work->backward, &work->chunks, work->forward->rows);
    assert_int_equal(lending[lending_case].saved, lent.blocks);
    assert_int_equal(lending[lending_case].in_workspace, lent.first < 0);
    assert_int_equal(lending[lending_case].slab, lent.slab_blocks);
    assert_int_equal(lending[lending_case].blocks - lent.blocks, lent.again);
    assert_int_equal(lending[lending_case].scaled_elsewhere, lent.again > 0 && lent.scaled < 0);
    if (lent.again > 0)
        assert_int_equal(lent.blocks + lending[lending_case].at_once,
                         flp_vocab_chunks_again(work->backward, &work->chunks, &lent, work->forward->rows, lent.blocks).end);
}

static flp_cross_entropy_case of_rows(const flp_cross_entropy_case *given, int64_t rows)
{
    flp_cross_entropy_case c = *given;

    c.problem.backward.forward.rows = c.gradient.problem.forward.rows = c.gradient.forward.problem.rows = rows;
    return c;
}

/* The same plan without rows: all gradients are zeros. */
static void run_without_rows(flp_context *context, const flp_cross_entropy_case *given, int64_t plan_rows, int64_t budget)
{
    const flp_cross_entropy_case c = of_rows(given, 0);

    run_within(context, &c, plan_rows, budget, 0);
}

static void run_lending(int compute_capability)
{
    flp_context *context = flp_host_suite_start(compute_capability);

    assert_non_null(context);
    flp_host_linear_cross_entropy_planned = lend_narrow_blocks;
    for (lending_case = 0; lending_case < LENDING; lending_case++) {
        const flp_cross_entropy_case c = complete(&lending[lending_case].c);
        const int64_t rows = c.problem.backward.forward.rows, budget = least_budget(context, &c, rows);

        if (lending[lending_case].on_hopper && compute_capability != 90)
            continue;
        run_within(context, &c, rows, budget, (uint64_t)lending_case);
        run_without_rows(context, &c, rows, budget);
    }
    flp_host_linear_cross_entropy_planned = NULL;
    flp_context_destroy(context);
}

static void blocks_in_grad_weight_are_read_before_they_are_written_over(void **state)
{
    (void)state;
    run_lending(90);
    run_lending(80);
}

/* ---- chunks that share launches ---- */

/* The widths of the chunks are lowered, so that there are five of FLP_BACKWARD_COLUMNS and one of 20. */
enum { SLAB_VOCAB = 5 * FLP_BACKWARD_COLUMNS + 20 };
#define MANY_CHUNKS(type, n, d) .dtype = type, .rows = n, .hidden = d, .vocab = SLAB_VOCAB
static const struct {
    flp_cross_entropy_case c;
    int chunks;  /* of a slab */
    int smaller; /* 1: a call of a third of the plan's rows, whose slabs have more chunks */
} slabs[] = {
    { { .gradient = { .name = "slabs, softcap",
                      .forward.problem = { MANY_CHUNKS(FLP_BF16, 40, 256), .softcap = 5 },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      6,
      0 },
    { { .gradient = { .name = "slabs, softcap, 100 rows",
                      .forward.problem = { MANY_CHUNKS(FLP_BF16, 100, 384), .softcap = 5 },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      3,
      0 },
    { { .gradient = { .name = "slabs, fewer rows",
                      .forward.problem = { MANY_CHUNKS(FLP_BF16, 90, 128), .softcap = 5 },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      1,
      1 },
    { { .gradient = { .name = "slabs, bias, fp32 gradients",
                      .forward.problem = { MANY_CHUNKS(FLP_F16, 40, 64), .bias_dtype = FLP_F32 },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } },
      2,
      0 },
    { { .gradient = { .name = "slabs, [D, V]",
                      .forward.problem = { MANY_CHUNKS(FLP_F16, 24, 192), .weight_layout = FLP_HIDDEN_VOCAB },
                      .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F16 } } },
      4,
      0 },
    { { .gradient = { .name = "slabs, grad_weight alone",
                      .forward.problem = { MANY_CHUNKS(FLP_F32, 24, 64) },
                      .problem = { .grad_hidden = FLP_NONE, .grad_weight = FLP_F32, .grad_bias = FLP_NONE } } },
      5,
      0 },
};
enum { SLABS = sizeof(slabs) / sizeof(*slabs) };

static int slab_case;

static void join_narrow_chunks(flp_plan *plan)
{
    flp_linear_work *work = &((flp_linear_cross_entropy_plan *)(void *)plan)->backward.work;
    flp_backward_chunks *chunks = &work->chunks;

    assert_true(!chunks->saves_exp && !chunks->direct); /* which is why grad_hidden is in fp32 */
    chunks->columns = FLP_BACKWARD_COLUMNS;
    chunks->borrowed_columns = 0;
    chunks->slab_bytes = slabs[slab_case].chunks * slab_chunk_bytes(work);
    plan->workspace_bytes = flp_plan_workspace_bytes(plan, work->forward->rows);
    assert_int_equal(slabs[slab_case].chunks, flp_vocab_slab_at(work->backward, chunks, work->forward->rows, 0).chunks);
    assert_true(!slabs[slab_case].smaller || flp_vocab_slab_at(work->backward, chunks, work->forward->rows / 3, 0).chunks > slabs[slab_case].chunks);
}

static void run_slabs(int compute_capability)
{
    flp_context *context = flp_host_suite_start(compute_capability);

    assert_non_null(context);
    flp_host_linear_cross_entropy_planned = join_narrow_chunks;
    for (slab_case = 0; slab_case < SLABS; slab_case++) {
        const flp_cross_entropy_case all = complete(&slabs[slab_case].c);
        const int64_t rows = all.problem.backward.forward.rows;
        const flp_cross_entropy_case c = of_rows(&all, slabs[slab_case].smaller ? rows / 3 : rows);

        run_within(context, &c, rows, 0, (uint64_t)slab_case);
        run_without_rows(context, &c, rows, 0);
    }
    flp_host_linear_cross_entropy_planned = NULL;
    flp_context_destroy(context);
}

static void chunks_that_share_launches_give_the_same_gradients(void **state)
{
    (void)state;
    run_slabs(90);
    run_slabs(80);
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
    const flp_cross_entropy_case c = complete(&given);
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
        { FLP_PART_G_LOGP, FLP_STEP_LOSSES, "no part lives at \"derivatives of rows\"", "\"g_logp\" lives from \"losses\" to \"losses\"" },
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
        cmocka_unit_test(a_part_that_is_read_behind_its_life_is_named),       cmocka_unit_test(every_budget_gives_the_same_gradients_on_hopper),
        cmocka_unit_test(every_budget_gives_the_same_gradients_elsewhere),    cmocka_unit_test(blocks_in_grad_weight_are_read_before_they_are_written_over),
        cmocka_unit_test(chunks_that_share_launches_give_the_same_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
