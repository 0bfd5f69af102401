/* The backward's workspace within its memory budget: chunks of the vocabulary, the stash, chunks of rows. */
#include "plan/linear_logp_backward_workspace.h"

#include <stdio.h>

#include "cpu/convert.h"
#include "fake_cmocka.h"
#include "plan/linear_logp_backward_problem.h"
#include "plan/problem.h"

/* bf16 throughout, but for grad_weight. */
static flp_linear_logp_backward_problem sized(int64_t rows, int64_t hidden, int64_t vocab, flp_dtype grad_weight)
{
    return (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_BF16, .rows = rows, .hidden = hidden, .vocab = vocab },
                                               .grad_hidden = FLP_BF16, .grad_weight = grad_weight };
}

static flp_linear_logp_backward_problem normal_of(flp_linear_logp_backward_problem problem)
{
    flp_linear_logp_backward_problem normal;

    assert_succeeds(flp_linear_logp_backward_problem_normalize(&problem, &normal));
    return normal;
}

static void the_least_budget_is_said_and_enough(void **state)
{
    flp_linear_logp_backward_problem problem = sized(4096, 2048, 131072, FLP_F32), normal = normal_of(problem);
    const int64_t least = flp_linear_logp_backward_least_budget(&normal);
    char wanted[64];

    (void)state;
    problem.memory_budget = least - 1;
    snprintf(wanted, sizeof(wanted), "wanted 0 or at least %lld bytes for 4096 rows", (long long)least);
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_problem_normalize(&problem, &normal), wanted);
    problem.memory_budget = least;
    normal = normal_of(problem);
    assert_int_equal(FLP_BACKWARD_COLUMNS, flp_linear_logp_backward_workspace_lay_out(&normal, 0, 0, 4096).columns);
    assert_int_equal(least, flp_linear_logp_backward_workspace_lay_out(&normal, 1, 0, 4096).bytes);
}

static void the_default_budget_stays_below_256_mib(void **state)
{
    flp_linear_logp_backward_problem problem = sized(8192, 4096, 128256, FLP_BF16);

    (void)state;
    problem = normal_of(problem);
    assert_in_range(flp_linear_logp_backward_default_budget(&problem), flp_linear_logp_backward_least_budget(&problem), 256 << 20);
    assert_int_equal(flp_linear_logp_backward_default_budget(&problem), flp_linear_logp_backward_workspace_lay_out(&problem, 1, 0, 8192).bytes);
}

/* The chunks behind the stash, first to last: each has its dlogit where grad_weight is written later, or in the workspace, which has room. */
static void check_chunks(const flp_linear_logp_backward_problem *normal, int64_t rows, int *borrowing)
{
    const flp_linear_logp_backward_workspace layout = flp_linear_logp_backward_workspace_lay_out(normal, 1, 0, rows);
    const int64_t row_bytes = normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), vocab = normal->forward.vocab;
    const int64_t room = (layout.sums >= 0 ? layout.sums : layout.bytes) - layout.dlogit;

    *borrowing = 0;
    for (int64_t first = layout.stash_columns; first < vocab;) {
        const flp_vocab_chunk chunk = flp_linear_logp_backward_chunk_at(normal, &layout, first);
        const int64_t end = first + chunk.columns, bytes = rows * chunk.columns * flp_dtype_bytes(normal->forward.dtype);

        assert_in_range(chunk.columns, 1, vocab - first);
        assert_true(chunk.columns % FLP_BACKWARD_COLUMNS == 0 || end == vocab);
        if (chunk.borrowed >= 0) {
            assert_int_equal(0, chunk.borrowed % 16);
            assert_true(chunk.borrowed >= end * row_bytes && chunk.borrowed + bytes <= vocab * row_bytes);
            *borrowing += 1;
        } else {
            assert_true(bytes <= room);
        }
        first = end;
    }
}

static void chunks_borrow_what_of_grad_weight_is_written_later(void **state)
{
    static const int64_t rows[] = { 1, 100, 4096, 8192, 20000 };
    flp_linear_logp_backward_problem problem = sized(20000, 4096, 128256, FLP_BF16);
    int borrowing;

    (void)state;
    for (int budget = 0; budget < 2; budget++) {
        problem.memory_budget = budget ? INT64_C(1) << 30 : 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
            flp_linear_logp_backward_problem normal = normal_of(problem);
            check_chunks(&normal, rows[i], &borrowing);
            assert_true(borrowing > 0);
        }
    }
}

