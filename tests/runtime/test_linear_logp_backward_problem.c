/* The rules of the backward's problem, its canonical string, its dispatch key and its memory budget. */
#include "plan/linear_logp_backward_problem.h"

#include <math.h>
#include <stdio.h>

#include "cpu/convert.h"
#include "fake_cmocka.h"
#include "plan/linear_logp_backward_workspace.h"
#include "plan/problem.h"

static flp_linear_logp_backward_problem plain(void)
{
    return (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 },
                                               .grad_hidden = FLP_BF16, .grad_weight = FLP_F32 };
}

static void assert_formats(flp_linear_logp_backward_problem problem, const char *wanted)
{
    char text[FLP_PROBLEM_TEXT_BYTES];

    assert_succeeds(flp_linear_logp_backward_problem_format(&problem, text, sizeof(text)));
    assert_string_equal(wanted, text);
}

static void defaults_are_not_written(void **state)
{
    flp_linear_logp_backward_problem problem = plain(), normal;

    (void)state;
    assert_formats(problem, "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_f32");
    assert_succeeds(flp_linear_logp_backward_problem_normalize(&problem, &normal));
    assert_int_equal(2048, normal.grad_hidden_stride);
    assert_int_equal(2048, normal.grad_weight_stride);
    assert_formats(normal, "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_f32");
    problem.forward.hidden_stride = problem.grad_hidden_stride = 4096; /* as the input's rows */
    assert_formats(problem, "linear_logp_backward:bf16:n4096:d2048:v131072:hs4096:gh_bf16:gw_f32");
}

static flp_linear_logp_backward_problem with_everything(void)
{
    return (flp_linear_logp_backward_problem){
        .forward = { .dtype = FLP_F32, .rows = 1, .hidden = 8, .vocab = 50257, .weight_layout = FLP_HIDDEN_VOCAB, .hidden_stride = 9,
                     .weight_stride = 50304, .pointer_alignment = 4, .bias_dtype = FLP_F16, .target_dtype = FLP_I32, .softcap = 30.1,
                     .precision = FLP_PRECISION_EXACT, .backend = FLP_BACKEND_PORTABLE },
        .grad_hidden = FLP_BF16, .grad_weight = FLP_F16, .grad_bias = FLP_F32, .grad_hidden_stride = 10, .grad_weight_stride = 50305,
        .accumulate = FLP_ACCUMULATE_HIDDEN | FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS, .g_lse = 1, .g_entropy = 1,
        .memory_budget = 1 << 20, .grad_filter_eps = 0.001, .with_forward = 1
    };
}

static void all_options_stand_in_one_order(void **state)
{
    (void)state;
    assert_formats(with_everything(), "linear_logp_backward:f32:n1:d8:v50257:dv:hs9:ws50304:align4:bias_f16:target_i32:softcap30.1:exact:"
                   "gh_bf16:gw_f16:gb_f32:ghs10:gws50305:acc_hidden:acc_weight:acc_bias:g_lse:g_entropy:budget1048576:filter0.001:forward:portable");
}

static void assert_round_trip(const flp_linear_logp_backward_problem *problem)
{
    char text[FLP_PROBLEM_TEXT_BYTES], again[FLP_PROBLEM_TEXT_BYTES];
    flp_linear_logp_backward_problem parsed, wanted, got;

    assert_succeeds(flp_linear_logp_backward_problem_format(problem, text, sizeof(text)));
    assert_succeeds(flp_linear_logp_backward_problem_parse(text, &parsed));
    assert_succeeds(flp_linear_logp_backward_problem_normalize(problem, &wanted));
    assert_succeeds(flp_linear_logp_backward_problem_normalize(&parsed, &got));
    assert_int_equal(wanted.grad_hidden, got.grad_hidden);
    assert_int_equal(wanted.grad_weight, got.grad_weight);
    assert_int_equal(wanted.grad_bias, got.grad_bias);
    assert_int_equal(wanted.grad_hidden_stride, got.grad_hidden_stride);
    assert_int_equal(wanted.grad_weight_stride, got.grad_weight_stride);
    assert_int_equal(wanted.accumulate, got.accumulate);
    assert_int_equal(wanted.g_lse, got.g_lse);
    assert_int_equal(wanted.g_entropy, got.g_entropy);
    assert_int_equal(wanted.memory_budget, got.memory_budget);
    assert_true(wanted.grad_filter_eps == got.grad_filter_eps);
    assert_int_equal(wanted.with_forward, got.with_forward);
    assert_succeeds(flp_linear_logp_backward_problem_format(&parsed, again, sizeof(again)));
    assert_string_equal(text, again);
}

