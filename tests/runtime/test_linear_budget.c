/* What a memory budget is spent on: chunks of the vocabulary, the saved exponentials, chunks of rows; and that it is never exceeded. */
#include "base/dtype.h"
#include "base/int64.h"
#include "operators/linear/linear_budget.h"

#include <stdio.h>

#include "assertions.h"
#include "linear_work.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "core/problem.h"

static void the_least_budget_is_said_and_enough(void **state)
{
    (void)state;
    for (int with_forward = 0; with_forward < 2; with_forward++) {
        flp_linear_logp_backward_problem problem = linear_work_sized(4096, 2048, 131072, FLP_F32), normal = linear_work_normal(problem);
        flp_linear_work work = linear_work_of(&normal, with_forward);
        const int64_t least = flp_linear_budget_least(&work);
        char wanted[64];

        problem.with_forward = with_forward;
        problem.memory_budget = least - 1;
        snprintf(wanted, sizeof(wanted), "wanted 0 or at least %lld bytes for 4096 rows", (long long)least);
        assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_logp_backward_operator, &problem, &normal), wanted);
        problem.memory_budget = least;
        normal = linear_work_normal(problem);
        work = linear_work_of(&normal, with_forward);
        assert_int_equal(FLP_BACKWARD_COLUMNS, work.chunks.columns);
        assert_int_equal(least, linear_work_bytes(&work, 4096));
    }
}

/* At N 8192, D 4096, V 128256 and at N 4096, D 2048, V 131072, in MiB. */
static void the_default_budget_is_what_is_said_of_it(void **state)
{
    const flp_linear_logp_backward_problem wide = linear_work_normal(linear_work_sized(8192, 4096, 128256, FLP_BF16));
    const flp_linear_logp_backward_problem narrow = linear_work_normal(linear_work_sized(4096, 2048, 131072, FLP_BF16));
    const struct {
        const flp_linear_logp_backward_problem *problem;
        int64_t backward, with_forward, losses;
    } cases[] = { { &wide, 240, 253, 225 }, { &narrow, 114, 126, 114 } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const int64_t rows = cases[i].problem->forward.rows;
        const flp_linear_work alone = linear_work_of(cases[i].problem, 0), both = linear_work_of(cases[i].problem, 1),
                              losses = linear_work_with_losses(cases[i].problem);

        assert_in_range(linear_work_bytes(&alone, rows), 1, (cases[i].backward + 1) << 20);
        assert_in_range(linear_work_bytes(&both, rows), 1, (cases[i].with_forward + 1) << 20);
        assert_in_range(linear_work_bytes(&losses, rows), 1, (cases[i].losses + 1) << 20);
    }
}

static int chunk_count(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    int count = chunks->saved_columns > 0;

    for (int64_t first = chunks->saved_columns; first < normal->forward.vocab; count++)
        first += flp_vocab_chunk_at(normal, chunks, normal->forward.rows, first).columns;
    return count;
}

/* A shard's few entries: one chunk where grad_hidden then needs no sums, which make room for it; else few, with or without saved exponentials. */
static void small_vocabularies_go_by_in_few_chunks(void **state)
{
    static const struct {
        int64_t hidden, vocab;
        flp_dtype grad_hidden;
        int direct[2], chunks[2]; /* of a backward alone, and behind a forward that leaves saved exponentials */
    } cases[] = {
        { 4096, 16384, FLP_BF16, { 1, 0 }, { 1, 2 } }, { 4096, 16640, FLP_BF16, { 0, 0 }, { 3, 3 } }, { 4096, 12288, FLP_BF16, { 1, 1 }, { 1, 1 } },
        { 4096, 16384, FLP_F32, { 0, 0 }, { 2, 2 } },  { 4096, 8192, FLP_F32, { 0, 0 }, { 1, 1 } },   { 2048, 15872, FLP_BF16, { 1, 0 }, { 1, 2 } },
        { 2048, 16384, FLP_BF16, { 0, 0 }, { 2, 2 } }, { 8192, 4096, FLP_BF16, { 0, 0 }, { 1, 1 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        flp_linear_logp_backward_problem problem = linear_work_sized(2048, cases[i].hidden, cases[i].vocab, FLP_BF16);

        problem.grad_hidden = cases[i].grad_hidden;
        problem = linear_work_normal(problem);
        for (int with_forward = 0; with_forward < 2; with_forward++) {
            const flp_linear_work work = linear_work_of(&problem, with_forward);

            assert_int_equal(cases[i].direct[with_forward], work.chunks.direct);
            assert_int_equal(cases[i].direct[with_forward], linear_work_laid_out(&work, 2048).part[FLP_PART_SUMS].name == NULL);
            assert_int_equal(cases[i].chunks[with_forward], chunk_count(&problem, &work.chunks));
        }
        problem.grad_filter_eps = 1e-6;
        assert_false(linear_work_of(&problem, 0).chunks.direct);
    }
}

/* fusedlogp.h's bounds of the default, for any vocabulary: 265 MiB for each 8192 rows at D 4096, 32 MiB more for few rows, in the loss 48 MiB, and 1.75 times
 * that for the loss of more than 2 D rows. Sizes behind steps of the default's choices: the first number of rows for which grad_weight lends nothing, and
 * those for which it takes the most. */
static void the_default_keeps_to_its_bounds(void **state)
{
    static const int64_t rows[] = { 1, 256, 1000, 2087, 4096, 6400, 8192, 8193, 16384, 36362, 71018, 75799 };
    const double bytes_a_row = (double)(INT64_C(265) << 20) / 8192;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int64_t vocab = 256; vocab < 300000; vocab += 1280)
            for (int with_forward = 0; with_forward < 2; with_forward++) {
                const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(rows[i], 4096, vocab, with_forward ? FLP_BF16 : FLP_F32));
                const flp_linear_work work = linear_work_of(&normal, with_forward), losses = linear_work_with_losses(&normal);
                const int64_t few = rows[i] < 2400 ? INT64_C(32) << 20 : 0, few_of_loss = rows[i] < 8192 ? INT64_C(48) << 20 : 0;

                assert_in_range(linear_work_bytes(&work, rows[i]), 1, few + (int64_t)(bytes_a_row * (double)rows[i]));
                assert_in_range(linear_work_bytes(&losses, rows[i]), 1, few_of_loss + (int64_t)((rows[i] > 8192 ? 1.75 : 1) * bytes_a_row * (double)rows[i]));
            }
}

