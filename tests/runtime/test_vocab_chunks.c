/* Where the chunks of the vocabulary end, and where what is kept of them lies: in the workspace, or in grad_weight until that is written. */
#include "operators/linear/vocab_chunks.h"

#include "assertions.h"
#include "base/dtype.h"
#include "linear_work.h"

/* The chunks behind the saved exponentials, first to last: each has its dlogit where grad_weight is written later, or in the workspace, which has room. */
static void check_chunks(const flp_linear_logp_backward_problem *normal, int64_t rows, int *borrowing)
{
    const flp_linear_work work = linear_work_of(normal, 1);
    const flp_workspace workspace = linear_work_laid_out(&work, rows);
    const int64_t row_bytes = normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), vocab = normal->forward.vocab;

    *borrowing = 0;
    for (int64_t first = work.chunks.saved_columns; first < vocab;) {
        const flp_vocab_chunk chunk = flp_vocab_chunk_at(normal, &work.chunks, rows, first);
        const int64_t end = first + chunk.columns, bytes = rows * chunk.columns * flp_dtype_bytes(normal->forward.dtype);

        assert_in_range(chunk.columns, 1, vocab - first);
        assert_true(chunk.columns % FLP_BACKWARD_COLUMNS == 0 || end == vocab);
        if (chunk.borrowed >= 0) {
            assert_int_equal(0, chunk.borrowed % 16);
            assert_true(chunk.borrowed >= end * row_bytes && chunk.borrowed + bytes <= vocab * row_bytes);
            *borrowing += 1;
        } else {
            assert_true(bytes <= workspace.part[FLP_PART_DLOGIT].bytes);
        }
        first = end;
    }
}

static void chunks_borrow_what_of_grad_weight_is_written_later(void **state)
{
    static const int64_t rows[] = { 1, 100, 4096, 8192, 20000 };
    flp_linear_logp_backward_problem problem = linear_work_sized(20000, 4096, 128256, FLP_BF16);
    int borrowing;

    (void)state;
    for (int budget = 0; budget < 2; budget++) {
        problem.memory_budget = budget ? INT64_C(1) << 30 : 0;
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
            flp_linear_logp_backward_problem normal = linear_work_normal(problem);
            check_chunks(&normal, rows[i], &borrowing);
            assert_true(borrowing > 0);
        }
    }
}

/* By default where chunks end follows from D and V alone, and so do the bits of grad_hidden. */
static void default_chunks_are_the_same_for_any_number_of_rows(void **state)
{
    const flp_linear_logp_backward_problem few = linear_work_normal(linear_work_sized(64, 2048, 151936, FLP_BF16)),
                                           many = linear_work_normal(linear_work_sized(65536, 2048, 151936, FLP_BF16));

    (void)state;
    for (int with_forward = 0; with_forward < 2; with_forward++) {
        const flp_backward_chunks a = linear_work_of(&few, with_forward).chunks, b = linear_work_of(&many, with_forward).chunks;

        assert_int_equal(with_forward, a.saved_columns > 0);
        assert_int_equal(a.saved_columns, b.saved_columns);
        for (int64_t first = a.saved_columns; first < 151936;) {
            const int64_t columns = flp_vocab_chunk_at(&few, &a, 64, first).columns;

            assert_int_equal(columns, flp_vocab_chunk_at(&many, &b, 65536, first).columns);
            first += columns;
        }
    }
}

/* The rest has room in the workspace from right behind the forward on, or a block at a time; but only if no other block is computed again. */
static void check_rest(const flp_linear_work *work, int64_t rows, const flp_vocab_lending *lending, const flp_workspace *workspace)
{
    const flp_backward_chunks *chunks = &work->chunks;
    const int64_t rest = flp_vocab_chunks_rest_blocks(work->backward, chunks), bytes = workspace->part[FLP_PART_DLOGIT].bytes;
    const int64_t block_bytes = lending->slab_rows * chunks->lent_columns * 2;

    assert_int_equal(chunks->saved_columns < work->forward->vocab && chunks->saves_rest, rest > 0);
    if (rest == 0)
        return;
    assert_true(chunks->saved_columns + rest * chunks->lent_columns >= work->forward->vocab);
    assert_in_range(lending->early, 0, rest);
    assert_true(lending->rest == rest || (lending->rest == 0 && rows > chunks->rest_rows));
    assert_true(lending->rest + lending->early == 0 || lending->again == 0);
    assert_true(lending->rest == 0 || bytes >= rows * flp_vocab_chunks_rest_stride(work->backward, chunks) * 2);
    assert_true(lending->early == 0 || bytes >= lending->early * block_bytes);
    assert_true(lending->early == 0 || lending->scaled < 0 ||
                lending->scaled >=
                    (chunks->saved_columns + lending->early * chunks->lent_columns) * work->forward->hidden * flp_dtype_bytes(work->backward->grad_weight));
    assert_true(lending->rest + lending->early == rest || bytes >= rows * chunks->lent_columns * 2);
}

