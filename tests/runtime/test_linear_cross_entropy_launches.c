/* The launches of linear_cross_entropy on a GPU: their order, which of them begin beside the end of others, and what they share. */
#include <stdio.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "operator_call.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward_chunk.h"
#include "params/linear_logp_backward.h"
#include "params/matrix_product.h"
#include "params/token_loss.h"

enum { ROWS = 4, HIDDEN = 8, VOCAB = 16 };

/* What a call is given; no kernel runs. */
static _Alignas(256) uint16_t hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], grad_hidden[ROWS * HIDDEN], grad_weight[VOCAB * HIDDEN];
static _Alignas(256) float logp[ROWS], lse[ROWS], loss[ROWS];
static _Alignas(256) int64_t target[ROWS];
static flp_context *context;
static flp_linear_cross_entropy_problem problem;
static flp_linear_cross_entropy_args args;
static flp_plan *plan;
static void *workspace;

OPERATOR_CALL_FUNCTIONS(linear_cross_entropy)
static const operator_call call = OPERATOR_CALL(linear_cross_entropy, problem, args, problem.backward.forward.rows, problem.backward.forward.backend);

static int start_on_gpu(void **state)
{
    (void)state;
    operator_call_current = &call;
    context = fake_call_start(0);
    problem = (flp_linear_cross_entropy_problem){
        .backward = { .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB }, .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16 }
    };
    args = (flp_linear_cross_entropy_args){
        .rows = ROWS,
        .hidden = hidden,
        .weight = weight,
        .target = target,
        .ignore_index = -100,
        .flags = FLP_IGNORE_INDEX,
        .loss = loss,
        .logp = logp,
        .lse = lse,
        .grad_hidden = grad_hidden,
        .grad_weight = grad_weight,
    };
    return operator_call_start_on_gpu();
}

/* Which launch is the first of a kernel whose name holds both; -1: none is. */
static int launch_of(const char *kernel, const char *option)
{
    for (int i = 0; i < fake_driver.launches && i < FAKE_LAUNCHES; i++)
        if (strstr(fake_driver.launch[i].kernel, kernel) && strstr(fake_driver.launch[i].kernel, option))
            return i;
    return -1;
}

/* For so many rows that grad_hidden is one product within the budget. */
static void make_plan_with_room(void)
{
    problem.backward.forward.rows = 8192;
    problem.backward.memory_budget = 1 << 30;
    operator_call_make_plan();
}

static const uint32_t *meetings[FLP_MEETINGS]; /* of the products that were launched */
static int products;

static void note_meetings(const fake_launch *launch)
{
    if (strstr(launch->kernel, "matrix_product"))
        meetings[products++ % FLP_MEETINGS] = ((const flp_matrix_product_params *)launch->parameters[3])->meetings; /* behind three maps */
}

/* Short ones' do not drift apart. */
static void clusters_of_long_products_keep_in_step(void **state)
{
    int64_t least;

    (void)state;
    make_plan_with_room();
    fake_driver.on_launch = note_meetings;
    products = 0;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_true(products == 2 && !meetings[0] && !meetings[1]);
    least = flp_backward_set_least_steps_in_step(1);
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    flp_backward_set_least_steps_in_step(least);
    assert_true(products == 4 && meetings[0] && meetings[1] && meetings[0] != meetings[1]); /* each its own */
    fake_driver.on_launch = NULL;
}

/* The launches of the chunks: derivatives or exponentials that are computed again, grad_hidden's and grad_weight's products (d, e, h, w), the head start of
 * each, and when it waits for the one before. */
typedef struct {
    char kind;
    int workers, tiles, wait;
    int columns, parts, slab_columns; /* of the vocabulary, of a product */
} started;
static started starts[128];
static int start_count;

static void note_start(const fake_launch *launch)
{
    started *to = &starts[start_count];

    if (strstr(launch->kernel, "grad_logits")) {
        const flp_grad_logits_params *params = launch->parameters[3]; /* behind three maps */
        *to = (started){ 'd', params->head_workers, params->head_tiles, params->pdl_wait_in_epilogue, 0, 0, 0 };
    } else if (strstr(launch->kernel, "matrix_product")) {
        const flp_matrix_product_params *params = launch->parameters[3];
        const int is_weight = strstr(launch->kernel, "targets_in_rows") != NULL;
        *to =
            (started){ is_weight ? 'w' : 'h', params->head_workers, params->head_tiles, params->pdl_wait_in_epilogue, is_weight ? params->rows : params->inner,
                       params->parts,         params->slab_columns };
    } else if (strstr(launch->kernel, "save_exp") && ((const flp_linear_logp_params *)launch->parameters[3])->phase == FLP_SAVE_EXP_BLOCK) {
        *to = (started){ .kind = 'e' };
    } else {
        return;
    }
    if (start_count < 127)
        start_count++;
}