/* By default where chunks end follows from D and V alone, and so do the bits of grad_hidden. */
static void default_chunks_are_the_same_for_any_number_of_rows(void **state)
{
    const flp_linear_logp_backward_problem few = normal_of(sized(64, 2048, 151936, FLP_BF16)), many = normal_of(sized(65536, 2048, 151936, FLP_BF16));

    (void)state;
    for (int stashes = 0; stashes < 2; stashes++) {
        const flp_linear_logp_backward_workspace a = flp_linear_logp_backward_workspace_lay_out(&few, stashes, 0, 64);
        const flp_linear_logp_backward_workspace b = flp_linear_logp_backward_workspace_lay_out(&many, stashes, 0, 65536);

        assert_int_equal(a.stash_columns, b.stash_columns);
        for (int64_t first = a.stash_columns; first < 151936;) {
            const int64_t columns = flp_linear_logp_backward_chunk_at(&few, &a, first).columns;

            assert_int_equal(columns, flp_linear_logp_backward_chunk_at(&many, &b, first).columns);
            first += columns;
        }
    }
}

/* What is added to, lies apart or is not [V, D] keeps what it holds. */
static void nothing_is_borrowed_from_what_keeps_its_numbers(void **state)
{
    flp_linear_logp_backward_problem problems[4];
    int borrowing;

    (void)state;
    for (int i = 0; i < 4; i++)
        problems[i] = sized(4096, 2048, 131072, FLP_BF16);
    problems[0].accumulate = FLP_ACCUMULATE_WEIGHT;
    problems[1].grad_weight_stride = 2056;
    problems[2].forward.weight_layout = FLP_HIDDEN_VOCAB;
    problems[3].forward.pointer_alignment = 8;
    for (int i = 0; i < 4; i++) {
        const flp_linear_logp_backward_problem normal = normal_of(problems[i]);
        check_chunks(&normal, 4096, &borrowing);
        assert_int_equal(0, borrowing);
    }
}

static void every_layout_stays_within_the_budget(void **state)
{
    (void)state;
    for (int64_t extra = 0; extra < (INT64_C(1) << 31); extra = 3 * extra + 1000) {
        flp_linear_logp_backward_problem problem = sized(4096, 2048, 131072, FLP_F32), normal = normal_of(problem);
        int64_t columns;
        problem.memory_budget = flp_linear_logp_backward_least_budget(&normal) + extra;
        normal = normal_of(problem);
        for (int stashes = 0; stashes < 2; stashes++) {
            columns = flp_linear_logp_backward_workspace_lay_out(&normal, stashes, 0, 4096).columns;
            assert_int_equal(0, columns % FLP_BACKWARD_COLUMNS);
            assert_in_range(columns, FLP_BACKWARD_COLUMNS, 131072);
            assert_true(flp_linear_logp_backward_workspace_lay_out(&normal, stashes, 0, 4096).bytes <= problem.memory_budget);
            assert_int_equal(columns, flp_linear_logp_backward_workspace_lay_out(&normal, stashes, 0, 1).columns);
            assert_int_equal(stashes ? columns : 0, flp_linear_logp_backward_workspace_lay_out(&normal, stashes, 0, 1).stash_columns);
        }
    }
}

/* The sums of grad_hidden fall away, where it is in hidden's dtype and nothing in it is kept. */
static void a_stash_of_the_whole_vocabulary_needs_little_beside_it(void **state)
{
    const int64_t stash = INT64_C(8192) * 128256 * 2, gradients = INT64_C(8192) * 4096;
    flp_linear_logp_backward_problem problem = sized(8192, 4096, 128256, FLP_BF16);

    (void)state;
    problem.memory_budget = stash + (1 << 20);
    problem = normal_of(problem);
    assert_int_equal(128256, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 0, 8192).columns);
    assert_int_equal(-1, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 0, 8192).sums);
    assert_true(flp_linear_logp_backward_is_direct(&problem, 0));
    problem.memory_budget = stash - 1;
    assert_in_range(flp_linear_logp_backward_workspace_lay_out(&problem, 1, 0, 8192).columns, 118000, 128000);
    assert_false(flp_linear_logp_backward_is_direct(&problem, 0));
    problem.grad_hidden = FLP_F32;
    problem.memory_budget = stash + gradients * (2 + 4) + (1 << 20);
    assert_int_equal(128256, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 0, 8192).columns);
    assert_false(flp_linear_logp_backward_is_direct(&problem, 0));
}