/* fusedlogp.h's bound below D 896: 310 MiB for each 8192 rows, 64 MiB more for few rows. */
static void the_default_keeps_to_its_bound_where_hidden_is_short(void **state)
{
    static const int64_t rows[] = { 1, 256, 1000, 2087, 4096, 8192, 16384, 75799 };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int64_t hidden = 32; hidden < 896; hidden += 72)
            for (int64_t vocab = 256; vocab < 300000; vocab += 6400) {
                const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(rows[i], hidden, vocab, FLP_BF16));
                const flp_linear_work losses = linear_work_with_losses(&normal);

                assert_in_range(linear_work_bytes(&losses, rows[i]), 1, (rows[i] < 8192 ? INT64_C(64) << 20 : 0) + rows[i] * (INT64_C(310) << 20) / 8192);
            }
}

/* The sums of grad_hidden fall away, where it is in hidden's dtype and nothing in it is kept. What the forward's combine reads lies beside the saved
 * exponentials. */
static void saved_exponentials_of_the_whole_vocabulary_need_little_beside_it(void **state)
{
    const int64_t saved_exp = INT64_C(8192) * 128256 * 2, combine = INT64_C(8192) * 237 * 8, gradients = INT64_C(8192) * 4096;
    flp_linear_logp_backward_problem problem = linear_work_sized(8192, 4096, 128256, FLP_BF16);
    flp_linear_work work;

    (void)state;
    problem = linear_work_normal(problem);
    problem.memory_budget = saved_exp + combine + (1 << 20);
    work = linear_work_with_losses(&problem);
    assert_int_equal(128256, work.chunks.columns);
    assert_null(linear_work_laid_out(&work, 8192).part[FLP_PART_SUMS].name);
    assert_true(work.chunks.direct);
    problem.memory_budget = saved_exp - 1;
    work = linear_work_with_losses(&problem);
    assert_in_range(work.chunks.columns, 118000, 128000);
    assert_false(work.chunks.direct);
    problem.grad_hidden = FLP_F32;
    problem.memory_budget = saved_exp + gradients * (2 + 4) + (1 << 20);
    work = linear_work_with_losses(&problem);
    assert_int_equal(128256, work.chunks.columns);
    assert_false(work.chunks.direct);
}