/* Notes the launches of a step at so many rows. */
static void note_step(int64_t rows)
{
    problem.backward.forward.rows = args.rows = rows;
    problem.backward.forward.hidden = 4096;
    problem.backward.forward.vocab = 128256;
    operator_call_make_plan();
    fake_driver.on_launch = note_start;
    start_count = 0;
    fake_driver.launches = 0;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    fake_driver.on_launch = NULL;
}

/* The second chunk of derivatives of a step at so many rows, and its products. With a softcap no exponentials are saved, and there are many chunks. */
static const started *second_chunk(int64_t rows)
{
    int chunks = 0, i = 0;

    problem.backward.forward.softcap = 30;
    note_step(rows);
    while (i < start_count && !(starts[i].kind == 'd' && ++chunks == 2))
        i++;
    assert_in_range(i, 1, start_count - 3);
    return &starts[i];
}

static void assert_start(char kind, int workers, int tiles, started actual)
{
    assert_int_equal(kind, actual.kind);
    assert_int_equal(workers, actual.workers);
    assert_int_equal(tiles, actual.tiles);
}

/* Of an H200's 66 clusters grad_hidden's 512 tiles leave 16 idle; grad_weight's 528 but for those 16 leave as many, 32 blocks. At 16384 rows 1024 tiles
 * leave 32 idle, for less than one of grad_weight's. */
static void who_is_idle_begins_with_the_next_launch(void **state)
{
    const started *chunk = second_chunk(8192);

    (void)state;
    assert_start('d', 32, 2, chunk[0]);
    assert_start('h', 0, 0, chunk[1]);
    assert_start('w', 16, 1, chunk[2]);
    chunk = second_chunk(16384);
    assert_start('d', 64, 2, chunk[0]);
    assert_start('w', 0, 0, chunk[1]);
    assert_start('h', 0, 0, chunk[2]);
}

/* From launch `at` on there are `count` of grad_hidden's products, of which the first waits as said, and the others before they add. Returns where they end. */
static int assert_hidden_products(int at, int count, int first_wait)
{
    assert_in_range(at + count, 0, start_count);
    for (int i = at; i < at + count; i++) {
        assert_start('h', 0, 0, starts[i]);
        assert_int_equal(i == at ? first_wait : FLP_PDL_WAIT_BEFORE_STORE, starts[i].wait);
    }
    return at + count;
}

enum { BLOCKS = 19, REST = 2 /* blocks of saved exponentials */ };

static int gathers(void)
{
    return operator_call_launches_of("flp_linear_logp_backward_gather_");
}

/* At 64 rows grad_hidden's 32 tiles of a block leave more than half of the 132 clusters idle: all blocks' products come first, each beside those before it. One
 * product computes grad_weight of all blocks but the rest's, beside the last 672 % 132 = 12 of these tiles, which leave 60 of its 66 clusters; another that of
 * the rest, over which the exponentials lay. Rows are gathered, the rest moved, rows scaled. */
static void products_of_few_rows_begin_with_grad_hidden(void **state)
{
    int at;

    (void)state;
    note_step(64);
    at = assert_hidden_products(0, BLOCKS + REST, FLP_PDL_WAIT_FIRST);
    assert_start('w', 60, 8, starts[at]);
    assert_int_equal(FLP_PDL_WAIT_LAST, starts[at].wait);
    assert_start('w', 0, 0, starts[at + 1]);
    assert_int_equal(FLP_PDL_WAIT_BEFORE_STORE, starts[at + 1].wait);
    assert_int_equal(at + 2, start_count);
    assert_int_equal(3, gathers());
    assert_contains(flp_plan_describe(plan), "chunks: 21 of 6144 vocabulary entries, of saved exponentials\n");
    assert_contains(flp_plan_describe(plan), "saved exponentials: 128256 vocabulary entries, 16416768 bytes of grad_weight's unwritten part\n");
}

enum { BLOCK = 6144 /* columns */ };

static void assert_slabs(int at, char kind, int wait, int columns, int parts, int slab_columns)
{
    assert_in_range(at, 0, start_count - 1);
    assert_int_equal(kind, starts[at].kind);
    assert_int_equal(wait, starts[at].wait);
    assert_int_equal(columns, starts[at].columns);
    assert_int_equal(slab_columns, starts[at].slab_columns);
    if (kind == 'h')
        assert_int_equal(parts, starts[at].parts);
}