/* What a call of so many rows has in grad_weight lies apart, and behind all that is written before it has been read; the rest has room in the workspace. */
static void check_lending(const flp_linear_work *work, int64_t rows)
{
    const flp_linear_logp_backward_problem *normal = work->backward;
    const flp_backward_chunks *chunks = &work->chunks;
    const flp_vocab_lending lending = flp_vocab_chunks_lending(normal, chunks, rows);
    const flp_workspace workspace = linear_work_laid_out(work, rows);
    const int64_t row_bytes = normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), all = normal->forward.vocab * row_bytes;
    const int64_t slab_columns = lending.slab_blocks * chunks->lent_columns, blocks = lending.blocks + lending.rest;
    const int64_t slabs = (blocks + lending.slab_blocks - 1) / lending.slab_blocks, read = (lending.blocks + lending.slab_blocks - 1) / lending.slab_blocks;
    const int64_t scaled = rows * normal->forward.hidden * 2, row_blocks = slabs == 1 ? 1 : FLP_BACKWARD_ROW_BLOCK;

    assert_int_equal(chunks->saved_columns, (lending.blocks + lending.again) * chunks->lent_columns);
    assert_in_range(lending.slab_blocks, 1, lending.again > 0 || lending.first < 0 ? 1 : blocks);
    assert_true(lending.slab_bytes >= (rows + row_blocks - 1) / row_blocks * row_blocks * slab_columns * 2);
    if (slabs > 1)
        assert_int_equal(lending.slab_bytes, lending.slab_rows * slab_columns * 2);
    if (lending.first < 0)
        assert_true(workspace.part[FLP_PART_DLOGIT].bytes >= slabs * lending.slab_bytes && workspace.part[FLP_PART_DLOGIT].first == FLP_STEP_TILES);
    for (int64_t i = 0, written = slab_columns; lending.first >= 0 && i < read; i++, written += slab_columns)
        assert_true(lending.first + i * lending.slab_bytes >= (written < chunks->saved_columns ? written : chunks->saved_columns) * row_bytes);
    assert_true(lending.first % 256 == 0 || lending.first == -1);
    assert_true(lending.first + slabs * lending.slab_bytes <= (lending.scaled >= 0 ? lending.scaled : all) || lending.first < 0);
    check_rest(work, rows, &lending, &workspace);
    assert_true(lending.again == 0 || workspace.part[FLP_PART_DLOGIT].bytes >= rows * chunks->lent_columns * 2);
    if (lending.scaled >= 0)
        assert_true(lending.scaled >= chunks->saved_columns * row_bytes && lending.scaled + scaled <= all);
    else if (lending.scaled == FLP_SCALED_IN_WORKSPACE)
        assert_true(workspace.part[FLP_PART_SCALED_ROWS].bytes >= scaled);
    else
        assert_true(lending.again == 0);
}

/* The runs of blocks that are computed again follow one another to the last block. Each lies behind all that is written of grad_weight before it has been read,
 * and before the rows times their factors; or it has room in the workspace. */
static void check_again(const flp_linear_work *work, int64_t rows)
{
    const flp_linear_logp_backward_problem *normal = work->backward;
    const int64_t columns = work->chunks.lent_columns, count = work->chunks.saved_columns / columns;
    const flp_vocab_lending lending = flp_vocab_chunks_lending(normal, &work->chunks, rows);
    const flp_workspace workspace = linear_work_laid_out(work, rows);
    const int64_t row_bytes = normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), block_bytes = lending.slab_bytes;
    const int64_t end = lending.scaled >= 0 ? lending.scaled : normal->forward.vocab * row_bytes;

    for (int64_t at = lending.blocks; at < count;) {
        const flp_vocab_run run = flp_vocab_chunks_again(normal, &work->chunks, &lending, rows, at);

        assert_int_equal(at, run.begin);
        assert_in_range(run.end, at + 1, count);
        if (run.first < 0)
            assert_true(workspace.part[FLP_PART_DLOGIT].bytes >= (run.end - run.begin) * block_bytes);
        else
            assert_true(run.first % 256 == 0 && run.first + (run.end - run.begin) * block_bytes <= end);
        for (; at < run.end; at++)
            assert_true(run.first < 0 || run.first + (at - run.begin) * block_bytes >= (at + 1) * columns * row_bytes);
    }
}