/* grad_hidden's product comes first where the budget has room for rows times their factors beside the saved exponentials, and no grad_bias is wanted. */
static void grad_hidden_comes_first_where_there_is_room(void **state)
{
    const int64_t saved_exp = INT64_C(8192) * 128256 * 2, scaled = INT64_C(8192) * 4096 * 2, beside = INT64_C(16) << 20;
    flp_linear_logp_backward_problem problem = linear_work_sized(8192, 4096, 128256, FLP_BF16);
    flp_linear_work work;
    flp_workspace workspace;

    (void)state;
    problem = linear_work_normal(problem);
    problem.memory_budget = saved_exp + beside;
    work = linear_work_with_losses(&problem);
    assert_true(work.chunks.direct && !work.chunks.hidden_first);
    assert_null(linear_work_laid_out(&work, 8192).part[FLP_PART_SCALED_ROWS].name);
    assert_string_equal(":saved_exp:direct", linear_work_hint(&work));
    problem.memory_budget += scaled;
    work = linear_work_with_losses(&problem);
    workspace = linear_work_laid_out(&work, 8192);
    assert_true(work.chunks.direct && work.chunks.hidden_first);
    assert_string_equal(":saved_exp:direct:hidden_first", linear_work_hint(&work));
    assert_int_equal(scaled, workspace.part[FLP_PART_SCALED_ROWS].bytes);
    assert_true(workspace.part[FLP_PART_SCALED_ROWS].last >= FLP_STEP_WEIGHT_BEHIND && workspace.part[FLP_PART_TARGET_ORDER].last >= FLP_STEP_WEIGHT_BEHIND);
    problem.grad_bias = FLP_BF16;
    assert_false(linear_work_with_losses(&problem).chunks.hidden_first);
    problem.grad_bias = problem.grad_weight = FLP_NONE;
    assert_false(linear_work_with_losses(&problem).chunks.hidden_first);
}

/* In fp32 grad_hidden has no place for the packed rows, so that its product adds to sums; and of grad_weight alone there is no such product. */
static void all_exponentials_are_saved_without_such_a_product_too(void **state)
{
    flp_linear_logp_backward_problem problem = linear_work_sized(8192, 4096, 128256, FLP_BF16);
    flp_linear_work work;

    (void)state;
    problem = linear_work_normal(problem);
    problem.memory_budget = INT64_C(3) << 30;
    problem.grad_hidden = FLP_F32;
    work = linear_work_with_losses(&problem);
    assert_string_equal(":saved_exp:all_saved", linear_work_hint(&work));
    problem.grad_hidden = FLP_NONE;
    work = linear_work_with_losses(&problem);
    assert_string_equal(":saved_exp:all_saved", linear_work_hint(&work));
    problem.memory_budget = INT64_C(256) << 20;
    work = linear_work_with_losses(&problem);
    assert_string_equal(":saved_exp", linear_work_hint(&work));
}

static int64_t row_chunk(const flp_linear_logp_backward_problem *normal)
{
    return linear_work_with_losses(normal).chunks.row_chunk;
}

static void chunks_of_rows_have_room_for_all_saved_exponentials(void **state)
{
    flp_linear_logp_backward_problem problem = linear_work_sized(8192, 4096, 128256, FLP_F32);
    flp_linear_work work;

    (void)state;
    problem.accumulate = FLP_ACCUMULATE_WEIGHT;
    problem.memory_budget = 512 << 20;
    problem = linear_work_normal(problem);
    work = linear_work_with_losses(&problem);
    assert_int_equal(2048, work.chunks.row_chunk);
    assert_int_equal(128256, work.chunks.columns);
    assert_in_range(linear_work_bytes(&work, 8192), 1, problem.memory_budget);
    assert_int_equal(2048, flp_linear_work_chunk_rows(&work, 8192));
    assert_int_equal(300, flp_linear_work_chunk_rows(&work, 300));
    problem.memory_budget = INT64_C(140) << 20; /* 512 rows would take 126 MiB and what the forward's combine reads; one tile of all rows takes 132 */
    assert_int_equal(512, row_chunk(&problem));
    problem.memory_budget = 512 << 20;
    problem.accumulate = 0;
    assert_int_equal(0, row_chunk(&problem));
    problem.accumulate = FLP_ACCUMULATE_WEIGHT;
    problem.grad_weight = FLP_BF16;
    assert_int_equal(0, row_chunk(&problem));
}

/* A frozen head: rows in chunks of the same size for any number of them by default, 256 MiB at N 8192, D 4096, V 128256, and any chunks a budget allows. */
static void grad_hidden_alone_takes_rows_in_chunks(void **state)
{
    flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(8192, 4096, 128256, FLP_NONE));
    flp_linear_work work = linear_work_with_losses(&problem);

    (void)state;
    assert_int_equal(1024, work.chunks.row_chunk);
    assert_true(work.chunks.direct);
    assert_in_range(linear_work_bytes(&work, 8192), 1, 288 << 20);
    problem.memory_budget = 288 << 20;
    assert_int_equal(1024, row_chunk(&problem));
    problem.memory_budget = 0;
    problem.forward.rows = 100000;
    assert_int_equal(1024, row_chunk(&problem));
    problem.memory_budget = INT64_C(12000) << 20; /* which has room for 42240 rows, hardly faster */
    assert_int_equal(8448, row_chunk(&problem));
    problem.memory_budget = 0;
    problem.grad_bias = FLP_F32;
    assert_int_equal(0, row_chunk(&problem));
    problem = linear_work_normal(linear_work_sized(8192, 4096, 262144, FLP_NONE));
    assert_int_equal(768, row_chunk(&problem));
    problem = linear_work_normal(linear_work_sized(8192, 4096, 393217, FLP_NONE)); /* of fewer rows the weight is read too often */
    work = linear_work_with_losses(&problem);
    assert_int_equal(0, work.chunks.row_chunk);
    assert_in_range(work.chunks.saved_columns, 1, 8192);
}