static void parse_is_the_inverse_of_format(void **state)
{
    (void)state;
    for (int bits = 0; bits < 1 << 10; bits++) {
        flp_linear_logp_backward_problem problem = {
            .forward = { .dtype = bits & 1 ? FLP_F32 : FLP_F16, .rows = bits, .hidden = 80, .vocab = 500, .bias_dtype = FLP_F32,
                         .weight_layout = bits & 2 ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN, .weight_stride = bits & 4 ? 6000 : 0 },
            .grad_hidden = (flp_dtype)(bits >> 3 & 3), .grad_weight = (flp_dtype)(bits >> 5 & 3), .grad_bias = FLP_BF16,
            .g_lse = bits >> 7 & 1, .g_entropy = bits >> 8 & 1, .memory_budget = bits & 512 ? 1 << 24 : 0,
            .grad_filter_eps = bits % 3 * 1e-5, .with_forward = bits % 5 == 0
        };
        if (problem.grad_hidden && bits & 4) {
            problem.grad_hidden_stride = 81;
            problem.accumulate |= FLP_ACCUMULATE_HIDDEN;
        }
        if (problem.grad_weight && bits & 8) {
            problem.grad_weight_stride = 501;
            problem.accumulate |= FLP_ACCUMULATE_WEIGHT;
        }
        problem.accumulate |= bits & 16 ? FLP_ACCUMULATE_BIAS : 0;
        assert_round_trip(&problem);
    }
}

static void other_strings_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "linear_logp:bf16:n1:d2:v3:gh_bf16", "wanted linear_logp_backward" },
        { "linear_logp_backward:bf16:n1:d2:v3:argmax", "part 6: got \"argmax\", wanted dv" },
        { "linear_logp_backward:bf16:n1:d2:v3", "got FLP_NONE for all, wanted one of them" },
        { "linear_logp_backward:bf16:n1:d2:v3:acc_hidden:gh_bf16", "wanted the canonical" },
        { "linear_logp_backward:bf16:n1:d2:v3:gh_bf16:acc_hidden:acc_hidden", "wanted the canonical" },
        { "linear_logp_backward:bf16:n1:d2:v3:gh_bf16:acc_", "part 7: got \"acc_\"" },
        { "linear_logp_backward:bf16:n1:d2:v3:gh_i32", "grad_hidden: got 4" }
    };
    flp_linear_logp_backward_problem problem;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_problem_parse(cases[i].text, &problem), cases[i].part);
}

