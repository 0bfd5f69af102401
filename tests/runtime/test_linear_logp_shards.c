/* linear_logp over shards of the vocabulary, on the host: all cases, cut in many ways, against fp64; what shards and their merge refuse; bits. */
#include <math.h>
#include <stdlib.h>

#include "cpu_context.h"
#include "assertions.h"
#include "fusedlogp.h"
#include "shards.h"

static size_t partial_floats(int64_t rows)
{
    return (size_t)rows * FLP_PARTIAL_FLOATS;
}

static flp_status run_shards(flp_context *context, const flp_linear_logp_problem *whole, const flp_linear_logp_args *args, const flp_cutting *cuts,
                             float *partials)
{
    flp_status status = FLP_OK;

    for (int rank = 0; status == FLP_OK && rank < cuts->ranks; rank++) {
        const flp_linear_logp_problem shard = flp_shard_of(whole, cuts, rank);
        const flp_linear_logp_args of_shard = flp_shard_args(args, &shard, partials + (size_t)rank * partial_floats(args->rows));
        status = flp_linear_logp(context, &shard, &of_shard);
    }
    return status;
}

/* The merge by a plan, whose bad targets can be asked for. */
static flp_status merge_by_plan(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args, int64_t *bad_count,
                                int64_t *bad_first)
{
    flp_plan *plan;
    flp_status status = flp_linear_logp_plan_create(context, problem, &plan);

    if (status != FLP_OK)
        return status;
    status = flp_linear_logp_execute_merge(plan, args);
    if (status == FLP_OK)
        status = flp_plan_target_errors(plan, bad_count, bad_first);
    flp_plan_destroy(plan);
    return status;
}

static int cut_case_is_right(flp_context *context, const flp_case *c, flp_case_data *data, const flp_reference *reference, const flp_cutting *cuts)
{
    flp_linear_logp_args args;
    char message[256];
    int64_t bad_count = 0, bad_first = -1;
    float *partials = malloc((size_t)cuts->ranks * (partial_floats(c->problem.rows) + 1) * sizeof(*partials));
    flp_linear_logp_problem any = flp_shard_of(&c->problem, cuts, cuts->ranks - 1);
    int right;

    assert_non_null(partials);
    flp_case_poison_outputs(data);
    flp_case_args(c, data, NULL, &args);
    flp_status status = run_shards(context, &c->problem, &args, cuts, partials);
    if (status == FLP_OK) {
        const flp_linear_logp_merge_args merge = flp_shard_merge_args(&args, partials, cuts->ranks);
        status = merge_by_plan(context, &any, &merge, &bad_count, &bad_first);
    }
    right = status == FLP_OK && flp_case_check(c, data, reference, message, sizeof(message));
    if (!right)
        print_error("case \"%s\", %s: %s\n", c->name, cuts->name, status == FLP_OK ? message : flp_error_message());
    assert_int_equal(bad_count, reference->bad_count);
    assert_int_equal(bad_first, reference->bad_first);
    free(partials);
    return right;
}

/* Within the tolerances of the call without shards: a part's words are fp32 of doubles, off by 2^-24 of themselves, of which those have 8 and more. */
static void every_case_in_shards_agrees_with_fp64(void **state)
{
    int failures = 0;

    (void)state;
    for (int i = 0; i < flp_case_count(); i++) {
        flp_case c;
        flp_case_data data;
        flp_reference reference;
        flp_linear_logp_args args;
        flp_case_get(i, &c);
        if (!flp_case_dtype_runs(c.problem.dtype))
            continue;
        assert_true(flp_case_make_data(&c, &data));
        flp_case_args(&c, &data, NULL, &args);
        assert_true(flp_reference_compute(&c.problem, &args, &reference));
        for (int k = 0; k < FLP_CUTTINGS; k++)
            failures += !cut_case_is_right(cpu_context, &c, &data, &reference, &flp_cuttings[k]);
        flp_reference_free(&reference);
        flp_case_free_data(&data);
    }
    assert_int_equal(failures, 0);
}

/* ---- bits ---- */

enum { N = 70, D = 33, V = 1100 };

typedef struct {
    float hidden[N * D], weight[V * D], bias[V], row_temperature[N];
    int64_t target[N];
    float partials[FLP_MOST_SHARDS * N * FLP_PARTIAL_FLOATS], logp[N], lse[N], entropy[N];
    int32_t argmax[N];
} tensors;

static const flp_linear_logp_problem small = {
    .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .hidden_stride = D, .weight_stride = D, .bias_dtype = FLP_F32, .argmax = 1, .entropy = 1
};