/* A chunk of rows fills the waves of grad_hidden's product, with narrow tiles where these are fuller, also because less of their last column lies behind hidden's
 * end. The product has parts where these make the waves of chunks or of few rows fuller. */
static void chunks_of_rows_fill_the_multiprocessors(void **state)
{
    static const struct {
        int64_t hidden, vocab, rows, parts, part_columns;
        int narrow;
    } wanted[] = { { 4096, 128256, 1024, 2, 64128, 0 },  { 2048, 131072, 1024, 4, 32768, 0 }, { 2304, 256000, 768, 7, 36608, 0 },
                   { 1536, 151936, 1024, 11, 13824, 0 }, { 1024, 50304, 2816, 3, 16768, 0 },  { 2560, 151936, 1024, 4, 38016, 1 },
                   { 3584, 152064, 1024, 4, 38016, 1 },  { 5120, 151936, 1024, 2, 75968, 1 }, { 7168, 129280, 1024, 2, 64640, 1 },
                   { 8192, 128256, 1024, 1, 0, 0 },      { 4096, 393216, 512, 2, 196608, 0 }, { 896, 151936, 1024, 9, 16896, 1 },
                   { 1024, 151936, 1024, 8, 19008, 0 },  { 2048, 248320, 768, 8, 31040, 0 },  { 4096, 100352, 1536, 2, 50176, 0 },
                   { 2048, 32000, 4096, 1, 0, 0 } };

    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        const flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(8192, wanted[i].hidden, wanted[i].vocab, FLP_NONE));
        const flp_linear_work losses = linear_work_with_losses(&problem), forward = linear_work_of(&problem, 1);

        assert_int_equal(wanted[i].rows, losses.chunks.row_chunk);
        assert_int_equal(wanted[i].narrow, losses.chunks.narrow);
        assert_int_equal(wanted[i].rows, forward.chunks.row_chunk);
        assert_int_equal(wanted[i].narrow, forward.chunks.narrow);
        assert_int_equal(wanted[i].parts, flp_vocab_chunks_parts(&problem, &losses.chunks));
        assert_int_equal(wanted[i].part_columns, losses.chunks.part_columns);
        assert_int_equal(wanted[i].part_columns, forward.chunks.part_columns);
        assert_in_range(linear_work_bytes(&losses, 8192), 1, 430 << 20);
    }
}

/* With a budget, too, as long as it has room for the sums of the parts of 512 rows: around those numbers of rows that just fit at once. */
static void parts_do_not_depend_on_the_rows(void **state)
{
    static const struct {
        int64_t hidden, vocab, budget, part_columns;
    } of[] = { { 2048, 131072, 256 << 20, 32768 }, { 4096, 128256, INT64_C(2100) << 20, 64128 }, { 4096, 128256, 0, 64128 } };

    (void)state;
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        for (int64_t rows = 64; rows <= 10240; rows += 64) {
            flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(rows, of[i].hidden, of[i].vocab, FLP_NONE));
            flp_linear_work work;

            problem.memory_budget = of[i].budget;
            work = linear_work_with_losses(&problem);
            assert_int_equal(of[i].part_columns, work.chunks.part_columns);
        }
}

/* The bounds of fusedlogp.h, but for small vocabularies. */
static void grad_hidden_alone_takes_as_much_memory_as_is_said(void **state)
{
    static const int64_t rows[] = { 64, 1024, 8192, 32768, 65536 }, hidden[] = { 128, 768, 1536, 2304, 2560, 3072, 4096, 4912, 5632, 8192 };
    static const int64_t vocab[] = { 32000, 32768, 50304, 65536, 77824, 131072, 155648, 256000, 393216 };

    (void)state;
    for (size_t n = 0; n < sizeof(rows) / sizeof(*rows); n++)
        for (size_t d = 0; d < sizeof(hidden) / sizeof(*hidden); d++)
            for (size_t v = 0; v < sizeof(vocab) / sizeof(*vocab); v++) {
                const flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(rows[n], hidden[d], vocab[v], FLP_NONE));
                const flp_linear_work losses = linear_work_with_losses(&problem), forward = linear_work_of(&problem, 1);
                const int64_t elements = rows[n] * hidden[d], fixed = (vocab[v] > 155648 ? 460 : 410) << 20, relative = elements * 2 + (135 << 20);
                const int64_t most = relative > fixed ? relative : fixed;

                assert_in_range(linear_work_bytes(&losses, rows[n]), 1, most);
                assert_in_range(linear_work_bytes(&forward, rows[n]), 1, most + elements * 4);
            }
}