#define REFUSED(change, part)                                                                                    \
    do {                                                                                                         \
        flp_linear_logp_backward_problem problem = plain(), normal;                                              \
        change;                                                                                                  \
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_problem_normalize(&problem, &normal), part);     \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    (void)state;
    REFUSED(problem.forward.vocab = 0, "vocab: got 0");
    REFUSED(problem.forward.weight_layout = (flp_weight_layout)2, "weight_layout: got 2");
    REFUSED(problem.forward.argmax = 1, "forward.argmax: got 1, wanted 0");
    REFUSED(problem.forward.entropy = 1, "forward.entropy: got 1, wanted 0");
    REFUSED(problem.grad_hidden = FLP_I64, "grad_hidden: got 5, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32");
    REFUSED(problem.grad_weight = FLP_I32, "grad_weight: got 4");
    REFUSED(problem.grad_bias = (flp_dtype)9, "grad_bias: got 9");
    REFUSED(problem.grad_bias = FLP_F32, "grad_bias: got f32, wanted FLP_NONE: the forward's bias_dtype is FLP_NONE");
    REFUSED((problem.grad_hidden = FLP_NONE, problem.grad_weight = FLP_NONE), "got FLP_NONE for all, wanted one of them");
    REFUSED(problem.grad_hidden_stride = 2047, "grad_hidden_stride: got 2047, wanted 0 or at least the row's 2048 elements");
    REFUSED(problem.grad_weight_stride = -1, "grad_weight_stride: got -1");
    REFUSED((problem.forward.weight_layout = FLP_HIDDEN_VOCAB, problem.grad_weight_stride = 2048), "grad_weight_stride: got 2048, wanted 0 or "
            "at least the row's 131072 elements");
    REFUSED((problem.grad_hidden = FLP_NONE, problem.grad_hidden_stride = 2048), "grad_hidden_stride: got 2048, wanted 0: the gradient is "
            "not asked for");
    REFUSED(problem.accumulate = 8, "accumulate: got 0x8, wanted no bits but 0x3");
    REFUSED(problem.accumulate = FLP_ACCUMULATE_BIAS, "accumulate: got 0x4, wanted no bits but 0x3, of the gradients asked for");
    REFUSED(problem.g_lse = 2, "g_lse: got 2, wanted 0 or 1");
    REFUSED(problem.g_entropy = -1, "g_entropy: got -1");
    REFUSED(problem.with_forward = 2, "with_forward: got 2, wanted 0 or 1");
    REFUSED(problem.grad_filter_eps = -1, "grad_filter_eps: got -1, wanted 0 or a finite number above");
    REFUSED(problem.grad_filter_eps = NAN, "grad_filter_eps: got nan");
    REFUSED(problem.grad_filter_eps = INFINITY, "grad_filter_eps: got inf");
    REFUSED(problem.memory_budget = -1, "memory_budget: got -1, wanted 0 or at least");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_problem_normalize(NULL, NULL), "problem: got NULL");
}

/* ---- the dispatch key ---- */

static flp_dispatch_key key_of(const flp_linear_logp_backward_problem *problem)
{
    flp_dispatch_key key = { 0 };

    assert_true(flp_linear_logp_backward_problem_pack(problem, &key));
    return key;
}

#define DIFFERS(change)                                                                  \
    do {                                                                                 \
        flp_linear_logp_backward_problem problem = plain();                              \
        flp_dispatch_key left = key_of(&problem), right;                                 \
        change;                                                                          \
        right = key_of(&problem);                                                        \
        assert_memory_not_equal(&left, &right, sizeof(left));                            \
    } while (0)

static void problems_that_differ_have_other_keys(void **state)
{
    (void)state;
    DIFFERS(problem.forward.dtype = FLP_F16);
    DIFFERS(problem.forward.hidden = 2056);
    DIFFERS(problem.forward.vocab = 131000);
    DIFFERS(problem.forward.hidden_stride = 4096);
    DIFFERS(problem.forward.weight_stride = 4096);
    DIFFERS(problem.forward.weight_layout = FLP_HIDDEN_VOCAB);
    DIFFERS(problem.forward.precision = FLP_PRECISION_EXACT);
    DIFFERS(problem.forward.bias_dtype = FLP_F32);
    DIFFERS(problem.forward.target_dtype = FLP_I32);
    DIFFERS(problem.forward.softcap = 30);
    DIFFERS(problem.forward.backend = FLP_BACKEND_CPU);
    DIFFERS(problem.grad_hidden = FLP_NONE);
    DIFFERS(problem.grad_weight = FLP_BF16);
    DIFFERS(problem.grad_bias = FLP_BF16);
    DIFFERS(problem.grad_hidden_stride = 4096);
    DIFFERS(problem.grad_weight_stride = 4096);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_HIDDEN);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_WEIGHT);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_BIAS);
    DIFFERS(problem.g_lse = 1);
    DIFFERS(problem.g_entropy = 1);
    DIFFERS(problem.memory_budget = 1 << 30);
    DIFFERS(problem.grad_filter_eps = 1e-5);
}

static void a_default_spelled_out_keeps_the_key(void **state)
{
    flp_linear_logp_backward_problem problem = plain();
    flp_dispatch_key left = key_of(&problem), right;

    (void)state;
    problem.forward.hidden_stride = problem.forward.weight_stride = problem.grad_hidden_stride = problem.grad_weight_stride = 2048;
    problem.forward.target_dtype = FLP_I64;
    right = key_of(&problem);
    assert_memory_equal(&left, &right, sizeof(left));
}

