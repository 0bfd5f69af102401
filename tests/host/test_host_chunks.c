/* linear_cross_entropy's chunks of the vocabulary on the host machine: blocks of saved exponentials in grad_weight, and chunks that share launches. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "host/budgeted_loss.h"
#include "host/host_linear_cross_entropy.h"
#include "host/host_suite.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "runtime/assertions.h"

/* ---- saved exponentials in grad_weight, in many blocks ---- */

typedef enum { DERIVATIVES, REST_SAVED, REST_AGAIN } rest;

static const struct {
    flp_cross_entropy_case c;
    int blocks;           /* of LENT_COLUMNS columns; as many of them */
    int saved;            /* are saved, */
    int in_workspace;     /* 1: in the workspace, not in grad_weight */
    int scaled_elsewhere; /* 1: rows times their factors are in the workspace, too */
    int at_once;          /* the number of the other blocks that are computed again at once, behind those that are saved */
    int slab;             /* the number of blocks of a slab */
    rest rest;            /* what the other entries of the vocabulary have */
    int early;            /* with REST_AGAIN: the number of blocks that are computed again right behind the forward */
    int on_hopper;        /* 1: on Hopper alone, whose tensor map of the saved exponentials it is about; it takes long */
    int takes_slabs;      /* 1: on Hopper the products take several slabs at once, and those for grad_hidden add block after block */
    int is_wide;          /* 1, with it: grad_hidden's product has the tile of more rows, which both warpgroups share */
} lending[] = {
    { .c = { .gradient = { .name = "lent, all blocks", .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 } } },
      .blocks = 3,
      .saved = 3,
      .slab = 3 },
    { .c = { .gradient = { .name = "lent, all blocks, grad_weight alone",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 },
                           .problem = { .grad_hidden = FLP_NONE, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 3,
      .saved = 3,
      .slab = 3 },
    { .c = { .gradient = { .name = "lent, a slab for each block",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 64, .hidden = 256, .vocab = 4700 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 5,
      .saved = 5,
      .slab = 1 },
    { .c = { .gradient = { .name = "lent, a narrower last slab",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 160, .hidden = 256, .vocab = 7700 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 7,
      .saved = 7,
      .slab = 2,
      .on_hopper = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, grad_weight of several slabs at once",
                           .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 136, .hidden = 512, .vocab = 7310 } },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 9,
      .saved = 9,
      .slab = 1,
      .on_hopper = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, slabs for an fp32 grad_weight, a block computed again",
                           .forward = { .rows = FLP_CASE_IGNORED_ROWS, .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 264, .vocab = 4999 } },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, .grad_bias = FLP_NONE } } },
      .blocks = 6,
      .saved = 5,
      .at_once = 1,
      .slab = 1,
      .on_hopper = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, grad_weight of several slabs without a valid row",
                           .forward = { .rows = FLP_CASE_ALL_IGNORED | FLP_CASE_IGNORED_NAN,
                                        .problem = { .dtype = FLP_BF16, .rows = 136, .hidden = 512, .vocab = 7310 } },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 9,
      .saved = 9,
      .slab = 1,
      .on_hopper = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, one block, fp32 gradients",
                           .forward = { .rows = FLP_CASE_EQUAL_TARGETS,
                                        .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 64, .vocab = 3100, .bias_dtype = FLP_F32 } },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } },
      .blocks = 3,
      .saved = 1,
      .at_once = 1,
      .slab = 1 },
    { .c = { .gradient = { .name = "lent, blocks together computed again",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 128, .vocab = 7100 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 9,
      .saved = 4,
      .at_once = 2,
      .slab = 1 },
    { .c = { .gradient = { .name = "lent, no room in grad_weight", .forward.problem = { .dtype = FLP_BF16, .rows = 100, .hidden = 64, .vocab = 2400 } } },
      .blocks = 3,
      .saved = 1,
      .in_workspace = 1,
      .scaled_elsewhere = 1,
      .at_once = 1,
      .slab = 1 },
    { .c = { .gradient = { .name = "lent, the rest saved", .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 } } },
      .blocks = 3,
      .saved = 3,
      .slab = 5,
      .rest = REST_SAVED },
    { .c = { .gradient = { .name = "lent, the rest saved, fp32 gradients",
                           .forward = { .rows = FLP_CASE_EQUAL_TARGETS,
                                        .problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 64, .vocab = 3100, .bias_dtype = FLP_F32 } },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } },
      .blocks = 1,
      .saved = 1,
      .slab = 5,
      .rest = REST_SAVED },
    { .c = { .gradient = { .name = "lent, the rest saved, in parts of slabs",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 136, .hidden = 512, .vocab = 5400 } } },
      .blocks = 5,
      .saved = 5,
      .slab = 2,
      .rest = REST_SAVED,
      .on_hopper = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, the rest saved, in slabs that are read together",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 136, .hidden = 512, .vocab = 5400 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 5,
      .saved = 5,
      .slab = 2,
      .rest = REST_SAVED,
      .on_hopper = 1,
      .takes_slabs = 1,
      .is_wide = 1 },
    { .c = { .gradient = { .name = "lent, the rest computed again", .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 } } },
      .blocks = 3,
      .saved = 3,
      .slab = 3,
      .rest = REST_AGAIN },
    { .c = { .gradient = { .name = "lent, a block of the rest computed again early",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 } } },
      .blocks = 3,
      .saved = 3,
      .slab = 3,
      .rest = REST_AGAIN,
      .early = 1 },
    { .c = { .gradient = { .name = "lent, an early block of the rest where the rows times their factors would lie",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 200, .hidden = 512, .vocab = 3100 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 3,
      .saved = 3,
      .slab = 2,
      .rest = REST_AGAIN,
      .early = 1,
      .takes_slabs = 1 },
    { .c = { .gradient = { .name = "lent, all of the rest computed again early",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 256, .vocab = 3100 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 3,
      .saved = 3,
      .slab = 3,
      .rest = REST_AGAIN,
      .early = 2 },
    { .c = { .gradient = { .name = "lent, the rest and other blocks computed again",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 40, .hidden = 128, .vocab = 7062 },
                           .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .grad_bias = FLP_NONE } } },
      .blocks = 8,
      .saved = 4,
      .at_once = 2,
      .slab = 1,
      .rest = REST_AGAIN },
    { .c = { .gradient = { .name = "lent, the rest computed again, no room in grad_weight",
                           .forward.problem = { .dtype = FLP_BF16, .rows = 100, .hidden = 64, .vocab = 2400 } } },
      .blocks = 3,
      .saved = 1,
      .in_workspace = 1,
      .scaled_elsewhere = 1,
      .at_once = 1,
      .slab = 1,
      .rest = REST_AGAIN },
};
enum { LENDING = sizeof(lending) / sizeof(*lending), LENT_COLUMNS = 768 };

static int lending_case;

/* The bytes of a narrow chunk's derivatives. */
static int64_t slab_chunk_bytes(const flp_linear_work *work)
{
    return work->forward->rows * FLP_BACKWARD_COLUMNS * flp_dtype_bytes(work->forward->dtype);
}

/* The bytes of a block of saved exponentials. */
static int64_t block_bytes(const flp_linear_work *work)
{
    const int64_t rows = (work->forward->rows + FLP_BACKWARD_ROW_BLOCK - 1) / FLP_BACKWARD_ROW_BLOCK * FLP_BACKWARD_ROW_BLOCK;

    return rows * LENT_COLUMNS * flp_dtype_bytes(work->forward->dtype);
}

/* The rest's rows are not a multiple of FLP_BACKWARD_ROW_BLOCK, as a plan's are: so few have room even where the vocabulary is so small. */
static void save_the_rest(flp_linear_work *work)
{
    work->chunks.saves_rest = lending[lending_case].rest != DERIVATIVES;
    work->chunks.rest_rows = lending[lending_case].rest == REST_SAVED ? work->forward->rows : 0;
    if (work->chunks.saves_rest)
        work->chunks.columns = LENT_COLUMNS;
    if (lending[lending_case].early > 0)
        work->chunks.borrowed_rows = work->forward->rows;
    work->chunks.rest_bytes = (lending[lending_case].early - 1) * block_bytes(work);
}

static const flp_kernel *kernel_of(const flp_plan *plan, const char *variant)
{
    char variants[1][FLP_VARIANT_BYTES];
    const flp_kernel *kernel;

    snprintf(variants[0], sizeof(variants[0]), "%s", variant);
    assert_succeeds(flp_kernel_store_get(plan->context->store, &plan->device, 1, (const char(*)[FLP_VARIANT_BYTES])variants, &kernel));
    assert_int_equal(1, kernel->manifest.takes_slabs);
    return kernel;
}

/* Gives the plan kernels that it chooses itself only for sizes that take too long here. */
static void take_slabs(flp_plan *plan)
{
    flp_linear_logp_backward_plan *backward = &((flp_linear_cross_entropy_plan *)(void *)plan)->backward;
    const flp_kernel **kernels = backward->common.kernels;

    if (!lending[lending_case].takes_slabs || !flp_manifest_takes_maps(&backward->hidden_product->manifest))
        return;
    kernels[FLP_ROLE_HIDDEN_PRODUCT] = backward->hidden_product =
        kernel_of(plan, lending[lending_case].is_wide ? "matrix_product.bf16.bm128.bv256.c2.p4.b_transposed.out_f32.adds.slabs.sm_90a"
                                                      : "matrix_product.bf16.bm128.wg128.bv128.c2.p5.b_transposed.out_f32.adds.slabs.sm_90a");
    kernels[FLP_ROLE_WEIGHT_PRODUCT] = backward->weight_product =
        kernel_of(plan, backward->problem.grad_weight == FLP_F32
                            ? "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_f32.slabs.targets_in_rows.sm_90a"
                            : "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.slabs.targets_in_rows.sm_90a");
}

/* Makes the blocks narrow and more than there may be room for: a plan for such small sizes would have few. */
static void lend_narrow_blocks(flp_plan *plan)
{
    flp_linear_work *work = &((flp_linear_cross_entropy_plan *)(void *)plan)->backward.work;
    flp_vocab_lending lent;

    assert_true(work->chunks.saves_exp && !work->chunks.direct);
    take_slabs(plan);
    work->chunks.lent_columns = LENT_COLUMNS;
    work->chunks.saved_columns = (int64_t)lending[lending_case].blocks * LENT_COLUMNS;
    work->chunks.columns = FLP_BACKWARD_COLUMNS;
    work->chunks.borrowed_columns = 0;
    work->chunks.borrowed_rows = 0; /* room for all chunks in the workspace */
    work->chunks.slab_bytes = 2 * slab_chunk_bytes(work);
    save_the_rest(work);
    plan->workspace_bytes = flp_plan_workspace_bytes(plan, work->forward->rows);
    lent = flp_vocab_chunks_lending(work->backward, &work->chunks, work->forward->rows);
    assert_int_equal(lending[lending_case].saved, lent.blocks);
    assert_int_equal(lending[lending_case].in_workspace, lent.first < 0);
    assert_int_equal(lending[lending_case].slab, lent.slab_blocks);
    assert_int_equal(lending[lending_case].rest == REST_SAVED, lent.rest > 0);
    assert_int_equal(lending[lending_case].early, lent.early);
    assert_true(lending[lending_case].rest == DERIVATIVES || flp_vocab_chunks_rest_blocks(work->backward, &work->chunks) > 0);
    assert_int_equal(lending[lending_case].blocks - lent.blocks, lent.again);
    assert_int_equal(lending[lending_case].scaled_elsewhere, lent.again > 0 && lent.scaled < 0);
    if (lent.again > 0)
        assert_int_equal(lent.blocks + lending[lending_case].at_once,
                         flp_vocab_chunks_again(work->backward, &work->chunks, &lent, work->forward->rows, lent.blocks).end);
}

/* The same plan without rows: all gradients are zeros. */
static void run_without_rows(flp_context *context, const flp_cross_entropy_case *given, int64_t plan_rows, int64_t budget)
{
    const flp_cross_entropy_case c = flp_budgeted_loss_of_rows(given, 0);

    flp_budgeted_loss_run(context, &c, plan_rows, budget, 0);
}

static void run_lending(int compute_capability)
{
    flp_context *context = flp_host_suite_start(compute_capability);

    assert_non_null(context);
    flp_host_linear_cross_entropy_planned = lend_narrow_blocks;
    for (lending_case = 0; lending_case < LENDING; lending_case++) {
        const flp_cross_entropy_case c = flp_budgeted_loss_complete(&lending[lending_case].c);
        const int64_t rows = c.problem.backward.forward.rows, budget = flp_budgeted_loss_least(context, &c, rows);

        if (lending[lending_case].on_hopper && compute_capability != 90)
            continue;
        flp_budgeted_loss_run(context, &c, rows, budget, (uint64_t)lending_case);
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
    { .c = { .gradient = { .name = "slabs, softcap",
                           .forward.problem = { MANY_CHUNKS(FLP_BF16, 40, 256), .softcap = 5 },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      .chunks = 6 },
    { .c = { .gradient = { .name = "slabs, softcap, 100 rows",
                           .forward.problem = { MANY_CHUNKS(FLP_BF16, 100, 384), .softcap = 5 },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      .chunks = 3 },
    { .c = { .gradient = { .name = "slabs, fewer rows",
                           .forward.problem = { MANY_CHUNKS(FLP_BF16, 90, 128), .softcap = 5 },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 } } },
      .chunks = 1,
      .smaller = 1 },
    { .c = { .gradient = { .name = "slabs, bias, fp32 gradients",
                           .forward.problem = { MANY_CHUNKS(FLP_F16, 40, 64), .bias_dtype = FLP_F32 },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32 } } },
      .chunks = 2 },
    { .c = { .gradient = { .name = "slabs, [D, V]",
                           .forward.problem = { MANY_CHUNKS(FLP_F16, 24, 192), .weight_layout = FLP_HIDDEN_VOCAB },
                           .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F16 } } },
      .chunks = 4 },
    { .c = { .gradient = { .name = "slabs, grad_weight alone",
                           .forward.problem = { MANY_CHUNKS(FLP_F32, 24, 64) },
                           .problem = { .grad_hidden = FLP_NONE, .grad_weight = FLP_F32, .grad_bias = FLP_NONE } } },
      .chunks = 5 },
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
        const flp_cross_entropy_case all = flp_budgeted_loss_complete(&slabs[slab_case].c);
        const int64_t rows = all.problem.backward.forward.rows;
        const flp_cross_entropy_case c = flp_budgeted_loss_of_rows(&all, slabs[slab_case].smaller ? rows / 3 : rows);

        flp_budgeted_loss_run(context, &c, rows, 0, (uint64_t)slab_case);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_in_grad_weight_are_read_before_they_are_written_over),
        cmocka_unit_test(chunks_that_share_launches_give_the_same_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