/* Behind a forward: its chunks of rows leave grad_hidden's products in fp32 where these were, whatever their upstream gradient. */
static void grad_hidden_alone_behind_a_forward_is_the_forwards_product(void **state)
{
    flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(8192, 4096, 128256, FLP_NONE));
    flp_linear_work work = linear_work_of(&problem, 1);

    (void)state;
    assert_true(work.chunks.in_forward && !work.chunks.narrow && !work.chunks.direct);
    assert_int_equal(1024, work.chunks.row_chunk);
    assert_in_range(linear_work_bytes(&work, 8192), INT64_C(8192) * 4096 * 4, (INT64_C(8192) * 4096 * 4) + (288 << 20));
    assert_int_equal(8192, flp_linear_work_packed_stride(&work));
    assert_null(linear_work_laid_out(&work, 8192).part[FLP_PART_SUMS].name);
    problem.memory_budget = 256 << 20;
    work = linear_work_of(&problem, 1);
    assert_int_equal(512, work.chunks.row_chunk);
    assert_true(work.chunks.in_forward && work.chunks.narrow);
    assert_int_equal(0, work.chunks.part_columns); /* whose sums have no room */
    assert_string_equal(":saved_exp:in_forward:narrow", linear_work_hint(&work));
    problem.memory_budget = 416 << 20;
    work = linear_work_of(&problem, 1);
    assert_string_equal(":saved_exp:in_forward:parts2", linear_work_hint(&work));
    assert_int_equal(1024, work.chunks.row_chunk);
    assert_int_equal(64128, work.chunks.part_columns);
    assert_true(work.chunks.in_forward && !work.chunks.narrow);
    problem.memory_budget = INT64_C(2400) << 20; /* all at a time */
    work = linear_work_of(&problem, 1);
    assert_true(work.chunks.direct && !work.chunks.in_forward);
    problem.memory_budget = 0;
    assert_false(linear_work_of(&problem, 0).chunks.in_forward);
    problem.grad_weight = FLP_F32;
    problem.accumulate = FLP_ACCUMULATE_WEIGHT;
    problem.grad_weight_stride = 4096;
    assert_int_equal(0, linear_work_of(&problem, 1).chunks.row_chunk);
}

/* All valid rows wait for their chunk: in grad_hidden, where nothing else is put before the last chunk, or in the workspace. */
static void chunks_of_rows_stay_within_the_budget(void **state)
{
    static const flp_dtype dtypes[] = { FLP_BF16, FLP_F32, FLP_NONE };
    int chunks = 0;

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int64_t budget = 200 << 20; budget < (INT64_C(1) << 31); budget += budget / 7) {
            flp_linear_logp_backward_problem problem = linear_work_sized(10000, 4096, 32000, FLP_F32);
            flp_linear_work work;
            flp_workspace workspace;

            problem.grad_hidden = dtypes[i];
            problem.accumulate = FLP_ACCUMULATE_WEIGHT;
            problem = linear_work_normal(problem);
            problem.memory_budget = budget;
            work = linear_work_with_losses(&problem);
            workspace = linear_work_laid_out(&work, 10000);
            if (work.chunks.row_chunk == 0)
                continue;
            chunks++;
            assert_true(work.chunks.row_chunk >= 512 && work.chunks.row_chunk % 256 == 0);
            assert_true(workspace.bytes <= budget);
            assert_int_equal(dtypes[i] == FLP_BF16, workspace.part[FLP_PART_PACKED_ROWS].name == NULL);
            assert_int_equal(dtypes[i] == FLP_F32, workspace.part[FLP_PART_SUMS].name != NULL);
        }
    assert_true(chunks > 10);
}

/* ---- problems drawn at random ---- */

static uint64_t state_of_draws;

static int64_t draw(int64_t below)
{
    state_of_draws = state_of_draws * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state_of_draws >> 33) % (uint64_t)below);
}

/* A number of any order of magnitude up to 2^log2. */
static int64_t draw_size(int log2)
{
    return 1 + draw(INT64_C(1) << (1 + draw(log2)));
}

