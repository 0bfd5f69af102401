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

/* The tiles of each cluster of a launch, dealt as templates/parts/schedule.cuh does; returns the most. */
static int64_t deal(const flp_split *split, int64_t row_groups, int64_t clusters)
{
    const int64_t big = row_groups * split->big, single = row_groups * (split->splits - split->big), late = big % clusters;
    const int64_t idle = late > 0 ? clusters - late : 0;
    int64_t most = 0, dealt = 0;

    for (int64_t worker = 0; worker < clusters; worker++) {
        const int64_t rounds = big / clusters + (worker < late);
        const int64_t catch_up = idle > 0 && worker >= late ? split->big_tiles : 0;
        int64_t tiles = rounds * split->big_tiles;

        for (int64_t i = 0;; i++) {
            const int64_t index = i < catch_up ? worker - late + i * idle : idle * split->big_tiles + worker + (i - catch_up) * clusters;
            if (index >= single)
                break;
            tiles++;
        }
        dealt += tiles;
        most = tiles > most ? tiles : most;
    }
    assert_int_equal(row_groups * split->tiles, dealt);
    return most;
}

/* The most tiles of a cluster, and of one of its two warpgroups. */
static int64_t deal_to_both(const flp_split *split, int64_t row_groups, int64_t clusters)
{
    return deal(split, row_groups, clusters) + deal(split, row_groups, 2 * clusters);
}

static void an_even_split_is_done_as_soon_as_any_other(void **state)
{
    static const int64_t clusters[] = { 1, 66, 114, 132 };

    (void)state;
    for (int64_t tiles = 1; tiles <= 60; tiles++)
        for (int64_t rows = 1; rows <= 64; rows++)
            for (size_t c = 0; c < sizeof(clusters) / sizeof(*clusters); c++) {
                const flp_split even = flp_split_even(tiles * 192, 192, rows, clusters[c]);
                const int64_t most = deal_to_both(&even, rows, clusters[c]);

                assert_int_equal(tiles, even.tiles);
                assert_int_equal(tiles, even.big * even.big_tiles + even.splits - even.big);
                for (int64_t unit = 1; unit <= 4; unit++) {
                    const int64_t splits = unit == 1 ? tiles : tiles / unit - 1;
                    const flp_split other = flp_split_compute(tiles * 192, 192, splits > 0 ? (int)splits : 1);

                    if (deal_to_both(&other, rows, clusters[c]) < most)
                        fail_msg("%d tiles, %d row groups, %d clusters: %d big splits of %d tiles are done sooner", (int)tiles, (int)rows, (int)clusters[c],
                                 other.big, other.big_tiles);
                }
            }
}

/* Of 22 tiles and 16 row groups each of 132 clusters has 2.7 tiles: three, where units of five would give some of them five. With 64 row groups it has 10.7,
 * and long units are as good. */
static void an_even_split_has_units_as_long_as_may_be(void **state)
{
    const flp_split few = flp_split_even(22 * 192, 192, 16, 132), more = flp_split_even(22 * 192, 192, 32, 132), many = flp_split_even(22 * 192, 192, 64, 132);

    (void)state;
    assert_int_equal(0, few.big);
    assert_int_equal(22, few.splits);
    assert_int_equal(3, more.big_tiles); /* warpgroups without a unit catch up on single tiles */
    assert_int_equal(6, more.big);
    assert_int_equal(5, many.big_tiles);
    assert_int_equal(4, many.big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tile_lies_in_one_split),
        cmocka_unit_test(fewer_than_two_rounds_of_tiles_are_one_each),
        cmocka_unit_test(a_large_vocabulary_has_big_splits_and_a_tail_of_single_tiles),
        cmocka_unit_test(an_even_split_is_done_as_soon_as_any_other),
        cmocka_unit_test(an_even_split_has_units_as_long_as_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