/* At 1024 rows grad_weight has room for three slabs of exponentials, of 7 blocks each, of which the last has the rest's. One product adds all of them to
 * grad_hidden's sums, block by block. grad_weight's begins on the 4 of 66 clusters to which its 128 tiles give no second one, and takes two slabs at once,
 * which lie behind all that they write. */
static void blocks_of_few_rows_share_launches(void **state)
{
    const int vocab = 128256;

    (void)state;
    note_step(1024);
    assert_slabs(0, 'h', FLP_PDL_WAIT_FIRST, vocab, BLOCKS + REST, 7 * BLOCK);
    assert_slabs(1, 'w', FLP_PDL_WAIT_LAST, 14 * BLOCK, 0, 7 * BLOCK);
    assert_int_equal(4, starts[1].workers);
    assert_slabs(2, 'w', FLP_PDL_WAIT_BEFORE_STORE, 5 * BLOCK, 0, 5 * BLOCK);
    assert_slabs(3, 'w', FLP_PDL_WAIT_BEFORE_STORE, vocab - BLOCKS * BLOCK, 0, vocab - BLOCKS * BLOCK);
    assert_int_equal(4, start_count);
    assert_int_equal(3, gathers());
}

/* At 1536 rows the second of two waves of grad_hidden's tiles would leave most clusters without one, so that each block has a product of its own. */
static void blocks_in_waves_that_are_not_full_have_launches_of_their_own(void **state)
{
    int slabs = 0, hidden = 0;

    (void)state;
    note_step(1536);
    assert_int_equal('w', starts[0].kind);
    for (int i = 0; i < start_count; i++) {
        assert_int_equal(i == 0 ? FLP_PDL_WAIT_FIRST : i == 1 ? FLP_PDL_WAIT_LAST : FLP_PDL_WAIT_BEFORE_STORE, starts[i].wait);
        slabs += starts[i].kind == 'w';
        hidden += starts[i].kind == 'h';
    }
    assert_int_equal(BLOCKS + REST, hidden);
    assert_int_equal(start_count, hidden + slabs);
}

/* At 4096 rows the forward has no room for the rest, but the workspace has: it is computed again before all products, and rows are gathered and scaled once. */
static void the_rest_is_computed_early_where_it_has_room(void **state)
{
    (void)state;
    note_step(4096);
    assert_int_equal('e', starts[0].kind);
    assert_int_equal(1 + 2 * (BLOCKS + REST), start_count);
    for (int i = 1; i < start_count; i += 2) {
        assert_start('w', 0, 0, starts[i]);
        assert_int_equal(i == 1 ? FLP_PDL_WAIT_FIRST : FLP_PDL_WAIT_BEFORE_STORE, starts[i].wait);
        assert_start('h', 0, 0, starts[i + 1]);
    }
    assert_int_equal(2, gathers());
}

/* At 8192 rows 16 of 66 clusters are idle, and a block's grad_weight comes before its grad_hidden. The rest is computed again at the end, block by block: the
 * rows times their factors, which grad_weight has no room for any more, and the rows themselves take turns. */
static void the_rest_of_many_rows_comes_last(void **state)
{
    (void)state;
    note_step(8192);
    assert_start('w', 0, 0, starts[0]);
    assert_start('h', 0, 0, starts[1]);
    assert_int_equal(FLP_PDL_WAIT_LAST, starts[1].wait);
    for (int i = start_count - 3 * REST; i < start_count; i += 3) {
        assert_int_equal('e', starts[i].kind);
        assert_int_equal('w', starts[i + 1].kind);
        assert_int_equal('h', starts[i + 2].kind);
    }
    assert_contains(flp_plan_describe(plan), "exponentials computed again: 72960 vocabulary entries");
    assert_int_equal(2 + 3, gathers()); /* two scale the rest's rows, one gathers them between */
}

/* With a softcap all derivatives of 64 rows are one slab of 16 chunks. The last one is narrow, and its grad_hidden comes behind grad_weight's product. At 512
 * rows a slab is four chunks, and the last slab's last chunk is narrow, too. */