/* With losses grad_weight lends saved exponentials their place: as many, and in as wide blocks, for any number of rows. */
static void grad_weight_lends_the_saved_exponentials_their_place(void **state)
{
    static const int64_t rows[] = { 1, 100, 2048, 4096, 8192, 8193, 16384, 40000, 65536 };
    static const struct {
        int64_t hidden, vocab;
        flp_dtype grad_weight;
        int64_t columns, blocks;
    } cases[] = { { 4096, 128256, FLP_BF16, 6144, 19 }, { 2048, 131072, FLP_BF16, 8448, 14 }, { 4096, 128256, FLP_F32, 6144, 20 },
                  { 2304, 256000, FLP_BF16, 9216, 26 }, { 248, 50304, FLP_BF16, 0, 0 },       { 512, 32000, FLP_BF16, 8448, 2 },
                  { 768, 50304, FLP_BF16, 8448, 4 },    { 888, 151936, FLP_BF16, 8448, 14 },  { 896, 151936, FLP_BF16, 8448, 14 },
                  { 1024, 50304, FLP_BF16, 8448, 4 },   { 4096, 32000, FLP_BF16, 6912, 3 } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (size_t j = 0; j < sizeof(rows) / sizeof(*rows); j++) {
            const flp_linear_logp_backward_problem normal =
                linear_work_normal(linear_work_sized(rows[j], cases[i].hidden, cases[i].vocab, cases[i].grad_weight));
            const flp_linear_work work = linear_work_with_losses(&normal);

            assert_int_equal(cases[i].columns, work.chunks.lent_columns);
            if (cases[i].blocks == 0) /* too narrow */
                continue;
            assert_int_equal(cases[i].blocks * cases[i].columns, work.chunks.saved_columns);
            assert_true(work.chunks.saves_rest && work.chunks.columns == cases[i].columns);
            assert_true(rows[j] > cases[i].hidden || flp_vocab_chunks_lending(&normal, &work.chunks, rows[j]).again == 0);
            check_lending(&work, rows[j]);
            check_lending(&work, (rows[j] + 1) / 2);
            check_again(&work, rows[j]);
            check_again(&work, (rows[j] + 1) / 2);
        }
    }
}

/* The rows times their factors lie behind all that is written of grad_weight while they are read: in vocabularies of many sizes, with as many rows as have part
 * of the rest computed again right behind the forward. */
static void early_blocks_do_not_write_over_the_scaled_rows(void **state)
{
    static const int64_t hidden[] = { 2048, 4096, 5120, 6144, 7168, 8192 };
    static const int64_t vocab[] = { 50304, 100352, 128256, 129280, 131072, 151936, 152064, 256000 };
    int beside = 0, in_place = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
        for (size_t j = 0; j < sizeof(vocab) / sizeof(*vocab); j++)
            for (int64_t rows = FLP_BACKWARD_ROW_BLOCK; rows <= hidden[i]; rows += FLP_BACKWARD_ROW_BLOCK) {
                const flp_linear_logp_backward_problem normal =
                    linear_work_normal(linear_work_sized(rows, hidden[i], vocab[j], j % 2 == 0 ? FLP_BF16 : FLP_F32));
                const flp_linear_work work = linear_work_with_losses(&normal);
                flp_vocab_lending lending;

                if (work.chunks.lent_columns == 0)
                    continue;
                check_lending(&work, rows);
                lending = flp_vocab_chunks_lending(&normal, &work.chunks, rows);
                beside += lending.early > 0 && lending.scaled >= 0;
                in_place += lending.early > 0 && lending.scaled == FLP_SCALED_IN_PLACE;
            }
    assert_true(beside > 0 && in_place > 0);
}