static tensors *make_tensors(void)
{
    tensors *made = calloc(1, sizeof(*made));

    assert_non_null(made);
    for (int i = 0; i < N * D; i++)
        made->hidden[i] = (float)flp_case_random_normal(1, (uint64_t)i);
    for (int i = 0; i < V * D; i++)
        made->weight[i] = (float)flp_case_random_normal(2, (uint64_t)i);
    for (int i = 0; i < V; i++)
        made->bias[i] = (float)flp_case_random_normal(3, (uint64_t)i);
    for (int i = 0; i < N; i++) {
        made->row_temperature[i] = 0.5f + (float)(i % 5);
        made->target[i] = i * 7919 % V;
    }
    return made;
}

static flp_linear_logp_args rows_of(tensors *t, int64_t first, int64_t rows)
{
    return (flp_linear_logp_args){ .rows = rows,
                                   .hidden = t->hidden + first * D,
                                   .weight = t->weight,
                                   .bias = t->bias,
                                   .target = t->target + first,
                                   .row_temperature = t->row_temperature + first,
                                   .logp = t->logp + first,
                                   .lse = t->lse + first,
                                   .entropy = t->entropy + first,
                                   .argmax = t->argmax + first };
}

static void run_all(flp_context *context, tensors *t, const flp_cutting *cuts, int64_t first, int64_t rows)
{
    const flp_linear_logp_args args = rows_of(t, first, rows);
    const flp_linear_logp_problem any = flp_shard_of(&small, cuts, 0);
    const flp_linear_logp_merge_args merge = flp_shard_merge_args(&args, t->partials, cuts->ranks);

    assert_succeeds(run_shards(context, &small, &args, cuts, t->partials));
    assert_succeeds(flp_linear_logp_merge(context, &any, &merge));
}

static void assert_same_results(const tensors *one, const tensors *other)
{
    assert_memory_equal(one->logp, other->logp, sizeof(one->logp));
    assert_memory_equal(one->lse, other->lse, sizeof(one->lse));
    assert_memory_equal(one->entropy, other->entropy, sizeof(one->entropy));
    assert_memory_equal(one->argmax, other->argmax, sizeof(one->argmax));
}

static void bits_repeat_on_any_number_of_threads_and_row_by_row(void **state)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 3, .flags = FLP_CONTEXT_NO_GPU };
    flp_context *threads;

    (void)state;
    assert_succeeds(flp_context_create(&options, &threads));
    for (int k = 0; k < FLP_CUTTINGS; k++) {
        tensors *once = make_tensors(), *again = make_tensors();
        run_all(cpu_context, once, &flp_cuttings[k], 0, N);
        run_all(threads, again, &flp_cuttings[k], 0, N);
        assert_same_results(once, again);
        memset(again->logp, 0, sizeof(again->logp));
        for (int64_t row = 0; row < N; row++)
            run_all(cpu_context, again, &flp_cuttings[k], row, 1);
        assert_same_results(once, again);
        free(once);
        free(again);
    }
    flp_context_destroy(threads);
}

/* ---- refusals ---- */

static void a_shard_lies_in_its_vocabulary(void **state)
{
    static const struct {
        int64_t vocab, first, total;
        const char *wanted;
    } wrong[] = {
        { 100, -1, 200, "vocab_first: got -1, wanted 0 .. 100" },
        { 100, 101, 200, "vocab_first: got 101, wanted 0 .. 100" },
        { 201, 0, 200, "vocab: got 201, wanted 0 .. 200" },
        { -1, 0, 200, "vocab: got -1, wanted 0 .. 2147483647" },
        { 100, 0, -1, "vocab_total: got -1, wanted 0 .. 2147483647" },
        { 100, 0, INT64_C(1) << 31, "vocab_total: got 2147483648, wanted 0 .. 2147483647" },
        { 100, 5, 0, "vocab_first: got 5 with vocab_total 0, wanted 0" },
        { 0, 0, 0, "vocab: got 0, wanted 1 .. 2147483647" },
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        flp_linear_logp_problem problem = small;
        problem.vocab = wrong[i].vocab;
        problem.vocab_first = wrong[i].first;
        problem.vocab_total = wrong[i].total;
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_format(&problem, text, sizeof(text)), wrong[i].wanted);
    }
}

static void a_shards_string_says_where_it_lies(void **state)
{
    static const char *const texts[] = { "linear_logp:bf16:n4096:d2048:v16384:first16384:of131072", "linear_logp:bf16:n4096:d2048:v16384:of131072",
                                         "linear_logp:bf16:n4096:d2048:v0:first131072:of131072:argmax:cpu" };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        flp_linear_logp_problem problem;
        char text[512];
        assert_succeeds(flp_linear_logp_problem_parse(texts[i], &problem));
        assert_int_equal(problem.vocab_total, 131072);
        assert_succeeds(flp_linear_logp_problem_format(&problem, text, sizeof(text)));
        assert_string_equal(texts[i], text);
    }
}

