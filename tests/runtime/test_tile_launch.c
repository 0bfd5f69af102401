/* How many row groups a launch of tiles walks together, and what of it begins beside the launch before. */
#include "operators/linear/matrix_product_launch.h"

#include "assertions.h"

#define MIB (INT64_C(1) << 20)

static void what_fits_the_l2_is_walked_in_equal_groups(void **state)
{
    (void)state;
    assert_int_equal(16, flp_tile_launch_group(16, 2 * MIB, 0));
    assert_int_equal(16, flp_tile_launch_group(32, 2 * MIB, 0));
    assert_int_equal(9, flp_tile_launch_group(17, 2 * MIB, 0)); /* and 8, in place of 16 and 1 */
    assert_int_equal(1, flp_tile_launch_group(17, 64 * MIB, 0));
    assert_int_equal(1, flp_tile_launch_group(1, 0, 0));
}

static void a_tuning_says_how_many(void **state)
{
    (void)state;
    assert_int_equal(4, flp_tile_launch_group(32, 2 * MIB, 4));
    assert_int_equal(3, flp_tile_launch_group(3, 2 * MIB, 4));
}

/* Bytes of A and of B that a rectangle of `tiles` reads, in rows and columns of them. */
static int64_t read_by(int64_t tiles, int64_t rows, int64_t columns, int64_t side)
{
    return side * rows + (tiles + side - 1) / side * columns;
}

static void tiles_at_work_make_up_a_square(void **state)
{
    static const int64_t shapes[][3] = { { 66, 256, 256 }, { 66, 256, 192 }, { 66, 256, 128 }, { 132, 128, 192 }, { 264, 128, 128 }, { 1, 64, 256 } };

    (void)state;
    assert_int_equal(8, flp_tile_launch_square(4000, 66, 256, 256));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t tiles = shapes[i][0], rows = shapes[i][1], columns = shapes[i][2], side = flp_tile_launch_square(1 << 20, tiles, rows, columns);

        assert_true(side >= 1 && side <= tiles);
        for (int64_t other = 1; other <= tiles; other++) /* sides are whole, so within one row and one column of the least */
            assert_true(read_by(tiles, rows, columns, side) <= read_by(tiles, rows, columns, other) + rows + columns);
    }
}

static void squares_are_equal_too(void **state)
{
    (void)state;
    assert_int_equal(3, flp_tile_launch_square(3, 66, 256, 256));
    assert_int_equal(5, flp_tile_launch_square(10, 66, 256, 256)); /* and 5, in place of 8 and 2 */
}

/* 66 clusters of an H200; logits' derivatives by single blocks. */
static flp_plan tiles_of_h200(void)
{
    static const flp_kernel product = { .manifest = { .block_rows = 128, .block_columns = 256, .block_inner = 64, .cluster = 2, .resident_blocks = 1 } };
    static const flp_kernel derivatives = { .manifest = { .block_rows = 128, .block_columns = 192, .block_inner = 64, .cluster = 1, .resident_blocks = 1 } };
    flp_plan plan = { .device.facts.multiprocessors = 132 };

    plan.kernels[FLP_ROLE_HIDDEN_PRODUCT] = plan.kernels[FLP_ROLE_WEIGHT_PRODUCT] = &product;
    plan.kernels[FLP_ROLE_GRAD_LOGITS] = &derivatives;
    return plan;
}

static void who_is_idle_has_a_head_start(void **state)
{
    const flp_plan plan = tiles_of_h200();
    /* 8192 x 4096 of 16896 entries: 512 tiles of 66 clusters leave 16 idle for 17024 steps' time, 8320 for each of grad_weight's. */
    const flp_tile_work hidden = { .role = FLP_ROLE_HIDDEN_PRODUCT, .rows = 8192, .columns = 4096, .inner = 16896 };
    flp_tile_work weight = { .role = FLP_ROLE_WEIGHT_PRODUCT, .rows = 16896, .columns = 4096, .inner = 8192 };
    flp_tile_work logits = { .role = FLP_ROLE_GRAD_LOGITS, .rows = 8192, .columns = 16896, .inner = 4096 };
    flp_head_start head = flp_tile_launch_head_start(&plan, &hidden, &weight);

    (void)state;
    assert_int_equal(16, head.workers);
    assert_int_equal(2, head.tiles);
    /* Of 1056 tiles 1024 are left, 15.5 rounds: 32 clusters, or 64 blocks, have time for 8320 / (0.75 x 4224) tiles. */
    weight.head_tiles = (int64_t)head.workers * head.tiles;
    head = flp_tile_launch_head_start(&plan, &weight, &logits);
    assert_int_equal(64, head.workers);
    assert_int_equal(2, head.tiles);
    logits.most_early = 1;
    assert_int_equal(1, flp_tile_launch_head_start(&plan, &weight, &logits).tiles);
}

static void nobody_has_a_head_start_for_nothing(void **state)
{
    const flp_plan plan = tiles_of_h200();
    const flp_tile_work full = { .role = FLP_ROLE_HIDDEN_PRODUCT, .rows = 16896, .columns = 256, .inner = 4096 },
                        one = { .role = FLP_ROLE_HIDDEN_PRODUCT, .rows = 256, .columns = 256, .inner = 4096 },
                        longer = { .role = FLP_ROLE_WEIGHT_PRODUCT, .rows = 8192, .columns = 4096, .inner = 8192 },
                        nearly = { .role = FLP_ROLE_WEIGHT_PRODUCT, .rows = 8192, .columns = 4096, .inner = 4608 },
                        few = { .role = FLP_ROLE_WEIGHT_PRODUCT, .rows = 16896, .columns = 256, .inner = 64 };

    (void)state;
    assert_int_equal(0, flp_tile_launch_head_start(&plan, &full, &few).workers); /* a full round */
    assert_int_equal(0, flp_tile_launch_head_start(&plan, &one, &longer).workers);
    assert_int_equal(1, flp_tile_launch_head_start(&plan, &one, &nearly).tiles);
    assert_int_equal(65, flp_tile_launch_head_start(&plan, &one, &nearly).workers);
    assert_int_equal(65, flp_tile_launch_head_start(&plan, &one, &few).workers);
    assert_int_equal(2, flp_tile_launch_head_start(&plan, &one, &few).tiles); /* all 66, although there is time for 22 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_the_l2_is_walked_in_equal_groups),
        cmocka_unit_test(a_tuning_says_how_many),
        cmocka_unit_test(tiles_at_work_make_up_a_square),
        cmocka_unit_test(squares_are_equal_too),
        cmocka_unit_test(who_is_idle_has_a_head_start),
        cmocka_unit_test(nobody_has_a_head_start_for_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
