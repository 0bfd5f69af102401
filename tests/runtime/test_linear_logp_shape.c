/* Grids and groups of row blocks. */
#include "operators/linear/linear_logp_plan.h"

#include "assertions.h"

static const flp_manifest tile = { .block_rows = 128, .cluster = 2, .resident_blocks = 1 }, combine = { .block_rows = 8 };

static void few_units_have_a_block_each(void **state)
{
    flp_linear_logp_shape launch = flp_linear_logp_shape_compute(&tile, &combine, 132, 20, 4096, 0, 300);

    (void)state;
    assert_int_equal(2 * 20 * 2, launch.tile_blocks); /* two row groups of 256 */
    assert_int_equal(38, launch.combine_blocks);
    assert_int_equal(2, launch.group);
}

static void many_units_share_one_block_a_multiprocessor(void **state)
{
    (void)state;
    assert_int_equal(132, flp_linear_logp_shape_compute(&tile, &combine, 132, 160, 4096, 0, 4096).tile_blocks);
    assert_int_equal(130, flp_linear_logp_shape_compute(&tile, &combine, 131, 160, 4096, 0, 4096).tile_blocks); /* whole clusters */
    assert_int_equal(2, flp_linear_logp_shape_compute(&tile, &combine, 1, 160, 4096, 0, 4096).tile_blocks);
}

static void as_many_blocks_as_a_multiprocessor_holds(void **state)
{
    const flp_manifest two = { .block_rows = 128, .cluster = 1, .resident_blocks = 2 };

    (void)state;
    assert_int_equal(264, flp_linear_logp_shape_compute(&two, &combine, 132, 160, 4096, 0, 4096).tile_blocks);
    assert_int_equal(160, flp_linear_logp_shape_compute(&two, &combine, 132, 160, 4096, 0, 128).tile_blocks);
}

/* 32 MiB of hidden rows a group. */
static void groups_fit_the_l2_and_are_even(void **state)
{
    (void)state;
    /* N 4096, D 2304: 18 MiB, all in one. */
    assert_int_equal(16, flp_linear_logp_shape_compute(&tile, &combine, 132, 160, 2304 * 2, 0, 4096).group);
    /* N 8192, D 4096: 64 MiB in 32 row groups of 2 MiB, in two halves. */
    assert_int_equal(16, flp_linear_logp_shape_compute(&tile, &combine, 132, 160, 4096 * 2, 0, 8192).group);
    /* One more row: 33 row groups in three elevens, not 16, 16 and 1. */
    assert_int_equal(11, flp_linear_logp_shape_compute(&tile, &combine, 132, 160, 4096 * 2, 0, 8193).group);
    /* A row group over 32 MiB is still a group. */
    assert_int_equal(1, flp_linear_logp_shape_compute(&tile, &combine, 132, 160, INT64_C(4) << 30, 0, 8192).group);
}

static void no_rows_have_no_blocks(void **state)
{
    flp_linear_logp_shape launch = flp_linear_logp_shape_compute(&tile, &combine, 132, 160, 4096, 0, 0);

    (void)state;
    assert_int_equal(0, launch.tile_blocks);
    assert_int_equal(0, launch.combine_blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_units_have_a_block_each),
        cmocka_unit_test(many_units_share_one_block_a_multiprocessor),
        cmocka_unit_test(as_many_blocks_as_a_multiprocessor_holds),
        cmocka_unit_test(groups_fit_the_l2_and_are_even),
        cmocka_unit_test(no_rows_have_no_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
