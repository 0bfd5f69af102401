/* Widths of chunks by a tuning: what they change, what is refused, and what is offered. */
#include "core/operator.h"
#include "linear_work.h"
#include "operators/linear/chunk_tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"
#include "assertions.h"
#include "operators/linear/linear_budget.h"
#include "operators/linear/linear_logp_backward_plan.h"

enum { TILE = FLP_BACKWARD_COLUMNS, BLOCK = FLP_BACKWARD_ROW_BLOCK };

static flp_linear_logp_backward_problem normal; /* of the last work */

static flp_linear_work work_of(flp_linear_logp_backward_problem problem)
{
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_backward_operator, &problem, &normal));
    flp_linear_work work = flp_linear_budget_backward_work(&normal);
    work.chunks = flp_linear_budget_spend(&work);
    return work;
}

static flp_linear_logp_backward_problem step(int64_t rows, int64_t vocab)
{
    return (flp_linear_logp_backward_problem){
        .forward = { .dtype = FLP_BF16, .rows = rows, .hidden = 2048, .vocab = vocab }, .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16, .with_forward = 1
    };
}

/* Of a frozen head. */
static flp_linear_logp_backward_problem frozen(int64_t rows, int64_t vocab)
{
    flp_linear_logp_backward_problem problem = step(rows, vocab);

    problem.grad_weight = FLP_NONE;
    return problem;
}

static void assert_same_hint(const flp_linear_work *work, const flp_backward_chunks *chunks)
{
    flp_linear_work other = *work;
    char hint[FLP_HINT_BYTES];

    other.chunks = *chunks;
    snprintf(hint, sizeof(hint), "%s", linear_work_hint(work));
    assert_string_equal(hint, linear_work_hint(&other));
}

/* Not as memory: the bytes between fields hold anything. */
static void assert_same_chunks(const flp_backward_chunks *wanted, const flp_backward_chunks *got)
{
    const int64_t wanted_flags[] = { wanted->saves_exp, wanted->direct,     wanted->in_forward,  wanted->hidden_first,
                                     wanted->narrow,    wanted->saves_rest, wanted->keeps_scaled };
    const int64_t got_flags[] = { got->saves_exp, got->direct, got->in_forward, got->hidden_first, got->narrow, got->saves_rest, got->keeps_scaled };
    const int64_t wanted_sizes[] = { wanted->row_chunk,     wanted->columns,    wanted->saved_columns, wanted->lent_columns,
                                     wanted->rest_rows,     wanted->rest_bytes, wanted->spare_columns, wanted->borrowed_columns,
                                     wanted->borrowed_rows, wanted->slab_bytes, wanted->part_columns };
    const int64_t got_sizes[] = { got->row_chunk,     got->columns,          got->saved_columns, got->lent_columns, got->rest_rows,   got->rest_bytes,
                                  got->spare_columns, got->borrowed_columns, got->borrowed_rows, got->slab_bytes,   got->part_columns };

    assert_memory_equal(wanted_flags, got_flags, sizeof(got_flags));
    assert_memory_equal(wanted_sizes, got_sizes, sizeof(got_sizes));
}

static void a_width_is_what_its_item_says(void **state)
{
    const flp_linear_work work = work_of(step(4096, 131072));
    flp_backward_chunks chunks;

    (void)state;
    assert_succeeds(flp_chunk_tuning_apply(&work, "", &chunks));
    assert_same_chunks(&work.chunks, &chunks);
    assert_succeeds(flp_chunk_tuning_apply(&work, "tile.bm=64", &chunks));
    assert_same_chunks(&work.chunks, &chunks);
    assert_succeeds(flp_chunk_tuning_apply(&work, "chunks.borrowed=33,chunks.columns=20,chunks.saved=24,tile.bm=64", &chunks));
    assert_int_equal(33 * TILE, chunks.borrowed_columns);
    assert_int_equal(20 * TILE, chunks.columns);
    assert_int_equal(24 * TILE, chunks.saved_columns);
    assert_same_hint(&work, &chunks);
}

static void no_chunks_take_more_than_the_memory_budget(void **state)
{
    flp_linear_logp_backward_problem problem = frozen(4096, 131072);
    flp_linear_work work = work_of(problem);
    flp_backward_chunks chunks;

    (void)state;
    assert_succeeds(flp_chunk_tuning_apply(&work, "chunks.rows=8", &chunks));
    problem.memory_budget = flp_linear_budget_bytes(&work, &chunks);
    work = work_of(problem);
    assert_succeeds(flp_chunk_tuning_apply(&work, "chunks.rows=8", &chunks));
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.rows=9", &chunks), "the memory_budget is");
}