static void chunks_of_rows_have_room_for_a_whole_stash(void **state)
{
    flp_linear_logp_backward_problem problem = sized(8192, 4096, 128256, FLP_F32);

    (void)state;
    problem.accumulate = FLP_ACCUMULATE_WEIGHT;
    problem.memory_budget = 512 << 20;
    problem = normal_of(problem);
    assert_int_equal(2048, flp_linear_logp_backward_row_chunk(&problem));
    assert_true(flp_linear_logp_backward_workspace_lay_out(&problem, 1, 2048, 8192).bytes <= problem.memory_budget);
    assert_int_equal(128256, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 2048, 8192).columns);
    assert_int_equal(2048, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 2048, 8192).chunk_rows);
    assert_int_equal(300, flp_linear_logp_backward_workspace_lay_out(&problem, 1, 2048, 300).chunk_rows);
    problem.memory_budget = 120 << 20; /* 512 rows would take 126 MiB */
    assert_int_equal(0, flp_linear_logp_backward_row_chunk(&problem));
    problem.memory_budget = 512 << 20;
    problem.accumulate = 0;
    assert_int_equal(0, flp_linear_logp_backward_row_chunk(&problem));
    problem.accumulate = FLP_ACCUMULATE_WEIGHT;
    problem.grad_weight = FLP_BF16;
    assert_int_equal(0, flp_linear_logp_backward_row_chunk(&problem));
}

/* All rows that count wait for their chunk: in grad_hidden, where nothing else is put before the last chunk, or in the workspace. */
static void chunks_of_rows_stay_within_the_budget(void **state)
{
    static const flp_dtype dtypes[] = { FLP_BF16, FLP_F32, FLP_NONE };

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int64_t budget = 100 << 20; budget < (INT64_C(1) << 31); budget += budget / 7) {
            flp_linear_logp_backward_problem problem = sized(10000, 4096, 32000, FLP_F32);
            flp_linear_logp_backward_workspace layout;
            int64_t chunk;

            problem.grad_hidden = dtypes[i];
            problem.accumulate = FLP_ACCUMULATE_WEIGHT;
            problem = normal_of(problem);
            problem.memory_budget = budget;
            chunk = flp_linear_logp_backward_row_chunk(&problem);
            if (chunk == 0)
                continue;
            layout = flp_linear_logp_backward_workspace_lay_out(&problem, 1, chunk, 10000);
            assert_true(chunk >= 512 && chunk % 256 == 0 && layout.chunk_rows == chunk);
            assert_true(layout.bytes <= budget);
            assert_int_equal(dtypes[i] == FLP_BF16, layout.compact < 0);
            assert_int_equal(dtypes[i] == FLP_F32, layout.sums >= 0);
        }
}

static void without_gradients_there_are_the_compact_rows_alone(void **state)
{
    flp_linear_logp_backward_problem problem = { .forward = normal_of(sized(4096, 2048, 131072, FLP_F32)).forward };
    const flp_linear_logp_backward_workspace layout = flp_linear_logp_backward_workspace_lay_out(&problem, 0, 0, 1024);
    const int64_t compact = 1024 * problem.forward.hidden * 2;

    (void)state;
    assert_int_equal(0, layout.chunk_rows);
    assert_true(layout.compact >= 0);
    assert_int_equal(layout.compact + compact, layout.bytes);
    assert_in_range(layout.bytes, compact + 2 * 4 * 1024, compact + 2 * 4 * 1024 + 4 * 256);
}

static void the_largest_sizes_are_accepted(void **state)
{
    flp_linear_logp_backward_problem problem = normal_of(sized(FLP_PROBLEM_ROWS_MAX, INT32_MAX, INT32_MAX, FLP_BF16));

    (void)state;
    assert_true(flp_linear_logp_backward_workspace_lay_out(&problem, 0, 0, FLP_PROBLEM_ROWS_MAX).bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_budget_is_said_and_enough),
        cmocka_unit_test(the_default_budget_stays_below_256_mib),
        cmocka_unit_test(a_stash_of_the_whole_vocabulary_needs_little_beside_it),
        cmocka_unit_test(chunks_borrow_what_of_grad_weight_is_written_later),
        cmocka_unit_test(default_chunks_are_the_same_for_any_number_of_rows),
        cmocka_unit_test(nothing_is_borrowed_from_what_keeps_its_numbers),
        cmocka_unit_test(chunks_of_rows_have_room_for_a_whole_stash),
        cmocka_unit_test(chunks_of_rows_stay_within_the_budget),
        cmocka_unit_test(without_gradients_there_are_the_compact_rows_alone),
        cmocka_unit_test(every_layout_stays_within_the_budget),
        cmocka_unit_test(the_largest_sizes_are_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