/* Such a key could be that of an acceptable problem, whose plan would then run. */
static void values_that_no_problem_has_get_no_key(void **state)
{
    flp_linear_logp_backward_problem problems[] = { plain(), plain(), plain(), plain(), plain(), plain(), plain(), plain() };
    flp_dispatch_key key;

    (void)state;
    problems[0].forward.weight_layout = (flp_weight_layout)2;
    problems[1].forward.precision = (flp_precision)4;
    problems[2].g_lse = 2;
    problems[3].g_entropy = -1;
    problems[4].accumulate = 8;
    problems[5].forward.argmax = 1;
    problems[6].forward.entropy = 1;
    problems[7].grad_hidden = (flp_dtype)128;
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++)
        assert_int_equal(0, flp_linear_logp_backward_problem_pack(&problems[i], &key));
}

/* ---- the memory budget ---- */

static flp_linear_logp_backward_problem normal_of(flp_linear_logp_backward_problem problem)
{
    flp_linear_logp_backward_problem normal;

    assert_succeeds(flp_linear_logp_backward_problem_normalize(&problem, &normal));
    return normal;
}

static void the_least_budget_is_said_and_enough(void **state)
{
    flp_linear_logp_backward_problem problem = plain(), normal = normal_of(problem);
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
    flp_linear_logp_backward_problem problem = plain();

    (void)state;
    problem.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 8192, .hidden = 4096, .vocab = 128256 };
    problem.grad_weight = FLP_BF16;
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
    flp_linear_logp_backward_problem problem = plain();
    int borrowing;

    (void)state;
    problem.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 20000, .hidden = 4096, .vocab = 128256 };
    problem.grad_hidden = problem.grad_weight = FLP_BF16;
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
    flp_linear_logp_backward_problem few = plain(), many = plain();

    (void)state;
    few.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 64, .hidden = 2048, .vocab = 151936 };
    few.grad_hidden = few.grad_weight = FLP_BF16;
    many = few;
    many.forward.rows = 65536;
    few = normal_of(few);
    many = normal_of(many);
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
    for (int i = 0; i < 4; i++) {
        problems[i] = plain();
        problems[i].forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 };
        problems[i].grad_hidden = problems[i].grad_weight = FLP_BF16;
    }
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
        flp_linear_logp_backward_problem problem = plain(), normal = normal_of(problem);
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
    flp_linear_logp_backward_problem problem = plain();

    (void)state;
    problem.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 8192, .hidden = 4096, .vocab = 128256 };
    problem.grad_hidden = problem.grad_weight = FLP_BF16;
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
    flp_linear_logp_backward_problem problem = plain();

    (void)state;
    problem.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 8192, .hidden = 4096, .vocab = 128256 };
    problem.grad_hidden = FLP_BF16;
    problem.grad_weight = FLP_F32;
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
            flp_linear_logp_backward_problem problem = plain();
            flp_linear_logp_backward_workspace layout;
            int64_t chunk;

            problem.forward = (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 10000, .hidden = 4096, .vocab = 32000 };
            problem.grad_hidden = dtypes[i];
            problem.grad_weight = FLP_F32;
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
    flp_linear_logp_backward_problem problem = { .forward = normal_of(plain()).forward };
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
    flp_linear_logp_backward_problem problem = plain();

    (void)state;
    problem.forward.rows = FLP_PROBLEM_ROWS_MAX;
    problem.forward.hidden = problem.forward.vocab = INT32_MAX;
    problem.grad_weight = FLP_BF16;
    problem = normal_of(problem);
    assert_true(flp_linear_logp_backward_workspace_lay_out(&problem, 0, 0, FLP_PROBLEM_ROWS_MAX).bytes > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_not_written),
        cmocka_unit_test(all_options_stand_in_one_order),
        cmocka_unit_test(parse_is_the_inverse_of_format),
        cmocka_unit_test(other_strings_are_refused),
        cmocka_unit_test(every_field_is_checked_and_named),
        cmocka_unit_test(problems_that_differ_have_other_keys),
        cmocka_unit_test(a_default_spelled_out_keeps_the_key),
        cmocka_unit_test(values_that_no_problem_has_get_no_key),
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