static flp_linear_logp_backward_problem draw_problem(void)
{
    static const flp_dtype dtypes[] = { FLP_BF16, FLP_F16, FLP_F32 };
    const int gradients = 1 + (int)draw(7);
    flp_linear_logp_backward_problem problem = {
        .forward = { .dtype = dtypes[draw(3)],
                     .rows = draw_size(14),
                     .hidden = draw_size(13),
                     .vocab = draw_size(18),
                     .bias_dtype = FLP_F32,
                     .softcap = draw(4) == 0 ? 30 : 0,
                     .pointer_alignment = draw(3) == 0 ? 4 : 16,
                     .weight_layout = draw(3) == 0 ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN },
        .grad_hidden = gradients & 1 ? dtypes[draw(3)] : FLP_NONE,
        .grad_weight = gradients & 2 ? dtypes[draw(3)] : FLP_NONE,
        .grad_bias = gradients & 4 ? dtypes[draw(3)] : FLP_NONE,
        .accumulate = (unsigned)(draw(8) & gradients),
        .g_entropy = draw(5) == 0,
        .grad_filter_eps = draw(4) == 0 ? 1e-6 : 0,
        .with_forward = (int)draw(2),
    };

    problem = linear_work_normal(problem);
    return problem;
}

/* As linear_logp_backward, or in linear_cross_entropy with or without sums of logits. */
static flp_linear_work draw_work(const flp_linear_logp_backward_problem *normal)
{
    flp_linear_work work = flp_linear_budget_backward_work(normal);

    if (!normal->with_forward || draw(3) == 0)
        return work;
    work.losses = 1;
    work.logit_sums = (int)draw(2);
    work.chunks.saves_exp &= !work.logit_sums;
    return work;
}

static int64_t draw_budget(int64_t least)
{
    const int64_t more = draw_size(34);

    return draw(4) == 0 ? least : draw(3) == 0 ? least + draw(4096) : least + more;
}

/* Every width and every number of rows, up to the problem's, stays within the budget; fewer rows take no more. */
static void no_workspace_is_larger_than_the_budget(void **state)
{
    (void)state;
    state_of_draws = 1;
    for (int i = 0; i < 20000; i++) {
        flp_linear_logp_backward_problem normal = draw_problem();
        flp_linear_work work = draw_work(&normal);
        const int64_t least = flp_linear_budget_least(&work), rows = normal.forward.rows;
        int64_t bytes;

        normal.memory_budget = least - 1;
        assert_int_equal(FLP_BAD_ARGUMENT, flp_linear_budget_check(&work));
        normal.memory_budget = draw_budget(least);
        assert_succeeds(flp_linear_budget_check(&work));
        work.chunks = flp_linear_budget_spend(&work);
        bytes = linear_work_bytes(&work, rows);
        assert_true(bytes <= normal.memory_budget);
        for (int64_t fewer = rows; fewer > 0; fewer -= 1 + draw(fewer)) {
            const int64_t less = linear_work_bytes(&work, fewer);
            assert_true(less <= bytes);
            bytes = less;
        }
        work.splits = work.splits > 0 ? 1 + (int)draw(work.splits) : 0; /* a kernel's own */
        assert_true(linear_work_bytes(&work, rows) <= normal.memory_budget);
    }
}

/* The shorter hidden is, the more a block's launches weigh. A width decides on bits, and should not change by accident. */
static void blocks_of_saved_exponentials_are_wide_where_hidden_is_short(void **state)
{
    static const struct {
        int64_t hidden, vocab, columns, saved;
    } wanted[] = { { 248, 50304, 0, 12032 },       { 256, 50304, 8448, 33792 },  { 512, 32000, 8448, 16896 },    { 640, 262144, 8448, 211200 },
                   { 768, 50304, 8448, 33792 },    { 768, 24000, 0, 12032 },     { 888, 151936, 8448, 118272 },  { 896, 151936, 8448, 118272 },
                   { 1024, 50304, 8448, 33792 },   { 1280, 32000, 9984, 19968 }, { 1536, 65536, 8448, 50688 },   { 2048, 65536, 6144, 55296 },
                   { 2048, 131072, 8448, 118272 }, { 4096, 32000, 6912, 20736 }, { 4096, 128256, 6144, 116736 }, { 1920, 50304, 7680, 38400 },
                   { 3200, 128256, 3840, 119040 } };

    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        const flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(8192, wanted[i].hidden, wanted[i].vocab, FLP_BF16));
        const flp_linear_work work = linear_work_with_losses(&problem);

        assert_int_equal(wanted[i].columns, work.chunks.lent_columns);
        assert_int_equal(wanted[i].saved, work.chunks.saved_columns);
    }
}

static flp_backward_chunks chunks_with(flp_linear_logp_backward_problem *normal, const flp_linear_work *work, int64_t budget)
{
    normal->memory_budget = budget;
    return flp_linear_budget_spend(work);
}