static void a_shard_leaves_partials_and_nothing_else_does(void **state)
{
    tensors *t = make_tensors();
    flp_linear_logp_problem shard = flp_shard_of(&small, &flp_cuttings[1], 1);
    const flp_linear_logp_args whole = rows_of(t, 0, N);
    flp_linear_logp_args args = flp_shard_args(&whole, &shard, NULL);

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(cpu_context, &shard, &args), "partials: got NULL, wanted an address");
    args.partials = t->partials;
    args.lse = t->lse;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(cpu_context, &shard, &args), "lse: got ");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(cpu_context, &shard, &args), "wanted NULL: the problem's vocab_total is not 0, a shard has partials alone");
    args = whole;
    args.partials = t->partials;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(cpu_context, &small, &args), "wanted NULL: the problem's vocab_total is 0, it is no shard");
    args = flp_shard_args(&whole, &shard, t->partials);
    args.weight = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(cpu_context, &shard, &args), "weight: got NULL");
    free(t);
}

static void a_merge_wants_ranks_and_a_shards_problem(void **state)
{
    tensors *t = make_tensors();
    const flp_linear_logp_problem shard = flp_shard_of(&small, &flp_cuttings[1], 1);
    const flp_linear_logp_args whole = rows_of(t, 0, N);
    flp_linear_logp_merge_args merge = flp_shard_merge_args(&whole, t->partials, 0);
    flp_linear_logp_problem plain = shard;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, &shard, &merge), "ranks: got 0, wanted at least 1");
    merge.ranks = 2;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, &small, &merge), "problem.vocab_total: got 0, wanted that of a shard");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, &shard, NULL), "args: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, NULL, &merge), "problem: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(NULL, &shard, &merge), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute_merge(NULL, &merge), "plan: got NULL");
    merge.partials = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, &shard, &merge), "partials: got NULL");
    merge.partials = t->partials;
    plain.entropy = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_merge(cpu_context, &plain, &merge), "wanted NULL: the problem's entropy is 0");
    free(t);
}

/* Ids are the whole vocabulary's: one of another shard is no error, one of none is. */
static void targets_are_checked_against_the_whole_vocabulary(void **state)
{
    tensors *t = make_tensors();
    const flp_linear_logp_problem shard = flp_shard_of(&small, &flp_cuttings[1], 0);
    const flp_linear_logp_args whole = rows_of(t, 0, N);
    flp_linear_logp_args args = flp_shard_args(&whole, &shard, t->partials);
    flp_linear_logp_merge_args merge = flp_shard_merge_args(&whole, t->partials, 1);

    (void)state;
    args.flags = merge.flags = FLP_CHECK_TARGETS;
    assert_succeeds(flp_linear_logp(cpu_context, &shard, &args));
    t->target[3] = V;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp(cpu_context, &shard, &args), "target: row 3 got 1100, wanted 0 .. 1099");
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_merge(cpu_context, &shard, &merge), "target: row 3 got 1100, wanted 0 .. 1099");
    free(t);
}

static void a_target_that_no_shard_has_gives_nan(void **state)
{
    tensors *t = make_tensors();
    const flp_linear_logp_problem shard = flp_shard_of(&small, &flp_cuttings[1], 0);
    const flp_linear_logp_args whole = rows_of(t, 0, N), args = flp_shard_args(&whole, &shard, t->partials);
    const flp_linear_logp_merge_args merge = flp_shard_merge_args(&whole, t->partials, 1);

    (void)state;
    assert_succeeds(flp_linear_logp(cpu_context, &shard, &args));
    assert_succeeds(flp_linear_logp_merge(cpu_context, &shard, &merge));
    for (int i = 0; i < N; i++) {
        assert_int_equal(isnan(t->logp[i]) != 0, t->target[i] >= V / 2);
        assert_false(isnan(t->lse[i]));
    }
    free(t);
}

static void no_rows_are_no_work(void **state)
{
    const flp_linear_logp_problem shard = flp_shard_of(&small, &flp_cuttings[1], 0);
    const flp_linear_logp_args args = { .rows = 0 };
    const flp_linear_logp_merge_args merge = { .rows = 0, .ranks = 2 };

    (void)state;
    assert_succeeds(flp_linear_logp(cpu_context, &shard, &args));
    assert_succeeds(flp_linear_logp_merge(cpu_context, &shard, &merge));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_in_shards_agrees_with_fp64),
        cmocka_unit_test(bits_repeat_on_any_number_of_threads_and_row_by_row),
        cmocka_unit_test(a_shard_lies_in_its_vocabulary),
        cmocka_unit_test(a_shards_string_says_where_it_lies),
        cmocka_unit_test(a_shard_leaves_partials_and_nothing_else_does),
        cmocka_unit_test(a_merge_wants_ranks_and_a_shards_problem),
        cmocka_unit_test(targets_are_checked_against_the_whole_vocabulary),
        cmocka_unit_test(a_target_that_no_shard_has_gives_nan),
        cmocka_unit_test(no_rows_are_no_work),
    };

    return cmocka_run_group_tests(tests, cpu_context_start, cpu_context_stop);
}