static void what_cannot_be_had_is_refused(void **state)
{
    flp_linear_work work = work_of(step(4096, 131072));
    flp_linear_logp_backward_problem with_sums = step(4096, 3000);
    flp_backward_chunks chunks;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.columns=513", &chunks), "need other kernels");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.saved=512", &chunks), "need other kernels");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.borrowed=512", &chunks), "room that grad_weight has not");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.rows=4", &chunks), "no such chunks");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.wide=4", &chunks), "got chunks.wide=4, wanted a width");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.columns=0", &chunks), "wanted a width");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.columns=4x", &chunks), "wanted a width");
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.columns", &chunks), "wanted a width");
    work = work_of(step(4096, 3000)); /* one chunk of all, without sums */
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.saved=2", &chunks), "no such chunks");
    with_sums.grad_hidden = FLP_F32;
    work = work_of(with_sums);
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.saved=2", &chunks), "no such chunks");
    work = work_of(frozen(4096, 131072));
    assert_fails(FLP_BAD_ARGUMENT, flp_chunk_tuning_apply(&work, "chunks.columns=4", &chunks), "no such chunks");
    assert_succeeds(flp_chunk_tuning_apply(&work, "chunks.rows=4", &chunks));
    assert_int_equal(4 * BLOCK, chunks.row_chunk);
}

/* Calls check with each line. */
static int each_offer(const flp_linear_work *work, int decides_bits, int64_t most_bytes,
                      void (*check)(const flp_linear_work *work, const char *tuning, int64_t most))
{
    flp_text lines = { .data = NULL };
    char *rest = NULL;
    int count = 0;

    flp_chunk_tuning_offer(work, decides_bits, most_bytes, &lines);
    for (char *line = lines.data ? strtok_r(lines.data, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest), count++)
        check(work, line, most_bytes);
    flp_text_free(&lines);
    return count;
}

static void check_offer(const flp_linear_work *work, const char *tuning, int64_t most_bytes)
{
    flp_backward_chunks chunks;

    assert_succeeds(flp_chunk_tuning_apply(work, tuning, &chunks));
    assert_memory_not_equal(&work->chunks, &chunks, sizeof(chunks));
    assert_true(flp_linear_budget_bytes(work, &chunks) <= most_bytes);
    assert_same_hint(work, &chunks);
}

/* A layout never exceeds a memory_budget, with whatever tuning. */
static void what_is_offered_can_be_had_and_fits(void **state)
{
    const int64_t no_limit = INT64_C(1) << 40, vocabs[] = { 300, 20000, 50257, 131072, 248320 };

    (void)state;
    for (size_t i = 0; i < sizeof(vocabs) / sizeof(*vocabs); i++)
        for (int64_t rows = 1; rows <= 16384; rows = 4 * rows + 3) {
            flp_linear_work work = work_of(step(rows, vocabs[i]));
            const int64_t own = flp_linear_budget_bytes(&work, &work.chunks);

            assert_int_equal(0, each_offer(&work, 0, no_limit, check_offer)); /* all of them decide on bits */
            assert_in_range(each_offer(&work, 1, own, check_offer), 0, each_offer(&work, 1, no_limit, check_offer));
            for (int64_t budget = flp_linear_budget_least(&work); budget < 4 * own; budget = budget * 3 / 2 + 1) {
                flp_linear_logp_backward_problem problem = step(rows, vocabs[i]);

                problem.memory_budget = budget;
                work = work_of(problem);
                each_offer(&work, 1, budget, check_offer);
            }
        }
}

static void wider_chunks_are_offered_where_there_is_memory(void **state)
{
    const flp_linear_work work = work_of(step(4096, 131072));
    const int64_t own = flp_linear_budget_bytes(&work, &work.chunks);
    flp_text lines = { .data = NULL };

    (void)state;
    flp_chunk_tuning_offer(&work, 1, own, &lines);
    assert_string_equal("chunks.borrowed=33\nchunks.borrowed=49\nchunks.borrowed=82\nchunks.borrowed=99\nchunks.borrowed=132\nchunks.columns=20\n"
                        "chunks.columns=30\nchunks.saved=23\nchunks.saved=35\n",
                        lines.data);
    flp_text_free(&lines);
    flp_chunk_tuning_offer(&work, 1, 2 * own, &lines);
    assert_contains(lines.data, "chunks.columns=61\n");
    assert_contains(lines.data, "chunks.saved=70\n");
    flp_text_free(&lines);
}

static void a_frozen_head_is_offered_even_chunks_of_rows(void **state)
{
    const flp_linear_work work = work_of(frozen(4096, 131072));
    flp_text lines = { .data = NULL };

    (void)state;
    flp_chunk_tuning_offer(&work, 1, INT64_C(1) << 40, &lines);
    assert_null(lines.data);
    flp_chunk_tuning_offer(&work, 0, INT64_C(1) << 40, &lines);
    assert_string_equal("chunks.rows=16\nchunks.rows=8\nchunks.rows=6\nchunks.rows=3\nchunks.rows=2\n", lines.data);
    flp_text_free(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_width_is_what_its_item_says),
        cmocka_unit_test(no_chunks_take_more_than_the_memory_budget),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(what_is_offered_can_be_had_and_fits),
        cmocka_unit_test(wider_chunks_are_offered_where_there_is_memory),
        cmocka_unit_test(a_frozen_head_is_offered_even_chunks_of_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
