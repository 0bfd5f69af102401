/* Cutting grad_w's columns and rows: all of them once, no lane too many, and scratch that grows with the rows. */
#include "operators/weighted_sum/weighted_sum_plan.h"

#include "assertions.h"

enum { THREADS = 512, MULTIPROCESSORS = 132 };

static const int64_t sizes[] = { 1, 2, 3, 8, 9, 31, 64, 100, 512, 1000, 2304, 4096, 4097, 5120, 8192, 32768, 34048, 50257, 131072, 1000003, 2147483647 };
static const int64_t row_counts[] = { 0, 1, 2, 100, 127, 128, 129, 1000, 4096, 65536, 1048576, 268435456 };

#define COUNT(array) (sizeof(array) / sizeof(array[0]))

static void check(int64_t rows, int64_t columns, int vector_columns)
{
    const flp_weighted_sum_tiles t = flp_weighted_sum_tiles_compute(rows, columns, vector_columns, THREADS);
    const int64_t covered = (int64_t)t.vectors * vector_columns;

    if (covered < columns || covered - columns >= vector_columns || (int64_t)t.slab * t.slabs < t.vectors || (int64_t)t.slab * (t.slabs - 1) >= t.vectors ||
        t.lanes < 1 || t.slab * t.lanes > THREADS)
        fail_msg("%lld x %lld: %d vectors in %d slabs of %d, %d lanes", (long long)rows, (long long)columns, t.vectors, t.slabs, t.slab, t.lanes);
    if (t.tiles < 1 || t.tiles * t.tile_rows < rows || (rows > 0 && (t.tiles - 1) * t.tile_rows >= rows))
        fail_msg("%lld x %lld: %d tiles of %lld rows", (long long)rows, (long long)columns, t.tiles, (long long)t.tile_rows);
    if (t.partial_floats != (t.tiles == 1 ? 0 : t.tiles * covered) || t.partial_floats > flp_weighted_sum_tiles_floats(rows, columns, vector_columns, THREADS))
        fail_msg("%lld x %lld: %lld floats of scratch", (long long)rows, (long long)columns, (long long)t.partial_floats);
}

static void every_column_and_row_is_taken_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < COUNT(row_counts); j++) {
            check(row_counts[j], sizes[i], 4);
            check(row_counts[j], sizes[i], 8);
        }
}

static void scratch_never_shrinks_with_more_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t before = 0;
        for (int64_t rows = 0; rows < 3000; rows++) {
            int64_t floats = flp_weighted_sum_tiles_floats(rows, sizes[i], 8, THREADS);
            assert_true(floats >= before);
            assert_true(flp_weighted_sum_tiles_compute(rows, sizes[i], 8, THREADS).partial_floats <= floats);
            before = floats;
        }
    }
}

/* Even waves of one block a multiprocessor, where there are rows to cut. */
static void many_rows_fill_the_multiprocessors(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        const flp_weighted_sum_tiles t = flp_weighted_sum_tiles_compute(1048576, sizes[i], 8, THREADS);
        const int64_t blocks = (int64_t)t.slabs * t.tiles, waves = (blocks + MULTIPROCESSORS - 1) / MULTIPROCESSORS;
        if (blocks < 0.85 * (double)(waves * MULTIPROCESSORS))
            fail_msg("%lld columns: %lld blocks in %lld waves", (long long)sizes[i], (long long)blocks, (long long)waves);
    }
}

static void few_rows_are_one_tile_without_scratch(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(1, flp_weighted_sum_tiles_compute(0, sizes[i], 4, THREADS).tiles);
        assert_int_equal(1, flp_weighted_sum_tiles_compute(32, sizes[i], 4, THREADS).tiles);
        assert_int_equal(0, flp_weighted_sum_tiles_floats(32, sizes[i], 4, THREADS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_column_and_row_is_taken_once),
        cmocka_unit_test(scratch_never_shrinks_with_more_rows),
        cmocka_unit_test(many_rows_fill_the_multiprocessors),
        cmocka_unit_test(few_rows_are_one_tile_without_scratch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
