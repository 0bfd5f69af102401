/* Which of the forward's kernels reads so many rows, and which rows need scratch. */
#include "operators/logits/logits_logp_plan.h"

#include "assertions.h"

enum { MULTIPROCESSORS = 132, CLUSTERS = 21, VOCAB = 131072 };

/* As gen/kernels/logits_logp_config.lua derives them for bf16. */
static const flp_kernel rows = { .manifest = { .threads = 256, .cluster = 1, .resident_blocks = 3, .block_columns = 2048 } };
static const flp_kernel combine = { .manifest = { .threads = 256, .cluster = 1, .resident_blocks = 4, .block_columns = 2048 } };
static const flp_kernel few = { .manifest = { .threads = 256, .cluster = 16, .resident_blocks = 3, .block_columns = 2048 }, .clusters = CLUSTERS };
static const flp_logits_logp_forward hopper = { &rows, &combine, &few }, portable = { &rows, &combine, NULL };

static flp_logits_logp_pass choose(const flp_logits_logp_forward *forward, int64_t vocab, int64_t count)
{
    return flp_logits_logp_forward_choose(forward, MULTIPROCESSORS, vocab, count);
}

static int64_t cut_rows(const flp_logits_logp_forward *forward, int64_t vocab, int64_t count)
{
    return flp_logits_logp_forward_cut_rows(forward, MULTIPROCESSORS, vocab, count);
}

static void few_rows_have_a_cluster_each(void **state)
{
    (void)state;
    for (int count = 1; count <= CLUSTERS; count++) {
        const flp_logits_logp_pass pass = choose(&hopper, VOCAB, count);
        assert_ptr_equal(&few, pass.kernel);
        assert_int_equal(16 * count, pass.shape.blocks);
        assert_int_equal(1, pass.shape.parts);
        assert_int_equal(64, pass.shape.segments);
    }
}

static void more_rows_are_cut_while_they_do_not_fill_the_device(void **state)
{
    (void)state;
    for (int count = CLUSTERS + 1; count < 2 * 3 * MULTIPROCESSORS; count += 7) {
        const flp_logits_logp_pass pass = choose(&hopper, VOCAB, count);
        assert_ptr_equal(&rows, pass.kernel);
        assert_true(pass.shape.parts > 1);
        assert_int_equal(3 * MULTIPROCESSORS, pass.shape.blocks);
    }
    assert_int_equal(1, choose(&hopper, VOCAB, 2 * 3 * MULTIPROCESSORS).shape.parts);
}

/* Up to four segments a block of eight warps has several rows. */
static void short_rows_share_a_block(void **state)
{
    (void)state;
    assert_ptr_equal(&rows, choose(&hopper, 4 * 2048, 1).kernel);
    assert_int_equal(1, choose(&hopper, 4 * 2048, 1).shape.parts);
    assert_ptr_equal(&few, choose(&hopper, 4 * 2048 + 1, 1).kernel);
}

static void rows_of_more_segments_than_a_block_holds_meet_in_scratch(void **state)
{
    (void)state;
    assert_ptr_equal(&few, choose(&hopper, 512 * 2048, 1).kernel);
    assert_ptr_equal(&rows, choose(&hopper, 512 * 2048 + 1, 1).kernel);
    assert_true(choose(&hopper, 512 * 2048 + 1, 1).shape.parts > 1);
    assert_true(choose(&hopper, 512 * 2048 + 1, 1 << 20).shape.parts > 1);
}

/* Some form no clusters of 16 blocks, others none at all. */
static void without_clusters_few_rows_are_cut(void **state)
{
    flp_kernel none = few;
    const flp_logits_logp_forward without = { &rows, &combine, &none };

    (void)state;
    none.clusters = 0;
    assert_ptr_equal(&rows, choose(&without, VOCAB, 1).kernel);
    assert_ptr_equal(&rows, choose(&portable, VOCAB, 1).kernel);
    assert_int_equal(64, choose(&portable, VOCAB, 1).shape.parts);
}

static void scratch_is_for_the_most_rows_that_are_cut(void **state)
{
    (void)state;
    assert_int_equal(0, cut_rows(&hopper, VOCAB, 0));
    assert_int_equal(0, cut_rows(&hopper, VOCAB, CLUSTERS));
    assert_int_equal(CLUSTERS + 1, cut_rows(&hopper, VOCAB, CLUSTERS + 1));
    assert_int_equal(2 * 3 * MULTIPROCESSORS - 1, cut_rows(&hopper, VOCAB, 1 << 20));
    assert_int_equal(1, cut_rows(&portable, VOCAB, 1));
    assert_int_equal(0, cut_rows(&hopper, 4 * 2048, 1 << 20));
    assert_int_equal(1 << 20, cut_rows(&hopper, 512 * 2048 + 1, 1 << 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_have_a_cluster_each),      cmocka_unit_test(more_rows_are_cut_while_they_do_not_fill_the_device),
        cmocka_unit_test(short_rows_share_a_block),          cmocka_unit_test(rows_of_more_segments_than_a_block_holds_meet_in_scratch),
        cmocka_unit_test(without_clusters_few_rows_are_cut), cmocka_unit_test(scratch_is_for_the_most_rows_that_are_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