/* Few rows leave room for all blocks side by side; the more rows there are, the more slabs there must be. */
static void few_rows_have_few_slabs(void **state)
{
    static const struct {
        int64_t hidden, vocab, rows, slab_blocks;
    } cases[] = { { 2048, 131072, 1, 16 },   { 2048, 131072, 193, 16 }, { 2048, 131072, 194, 8 },  { 2048, 131072, 512, 6 },
                  { 2048, 131072, 2048, 1 }, { 4096, 128256, 1, 21 },   { 4096, 128256, 365, 21 }, { 4096, 128256, 366, 11 },
                  { 4096, 128256, 1024, 7 }, { 4096, 128256, 2048, 1 }, { 4096, 128256, 4096, 1 } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(cases[i].rows, cases[i].hidden, cases[i].vocab, FLP_BF16));
        const flp_linear_work work = linear_work_with_losses(&normal);

        assert_int_equal(cases[i].slab_blocks, flp_vocab_chunks_lending(&normal, &work.chunks, cases[i].rows).slab_blocks);
    }
}

/* How many slabs grad_weight's products take one after the other: as many as end before the first of them. The fewer blocks are left, the less room. */
static void grad_weight_takes_as_many_slabs_as_have_room(void **state)
{
    static const struct {
        int64_t hidden, vocab, rows;
        int64_t taken[8];
    } cases[] = { { 4096, 128256, 512, { 1, 1 } }, { 4096, 128256, 1024, { 2, 1 } }, { 2048, 131072, 1024, { 7, 4, 2, 1 } } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(cases[i].rows, cases[i].hidden, cases[i].vocab, FLP_BF16));
        const flp_linear_work work = linear_work_with_losses(&normal);
        const flp_vocab_lending lending = flp_vocab_chunks_lending(&normal, &work.chunks, cases[i].rows);
        const int64_t columns = lending.slab_blocks * work.chunks.lent_columns, slabs = (work.chunks.saved_columns + columns - 1) / columns;
        int64_t slab = 0;

        for (int j = 0; slab < slabs; j++) {
            const int64_t at = lending.first + slab * lending.slab_bytes;
            const int64_t taken = flp_vocab_chunks_slabs_at_once(&normal, slab * columns, columns, at, slabs - slab);

            assert_int_equal(cases[i].taken[j], taken);
            assert_true(taken == 1 || (slab + taken) * columns * cases[i].hidden * 2 <= at);
            slab += taken;
        }
        assert_int_equal(slabs, slab);
    }
}

/* Many numbers of rows for which all blocks are saved, with vocabularies whose last slab is narrower, or would be. */
static void slabs_are_read_before_they_are_written_over(void **state)
{
    int several = 0, narrower = 0, with_rest = 0;

    (void)state;
    for (int64_t vocab = 9000; vocab < 60000; vocab += 7777) {
        for (int64_t rows = 1; rows <= 1024; rows += 1 + rows / 20) {
            const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(rows, 1024, vocab, FLP_BF16));
            const flp_linear_work work = linear_work_with_losses(&normal);
            flp_vocab_lending lending;

            if (work.chunks.lent_columns == 0)
                continue;
            check_lending(&work, rows);
            lending = flp_vocab_chunks_lending(&normal, &work.chunks, rows);
            several += lending.slab_blocks < lending.blocks;
            narrower += lending.blocks % lending.slab_blocks != 0;
            with_rest += lending.rest > 0 && lending.slab_blocks < lending.blocks + lending.rest;
        }
    }
    assert_true(several > 0 && narrower > 0 && with_rest > 0);
}

/* Sizes of all kinds, with up to four times as many rows as hidden has columns. */
static void no_size_loses_what_has_not_been_read(void **state)
{
    uint64_t drawn = 1;
    int saved = 0, early = 0, late = 0;

    (void)state;
    for (int i = 0; i < 4000; i++) {
        int64_t size[3];

        for (int j = 0; j < 3; j++) {
            drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            size[j] = (int64_t)(drawn >> 40);
        }
        const int64_t hidden = 1024 + size[0] % 900 * 8, vocab = 1 + size[1] % 300000, rows = 1 + size[2] % (4 * hidden);
        const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(rows, hidden, vocab, i % 4 == 0 ? FLP_F32 : FLP_BF16));
        const flp_linear_work work = linear_work_with_losses(&normal);
        flp_vocab_lending lending;

        if (work.chunks.lent_columns == 0)
            continue;
        check_lending(&work, rows);
        check_again(&work, rows);
        lending = flp_vocab_chunks_lending(&normal, &work.chunks, rows);
        saved += lending.rest > 0;
        early += lending.early > 0;
        late += lending.rest + lending.early < flp_vocab_chunks_rest_blocks(&normal, &work.chunks);
    }
    assert_true(saved > 100 && early > 100 && late > 100);
}