static int are_same_widths(const flp_backward_chunks *a, const flp_backward_chunks *b)
{
    return a->columns == b->columns && a->saved_columns == b->saved_columns && a->lent_columns == b->lent_columns &&
           a->borrowed_columns == b->borrowed_columns && a->slab_bytes == b->slab_bytes;
}

/* With a budget, few rows take the default's chunks, whose products of grad_hidden run side by side, although the whole vocabulary has room. */
static void few_rows_take_the_default_chunks(void **state)
{
    static const struct {
        int64_t rows, hidden;
        int usual_with_losses, usual_with_forward, usual_alone;
    } wanted[] = { { 64, 4096, 1, 1, 1 },  { 128, 4096, 1, 0, 1 }, { 256, 4096, 0, 0, 1 }, { 512, 4096, 0, 0, 0 },
                   { 128, 2048, 1, 1, 1 }, { 256, 2048, 1, 0, 1 }, { 512, 2048, 0, 0, 1 }, { 1024, 2048, 0, 0, 0 },
                   { 128, 8192, 0, 0, 1 }, { 64, 16384, 0, 0, 1 }, { 1024, 256, 1, 1, 1 }, { 4096, 256, 0, 0, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(wanted[i].rows, wanted[i].hidden, 131072, FLP_BF16));
        const flp_linear_work works[] = { linear_work_with_losses(&problem), linear_work_of(&problem, 1), linear_work_of(&problem, 0) };
        const int usual[] = { wanted[i].usual_with_losses, wanted[i].usual_with_forward, wanted[i].usual_alone };

        for (int j = 0; j < 3; j++) {
            const flp_backward_chunks by_default = chunks_with(&problem, &works[j], 0), chunks = chunks_with(&problem, &works[j], INT64_C(8) << 30);

            assert_int_equal(usual[j], are_same_widths(&chunks, &by_default));
            assert_int_equal(!usual[j], chunks.direct);
        }
        problem.grad_weight = FLP_F32; /* in which nothing is kept: all that has room is saved */
        problem.accumulate = FLP_ACCUMULATE_WEIGHT;
        problem = linear_work_normal(problem);
        const flp_linear_work losses = linear_work_with_losses(&problem), pair = linear_work_of(&problem, 1);
        assert_true(chunks_with(&problem, &losses, INT64_C(8) << 30).direct);
        assert_true(chunks_with(&problem, &pair, INT64_C(8) << 30).direct);
    }
}

/* Another byte of the budget never makes the chunks of the vocabulary narrower, but for the default's chunks, which few rows take. */
static void more_memory_is_never_spent_worse(void **state)
{
    int narrower = 0;

    (void)state;
    state_of_draws = 2;
    for (int i = 0; i < 500; i++) {
        flp_linear_logp_backward_problem normal = draw_problem();
        flp_linear_work work = draw_work(&normal);
        int64_t budget = flp_linear_budget_least(&work), saved_exp = 0;

        for (int j = 0; j < 20; j++, budget += budget / 3) {
            const flp_backward_chunks usual = chunks_with(&normal, &work, 0), chunks = chunks_with(&normal, &work, budget);

            if (are_same_widths(&chunks, &usual))
                continue;
            assert_true(chunks.saved_columns >= saved_exp);
            saved_exp = chunks.saved_columns;
            narrower++;
        }
    }
    assert_true(narrower > 5000);
}

/* The least and the most memory, and the default's, are spent on the problem without a number that overflows, which the sanitizer would find. */
static void spend_on(flp_linear_logp_backward_problem problem)
{
    for (int mode = 0; mode < 3; mode++)
        for (int budget = 0; budget < 3; budget++) {
            const flp_linear_logp_backward_problem normal = linear_work_normal(problem);
            const flp_linear_work by_default = mode == 2 ? linear_work_with_losses(&normal) : linear_work_of(&normal, mode);
            flp_linear_logp_backward_problem limited = normal;
            flp_linear_work work;

            limited.memory_budget = budget == 0 ? 0 : budget == 1 ? INT64_MAX : flp_linear_budget_least(&by_default);
            work = mode == 2 ? linear_work_with_losses(&limited) : linear_work_of(&limited, mode);
            assert_true(linear_work_bytes(&work, problem.forward.rows) > 0);
            assert_true(limited.memory_budget == 0 || linear_work_bytes(&work, problem.forward.rows) <= limited.memory_budget);
            assert_true(linear_work_bytes(&work, 1) > 0);
        }
}

