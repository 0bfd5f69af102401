/* Parts of a workspace: apart where their lives meet, over one another where they do not, and never further behind for fewer rows. */
#include "core/workspace.h"

#include "assertions.h"

static flp_workspace_part part(int64_t bytes, int first, int last)
{
    return (flp_workspace_part){ .name = "part", .bytes = bytes, .first = first, .last = last };
}

static flp_workspace lay_out(const flp_workspace_part *parts, int count, flp_workspace_loop inner, flp_workspace_loop outer)
{
    flp_workspace workspace = { .loop = { inner, outer } };

    for (int i = 0; i < count; i++)
        workspace.part[i] = parts[i];
    flp_workspace_lay_out(&workspace);
    return workspace;
}

static const flp_workspace_loop no_loop;

static void parts_that_live_at_one_step_lie_apart(void **state)
{
    const flp_workspace_part parts[] = { part(100, 0, 3), part(300, 3, 5), part(256, 1, 3) };
    const flp_workspace workspace = lay_out(parts, 3, no_loop, no_loop);

    (void)state;
    assert_int_equal(0, workspace.part[0].offset);
    assert_int_equal(256, workspace.part[1].offset);
    assert_int_equal(768, workspace.part[2].offset);
    assert_int_equal(1024, workspace.bytes);
}

static void a_part_lies_where_one_has_ended(void **state)
{
    const flp_workspace_part parts[] = { part(1000, 0, 2), part(1000, 3, 5), part(10, 0, 5) };
    const flp_workspace workspace = lay_out(parts, 3, no_loop, no_loop);

    (void)state;
    assert_int_equal(256, workspace.part[0].offset);
    assert_int_equal(256, workspace.part[1].offset);
    assert_int_equal(256 + 1024, workspace.bytes);
}

static void narrow_parts_do_not_stand_in_the_way_of_wide_ones(void **state)
{
    flp_workspace_part parts[] = { part(4096, 0, 9), part(2048, 4, 9), part(2048, 0, 3), part(8, 2, 5) };
    flp_workspace workspace;

    (void)state;
    for (int i = 0; i < 3; i++)
        parts[i].is_wide = 1;
    workspace = lay_out(parts, 4, no_loop, no_loop);
    assert_int_equal(0, workspace.part[3].offset);
    assert_int_equal(workspace.part[1].offset, workspace.part[2].offset);
    assert_int_equal(256 + 4096 + 2048, workspace.bytes);
}

/* What is written before a loop and read in it is read again when the loop goes on; what is inside is not. */
static void what_lives_when_a_loop_begins_lives_until_it_ends(void **state)
{
    const flp_workspace_part parts[] = { part(256, 0, 2), part(256, 3, 4), part(256, 2, 2) };
    const flp_workspace_loop inner = { 2, 4 }, outer = { 1, 6 };
    flp_workspace workspace = lay_out(parts, 3, inner, no_loop);

    (void)state;
    assert_int_equal(4, workspace.part[0].last);
    assert_int_equal(2, workspace.part[2].last);
    assert_int_equal(workspace.part[1].offset, workspace.part[2].offset);
    assert_true(workspace.part[0].offset != workspace.part[1].offset);
    workspace = lay_out(parts, 3, inner, outer);
    assert_int_equal(6, workspace.part[0].last);
    assert_int_equal(4, workspace.part[1].last);
}

static void a_part_that_is_not_there_has_no_place(void **state)
{
    const flp_workspace_part parts[] = { { .name = NULL }, part(0, 1, 1), part(5, 1, 2) };
    flp_workspace workspace = lay_out(parts, 3, no_loop, no_loop);
    char memory[256];

    (void)state;
    workspace.memory = memory;
    assert_null(flp_workspace_at(&workspace, 0));
    assert_ptr_equal(memory, flp_workspace_at(&workspace, 2));
    assert_non_null(flp_workspace_at(&workspace, 1)); /* empty, and there */
    assert_int_equal(256, workspace.bytes);
}

static uint64_t draws;

static int draw(int below)
{
    draws = draws * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((draws >> 33) % (uint64_t)below);
}

static void assert_apart(const flp_workspace *workspace)
{
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++)
        for (int j = 0; j < i; j++) {
            const flp_workspace_part *a = &workspace->part[i], *b = &workspace->part[j];

            if (a->name && b->name && a->first <= b->last && b->first <= a->last)
                assert_true(a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset);
        }
}

static void smaller_parts_never_take_more(void **state)
{
    (void)state;
    for (int i = 0; i < 3000; i++) {
        flp_workspace_part parts[FLP_WORKSPACE_PARTS];
        const int count = 1 + draw(FLP_WORKSPACE_PARTS), first = draw(10), last = first + draw(10);
        flp_workspace large, small;

        for (int j = 0; j < count; j++) {
            const int birth = draw(20);

            parts[j] = part(draw(5000), birth, birth + draw(10));
            parts[j].is_wide = draw(2);
        }
        large = lay_out(parts, count, (flp_workspace_loop){ first, last }, no_loop);
        assert_apart(&large);
        for (int j = 0; j < count; j++)
            parts[j].bytes = draw((int)parts[j].bytes + 1);
        small = lay_out(parts, count, (flp_workspace_loop){ first, last }, no_loop);
        assert_apart(&small);
        assert_true(small.bytes <= large.bytes);
        for (int j = 0; j < count; j++)
            assert_true(small.part[j].offset <= large.part[j].offset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_that_live_at_one_step_lie_apart),
        cmocka_unit_test(a_part_lies_where_one_has_ended),
        cmocka_unit_test(narrow_parts_do_not_stand_in_the_way_of_wide_ones),
        cmocka_unit_test(what_lives_when_a_loop_begins_lives_until_it_ends),
        cmocka_unit_test(a_part_that_is_not_there_has_no_place),
        cmocka_unit_test(smaller_parts_never_take_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