/* A plan's workspace is large enough for every smaller number of rows, whose slabs have more chunks, and whose rest is saved all at once. */
static void fewer_rows_never_take_more(void **state)
{
    static const struct {
        int64_t hidden, vocab;
    } cases[] = { { 2048, 9000 }, { 2048, 50257 }, { 2048, 131072 }, { 2048, 256000 }, { 4096, 128256 }, { 4864, 132321 } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int losses = 0; losses < 2; losses++) {
            const flp_linear_logp_backward_problem normal = linear_work_normal(linear_work_sized(8192, cases[i].hidden, cases[i].vocab, FLP_BF16));
            const flp_linear_work work = losses ? linear_work_with_losses(&normal) : linear_work_of(&normal, 0);
            int64_t before = 0, dlogit_before = 0;

            for (int64_t rows = 0; rows <= 8192; rows += 1 + rows / 50) {
                const int64_t bytes = linear_work_bytes(&work, rows);
                const int64_t dlogit = linear_work_laid_out(&work, rows).part[FLP_PART_DLOGIT].bytes;

                assert_true(bytes >= before && dlogit >= dlogit_before);
                before = bytes;
                dlogit_before = dlogit;
            }
        }
    }
}

/* A budget goes by its rows: where there are no more than D, nearly all of the vocabulary. */
static void a_budget_lends_what_its_rows_leave_room_for(void **state)
{
    flp_linear_logp_backward_problem problem = linear_work_sized(4096, 4096, 128256, FLP_BF16);
    flp_linear_logp_backward_problem normal;
    flp_linear_work work;

    (void)state;
    problem.memory_budget = INT64_C(256) << 20;
    normal = linear_work_normal(problem);
    work = linear_work_with_losses(&normal);
    assert_int_equal(14 * 8448, work.chunks.saved_columns);
    check_lending(&work, 4096);
    check_lending(&work, 7);
    problem.accumulate = FLP_ACCUMULATE_WEIGHT; /* what is in grad_weight is kept */
    normal = linear_work_normal(problem);
    assert_int_equal(0, linear_work_with_losses(&normal).chunks.lent_columns);
}

/* What is added to, lies apart or is not [V, D] keeps what it holds. */
static void nothing_is_borrowed_from_what_keeps_its_numbers(void **state)
{
    flp_linear_logp_backward_problem problems[4];
    int borrowing;

    (void)state;
    for (int i = 0; i < 4; i++)
        problems[i] = linear_work_sized(4096, 2048, 131072, FLP_BF16);
    problems[0].accumulate = FLP_ACCUMULATE_WEIGHT;
    problems[1].grad_weight_stride = 2056;
    problems[2].forward.weight_layout = FLP_HIDDEN_VOCAB;
    problems[3].forward.pointer_alignment = 8;
    for (int i = 0; i < 4; i++) {
        const flp_linear_logp_backward_problem normal = linear_work_normal(problems[i]);
        check_chunks(&normal, 4096, &borrowing);
        assert_int_equal(0, borrowing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_borrow_what_of_grad_weight_is_written_later),
        cmocka_unit_test(default_chunks_are_the_same_for_any_number_of_rows),
        cmocka_unit_test(nothing_is_borrowed_from_what_keeps_its_numbers),
        cmocka_unit_test(grad_weight_lends_the_saved_exponentials_their_place),
        cmocka_unit_test(early_blocks_do_not_write_over_the_scaled_rows),
        cmocka_unit_test(few_rows_have_few_slabs),
        cmocka_unit_test(grad_weight_takes_as_many_slabs_as_have_room),
        cmocka_unit_test(slabs_are_read_before_they_are_written_over),
        cmocka_unit_test(no_size_loses_what_has_not_been_read),
        cmocka_unit_test(fewer_rows_never_take_more),
        cmocka_unit_test(a_budget_lends_what_its_rows_leave_room_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
