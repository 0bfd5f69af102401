/* Cutting the vocabulary: every tile once, never too many splits. */
#include "operators/linear/linear_logp_plan.h"

#include "assertions.h"

/* First tile and count of a split, as templates/parts/schedule.cuh reads them. */
static void locate(const flp_split *split, int index, int64_t *first, int64_t *tiles)
{
    if (index < split->big) {
        *first = (int64_t)index * split->big_tiles;
        *tiles = split->big_tiles;
    } else {
        *first = (int64_t)split->big * split->big_tiles + (index - split->big);
        *tiles = 1;
    }
}

static void check(int64_t vocab, int block_columns, int n_split)
{
    flp_split split = flp_split_compute(vocab, block_columns, n_split);
    int64_t next = 0;

    if (split.tiles != (vocab + block_columns - 1) / block_columns || split.splits < 1 || split.splits >= 2 * n_split)
        fail_msg("vocab %lld, block %d, rounds of %d: %d tiles in %d splits", (long long)vocab, block_columns, n_split, split.tiles, split.splits);
    for (int i = 0; i < split.splits; i++) {
        int64_t first, tiles;
        locate(&split, i, &first, &tiles);
        if (first != next || tiles < 1)
            fail_msg("vocab %lld, block %d, rounds of %d: split %d is %lld tiles from %lld, wanted from %lld", (long long)vocab, block_columns, n_split, i,
                     (long long)tiles, (long long)first, (long long)next);
        next += tiles;
    }
    if (next != split.tiles)
        fail_msg("vocab %lld, block %d, rounds of %d: %lld of %d tiles", (long long)vocab, block_columns, n_split, (long long)next, split.tiles);
}

static void every_tile_lies_in_one_split(void **state)
{
    static const int blocks[] = { 1, 64, 128, 256, 320 }, limits[] = { 1, 4, 5, 7, 8, 32, 108, 132 };

    (void)state;
    for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++)
        for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++) {
            for (int64_t tiles = 1; tiles <= 700; tiles++)
                check(tiles * blocks[b], blocks[b], limits[l]);
            for (int64_t vocab = 1; vocab < INT32_MAX; vocab = vocab * 3 + 1)
                check(vocab, blocks[b], limits[l]);
            check(INT32_MAX, blocks[b], limits[l]);
        }
}

static void fewer_than_two_rounds_of_tiles_are_one_each(void **state)
{
    flp_split split = flp_split_compute(263 * 256, 256, 132);

    (void)state;
    assert_int_equal(263, split.splits);
    assert_int_equal(0, split.big);
}

/* 501 tiles: 132 splits of 3, and 105 of 1. */
static void a_large_vocabulary_has_big_splits_and_a_tail_of_single_tiles(void **state)
{
    flp_split split = flp_split_compute(128256, 256, 132);

    (void)state;
    assert_int_equal(501, split.tiles);
    assert_int_equal(3, split.big_tiles);
    assert_int_equal(132, split.big);
    assert_int_equal(132 + 105, split.splits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_lies_in_one_split),
        cmocka_unit_test(fewer_than_two_rounds_of_tiles_are_one_each),
        cmocka_unit_test(a_large_vocabulary_has_big_splits_and_a_tail_of_single_tiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