static void chunks_of_few_rows_share_launches(void **state)
{
    int at;

    (void)state;
    problem.backward.forward.softcap = 30;
    note_step(64);
    assert_int_equal('d', starts[0].kind);
    at = assert_hidden_products(1, 15, FLP_PDL_WAIT_FIRST);
    assert_start('w', 24, 11, starts[at]);
    assert_int_equal(FLP_PDL_WAIT_LAST, starts[at].wait);
    assert_int_equal(start_count, assert_hidden_products(at + 1, 1, FLP_PDL_WAIT_BEFORE_STORE));
    note_step(512);
    at = 0;
    for (int slab = 0; slab < 5; slab++) {
        assert_int_equal('d', starts[at].kind);
        at = assert_hidden_products(at + 1, 3, FLP_PDL_WAIT_FIRST) + 1;
        assert_int_equal('w', starts[at - 1].kind);
    }
    assert_int_equal(start_count, assert_hidden_products(at, 1, FLP_PDL_WAIT_BEFORE_STORE));
}

static void grad_hidden_comes_first_where_there_is_room(void **state)
{
    const int rows = (int)args.rows;
    int hidden, weight;

    (void)state;
    make_plan_with_room();
    assert_contains(flp_plan_describe(plan), "grad_hidden product: before grad_weight's");
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    hidden = launch_of("matrix_product", "in_step_targets_of_rows");
    weight = launch_of("matrix_product", "in_step_targets_in_rows");
    assert_in_range(hidden, launch_of("backward_gather", "") + 1, FAKE_LAUNCHES);
    assert_int_equal(hidden + 1, weight); /* beside its end */
    args.rows = 0;
    fake_driver.launches = 0;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args)); /* grad_weight is zeroed */
    assert_int_equal(-1, launch_of("matrix_product", "in_step_targets_of_rows"));
    assert_true(launch_of("matrix_product", "in_step_targets_in_rows") > 0);
    args.rows = rows;
}

static void rows_in_chunks_share_what_can_be_done_at_once(void **state)
{
    static const struct {
        int64_t rows;
        int chunks;
    } calls[] = { { 1100, 3 }, { 1024, 2 }, { 513, 2 }, { 512, 1 }, { 1, 1 } };

    (void)state;
    problem = (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_BF16, .rows = 1100, .hidden = HIDDEN, .vocab = 1500 },
                                                                .grad_hidden = FLP_BF16,
                                                                .grad_weight = FLP_F32,
                                                                .accumulate = FLP_ACCUMULATE_WEIGHT,
                                                                .memory_budget = 2000000 } };
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "rows: 512 at a time\n");
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        const int chunks = calls[i].chunks;
        args.rows = calls[i].rows;
        fake_driver.launches = 0;
        assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
        assert_int_equal(1 + chunks, operator_call_launches_of("flp_linear_logp_backward_rows_"));       /* places; differentiates */
        assert_int_equal(1 + chunks + 1, operator_call_launches_of("flp_linear_logp_backward_gather_")); /* gathers; scales; stages */
        assert_int_equal(1, operator_call_launches_of("flp_linear_logp_offsets_"));
        assert_int_equal(2 * chunks, operator_call_launches_of("flp_linear_logp_save_exp_")); /* keeps, keeps again */
        assert_int_equal(chunks, operator_call_launches_of("flp_linear_logp_combine_"));
        assert_int_equal(chunks, operator_call_launches_of("flp_token_loss_"));
        assert_int_equal(2 * chunks, operator_call_launches_of("flp_matrix_product_"));
        assert_int_equal(1, operator_call_launches_of("flp_linear_logp_backward_finish_"));
    }
}

/* In bf16 the parts' sum is grad_hidden itself, which then moves to its rows; in fp32 it is what is written to them. Neither packs rows again. */
static void a_frozen_heads_parts_are_added_once(void **state)
{
    static const flp_dtype dtypes[] = { FLP_BF16, FLP_F32 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        problem = (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = 50000 },
                                                                    .grad_hidden = dtypes[i] } };
        args.grad_weight = args.grad_bias = NULL;
        operator_call_make_plan();
        assert_contains(flp_plan_describe(plan), "grad_hidden product: in 3 parts of 16704 vocabulary entries\n");
        args.rows = ROWS;
        fake_driver.launches = 0;
        assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
        assert_int_equal(dtypes[i] == FLP_BF16 ? 2 : 1, operator_call_launches_of("flp_linear_logp_backward_gather_")); /* packs; stages */
        assert_int_equal(1, operator_call_launches_of("flp_matrix_product_"));
        assert_int_equal(2, operator_call_launches_of("flp_linear_logp_backward_finish_")); /* adds the parts; writes to the rows */
    }
}