/* With more, the rows of the vocabulary's blocks, which the kernels count in int one behind the other, would be too many: there are none then. */
static void blocks_have_rows_that_an_int_counts(void **state)
{
    const flp_linear_logp_backward_problem few = linear_work_normal(linear_work_sized(1000000, 256, 1 << 24, FLP_BF16));
    const flp_linear_logp_backward_problem many = linear_work_normal(linear_work_sized(1200000, 256, 1 << 24, FLP_BF16));
    const flp_linear_work counted = linear_work_with_losses(&few), work = linear_work_with_losses(&many);
    const int64_t columns = counted.chunks.lent_columns;

    (void)state;
    assert_true(columns > 0 && flp_int64_divide_up(1 << 24, columns) * 1000192 <= INT32_MAX);
    assert_true(flp_int64_divide_up(1 << 24, columns) * 1200128 > INT32_MAX);
    assert_int_equal(0, work.chunks.lent_columns);
}

static void the_largest_sizes_are_accepted(void **state)
{
    static const int64_t rows[] = { 1, 1 << 25, FLP_PROBLEM_ROWS_MAX }, sizes[] = { 300, 1 << 16, INT32_MAX - 511, INT32_MAX };
    static const flp_dtype dtypes[] = { FLP_NONE, FLP_BF16, FLP_F32 };
    flp_linear_logp_backward_problem frozen = linear_work_normal(linear_work_sized(1 << 25, INT32_MAX - 7, 300, FLP_NONE));
    int tried = 0;

    (void)state;
    frozen.memory_budget = INT64_C(1) << 58;
    assert_int_equal(16384, row_chunk(&frozen));
    for (int i = 0; i < 3 * 4 * 4 * 3; i++) {
        const int64_t hidden = sizes[i / 3 % 4], vocab = sizes[i / 12 % 4];
        const flp_dtype grad_weight = dtypes[i / 48];

        if (grad_weight == FLP_F32 && hidden > INT32_MAX / 2 && vocab > INT32_MAX / 2)
            continue; /* more than 2^63 bytes are no matrix */
        spend_on(linear_work_sized(rows[i % 3], hidden, vocab, grad_weight));
        tried++;
    }
    assert_int_equal(3 * 4 * 4 * 3 - 3 * 4, tried);
}

/* Kernels count the columns of whole blocks. */
static void the_last_block_of_the_largest_vocabulary_fits_an_int(void **state)
{
    static const int64_t vocabs[] = { INT32_MAX - 256, INT32_MAX - 5000, INT32_MAX - 30000 };

    (void)state;
    for (size_t i = 0; i < sizeof(vocabs) / sizeof(*vocabs); i++) {
        const flp_linear_logp_backward_problem problem = linear_work_normal(linear_work_sized(64, 1024, vocabs[i], FLP_BF16));
        const flp_backward_chunks chunks = linear_work_with_losses(&problem).chunks;

        assert_true(chunks.lent_columns > 0 && (chunks.saves_rest || i < 2));
        assert_true(chunks.saved_columns + flp_vocab_chunks_rest_blocks(&problem, &chunks) * chunks.lent_columns <= INT32_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_budget_is_said_and_enough),
        cmocka_unit_test(the_last_block_of_the_largest_vocabulary_fits_an_int),
        cmocka_unit_test(the_default_budget_is_what_is_said_of_it),
        cmocka_unit_test(saved_exponentials_of_the_whole_vocabulary_need_little_beside_it),
        cmocka_unit_test(grad_hidden_comes_first_where_there_is_room),
        cmocka_unit_test(small_vocabularies_go_by_in_few_chunks),
        cmocka_unit_test(the_default_keeps_to_its_bounds),
        cmocka_unit_test(the_default_keeps_to_its_bound_where_hidden_is_short),
        cmocka_unit_test(all_exponentials_are_saved_without_such_a_product_too),
        cmocka_unit_test(chunks_of_rows_have_room_for_all_saved_exponentials),
        cmocka_unit_test(grad_hidden_alone_takes_rows_in_chunks),
        cmocka_unit_test(chunks_of_rows_fill_the_multiprocessors),
        cmocka_unit_test(parts_do_not_depend_on_the_rows),
        cmocka_unit_test(grad_hidden_alone_takes_as_much_memory_as_is_said),
        cmocka_unit_test(grad_hidden_alone_behind_a_forward_is_the_forwards_product),
        cmocka_unit_test(chunks_of_rows_stay_within_the_budget),
        cmocka_unit_test(no_workspace_is_larger_than_the_budget),
        cmocka_unit_test(blocks_of_saved_exponentials_are_wide_where_hidden_is_short),
        cmocka_unit_test(few_rows_take_the_default_chunks),
        cmocka_unit_test(more_memory_is_never_spent_worse),
        cmocka_unit_test(blocks_have_rows_that_an_int_counts),
        cmocka_unit_test(the_largest_sizes_are_accepted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
