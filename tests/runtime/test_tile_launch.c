/* How many row groups a launch of tiles walks together. */
#include "operators/linear/matrix_product_launch.h"

#include "fake_cmocka.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_the_l2_is_walked_in_equal_groups),
        cmocka_unit_test(a_tuning_says_how_many),
        cmocka_unit_test(tiles_at_work_make_up_a_square),
        cmocka_unit_test(squares_are_equal_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