/* The launches of a frozen head in chunks of rows: tiles, the sum of a product's parts, the combine, tiles that overflowed, losses, derivatives of rows, the
 * product (t, s, c, a, l, d, h), and which of them begin beside the launch before: those that wait at their end. */
static void note_beside(const fake_launch *launch)
{
    started *to = &starts[start_count];

    if (strstr(launch->kernel, "save_exp"))
        *to = (started){ .kind = ((const flp_linear_logp_params *)launch->parameters[3])->phase == FLP_SAVE_EXP_AGAIN ? 'a' : 't' };
    else if (strstr(launch->kernel, "backward_finish") && strstr(launch->kernel, "parts"))
        *to = (started){ .kind = 's', .wait = ((const flp_backward_finish_params *)launch->parameters[0])->pdl_wait_last };
    else if (strstr(launch->kernel, "token_loss"))
        *to = (started){ .kind = 'l', .wait = ((const flp_token_loss_params *)launch->parameters[0])->pdl_wait_last };
    else if (strstr(launch->kernel, "matrix_product"))
        *to = (started){ .kind = 'h', .wait = ((const flp_matrix_product_params *)launch->parameters[3])->pdl_wait_in_epilogue == FLP_PDL_WAIT_LAST };
    else if (strstr(launch->kernel, "combine"))
        *to = (started){ .kind = 'c' };
    else if (strstr(launch->kernel, "backward_rows") && ((const flp_backward_rows_params *)launch->parameters[0])->differentiates)
        *to = (started){ .kind = 'd' };
    else
        return;
    if (start_count < 127)
        start_count++;
}

/* Each chunk's grad_hidden is completed beside the end of the next chunk's tiles; its losses are computed beside the tiles that overflowed; its product begins
 * beside the derivatives of rows. */
static void a_frozen_heads_small_launches_run_beside_others(void **state)
{
    static const char wanted[] = "t c a l d h  t s c a l d h  t s c a l d h s";
    int at = 0;

    (void)state;
    problem = (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_BF16, .rows = 3000, .hidden = 2048, .vocab = 131072 },
                                                                .grad_hidden = FLP_BF16 } };
    args.grad_weight = args.grad_bias = NULL;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "rows: 1024 at a time\n");
    args.rows = 3000;
    fake_driver.on_launch = note_beside;
    start_count = 0;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    fake_driver.on_launch = NULL;
    for (const char *kind = wanted; *kind; kind++) {
        if (*kind == ' ')
            continue;
        assert_in_range(at, 0, start_count - 1);
        assert_int_equal(*kind, starts[at].kind);
        assert_int_equal(*kind == 'l' || *kind == 'h' || (*kind == 's' && at < start_count - 1), starts[at].wait);
        at++;
    }
    assert_int_equal(at, start_count);
}

/* Each product of few rows has maps of its own. The addresses are made up, so that they are the same in each run. */
static void a_step_of_few_rows_encodes_its_maps_once(void **state)
{
    const uintptr_t begin = (uintptr_t)1 << 40, apart = (uintptr_t)1 << 30;
    int maps;

    (void)state;
    problem.backward.forward.rows = args.rows = 128;
    problem.backward.forward.hidden = 2048, problem.backward.forward.vocab = 131072;
    operator_call_make_plan();
    args.hidden = (void *)begin, args.weight = (void *)(begin + apart), args.grad_hidden = (void *)(begin + 2 * apart);
    args.grad_weight = (void *)(begin + 3 * apart), args.workspace = (void *)(begin + 4 * apart), args.workspace_bytes = (size_t)apart;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    maps = fake_driver.calls[FAKE_tensor_map_encode_tiled];
    assert_true(maps > 32);
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_int_equal(maps, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_on_gpu, operator_call_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(grad_hidden_comes_first_where_there_is_room),
        TEST(products_of_few_rows_begin_with_grad_hidden),
        TEST(blocks_of_few_rows_share_launches),
        TEST(blocks_in_waves_that_are_not_full_have_launches_of_their_own),
        TEST(the_rest_is_computed_early_where_it_has_room),
        TEST(the_rest_of_many_rows_comes_last),
        TEST(chunks_of_few_rows_share_launches),
        TEST(clusters_of_long_products_keep_in_step),
        TEST(who_is_idle_begins_with_the_next_launch),
        TEST(rows_in_chunks_share_what_can_be_done_at_once),
        TEST(a_frozen_heads_parts_are_added_once),
        TEST(a_frozen_heads_small_launches_run_beside_others),
        TEST(a_step_of_few_rows_encodes_its_maps_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
