/* linear_cross_entropy over shards of the vocabulary, on the host: all cases, cut in many ways, against fp64; every rank's bits; what is refused. */
#include <stdlib.h>

#include "cpu_context.h"
#include "cross_entropy_cases.h"
#include "assertions.h"
#include "fusedlogp.h"
#include "shards.h"

static int start(void **state)
{
    if (cpu_context_start(state) != 0)
        return 1;
    return flp_token_loss_define(cpu_context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK;
}

static flp_shard_cross_entropy scratch(const flp_linear_cross_entropy_problem *whole, const flp_cutting *cuts)
{
    const size_t rows = (size_t)cuts->ranks * (size_t)whole->backward.forward.rows + 1;
    const flp_shard_cross_entropy made = { .partials = calloc(rows, FLP_PARTIAL_FLOATS * sizeof(float)),
                                           .grad_hidden = calloc(rows, (size_t)whole->backward.forward.hidden * sizeof(float)) };

    assert_non_null(made.partials);
    assert_non_null(made.grad_hidden);
    return made;
}

static void release(flp_shard_cross_entropy *run)
{
    free(run->partials);
    free(run->grad_hidden);
}

static int cut_case_is_right(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data, const flp_cutting *cuts)
{
    flp_cross_entropy_case_call call;
    flp_shard_cross_entropy run = scratch(&c->problem, cuts);
    char message[256];
    flp_status status;
    int right;

    flp_cross_entropy_case_restore_outputs(data);
    flp_cross_entropy_case_args(c, data, NULL, NULL, NULL, &call);
    status = flp_shard_run_cross_entropy(cpu_context, &c->problem, &call.args, cuts, &run);
    right = status == FLP_OK && flp_cross_entropy_case_check(c, data, flp_gradient_cpu_roundoff(c->problem.backward.forward.dtype), message, sizeof(message));
    if (!right)
        print_error("case \"%s\", %s: %s\n", c->gradient.name, cuts->name, status == FLP_OK ? message : flp_error_message());
    else {
        assert_int_equal(run.bad_count, data->forward.bad_count);
        assert_int_equal(run.bad_first, data->forward.bad_first);
    }
    release(&run);
    return right;
}

/* Within the tolerances of the call without shards. */
static void every_case_in_shards_agrees_with_fp64(void **state)
{
    int failures = 0;

    (void)state;
    for (int i = 0; i < flp_cross_entropy_case_count(); i++) {
        flp_cross_entropy_case c;
        flp_cross_entropy_case_data data;
        flp_cross_entropy_case_get(i, &c);
        if (!flp_case_dtype_runs(c.problem.backward.forward.dtype))
            continue;
        assert_true(flp_cross_entropy_case_make_data(&c, &data));
        failures += !cut_case_is_right(&c, &data, &flp_cuttings[i % FLP_CUTTINGS]); /* in turns: of each option there are many cases */
        flp_cross_entropy_case_free_data(&data);
    }
    assert_int_equal(failures, 0);
}

/* ---- bits ---- */

enum { N = 37, D = 33, V = 1100 };

typedef struct {
    float hidden[N * D], weight[V * D], bias[V], classes[V], tokens[N], row_temperature[N];
    float loss[N], logp[N], lse[N], entropy[N], grad_hidden[N * D], grad_weight[V * D], grad_bias[V];
    int64_t target[N];
} tensors;

static const flp_linear_cross_entropy_problem small = {
    .backward = { .forward = { .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .hidden_stride = D, .weight_stride = D, .bias_dtype = FLP_F32 },
                  .grad_hidden = FLP_F32,
                  .grad_weight = FLP_F32,
                  .grad_bias = FLP_F32,
                  .grad_hidden_stride = D,
                  .grad_weight_stride = D },
    .reduction = FLP_REDUCE_NONE,
    .label_smoothing = 1,
    .class_weights = FLP_F32,
    .token_weights = 1,
    .entropy = 1
};

static tensors *make_tensors(void)
{
    tensors *made = calloc(1, sizeof(*made));

    assert_non_null(made);
    for (int i = 0; i < N * D; i++)
        made->hidden[i] = (float)flp_case_random_normal(1, (uint64_t)i);
    for (int i = 0; i < V * D; i++)
        made->weight[i] = (float)flp_case_random_normal(2, (uint64_t)i);
    for (int i = 0; i < V; i++) {
        made->bias[i] = (float)flp_case_random_normal(3, (uint64_t)i);
        made->classes[i] = 0.5f + (float)(i % 7) / 7;
    }
    for (int i = 0; i < N; i++) {
        made->target[i] = i % 5 == 4 ? -100 : i * 7919 % V;
        made->row_temperature[i] = 0.5f + (float)(i % 3);
        made->tokens[i] = (float)(i % 4);
    }
    return made;
}

static flp_linear_cross_entropy_args args_of(tensors *t)
{
    return (flp_linear_cross_entropy_args){ .rows = N,
                                            .hidden = t->hidden,
                                            .weight = t->weight,
                                            .bias = t->bias,
                                            .target = t->target,
                                            .ignore_index = -100,
                                            .flags = FLP_IGNORE_INDEX,
                                            .row_temperature = t->row_temperature,
                                            .class_weights = t->classes,
                                            .token_weights = t->tokens,
                                            .label_smoothing = 0.1,
                                            .lse_square_scale = 1e-3,
                                            .loss = t->loss,
                                            .logp = t->logp,
                                            .lse = t->lse,
                                            .entropy = t->entropy,
                                            .grad_hidden = t->grad_hidden,
                                            .grad_weight = t->grad_weight,
                                            .grad_bias = t->grad_bias };
}

static tensors *run_cut(flp_context *context, const flp_cutting *cuts)
{
    tensors *t = make_tensors();
    const flp_linear_cross_entropy_args args = args_of(t);
    flp_shard_cross_entropy run = scratch(&small, cuts);

    assert_succeeds(flp_shard_run_cross_entropy(context, &small, &args, cuts, &run));
    release(&run);
    return t;
}

/* Shards run one after another here, in any threads: what they leave depends on neither. */
static void bits_repeat_on_any_number_of_threads(void **state)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 3, .flags = FLP_CONTEXT_NO_GPU };
    flp_context *threads;

    (void)state;
    assert_succeeds(flp_context_create(&options, &threads));
    for (int k = 0; k < FLP_CUTTINGS; k++) {
        tensors *once = run_cut(cpu_context, &flp_cuttings[k]), *again = run_cut(threads, &flp_cuttings[k]);
        assert_memory_equal(once, again, sizeof(*once));
        free(once);
        free(again);
    }
    flp_context_destroy(threads);
}

/* Each rank has the rows of all: loss and statistics are the same bits, and so is a shard's grad_weight, whoever else there is in its place. */
static void every_rank_has_the_same_rows(void **state)
{
    const flp_cutting *cuts = &flp_cuttings[4];
    tensors *t = make_tensors();
    const flp_linear_cross_entropy_args args = args_of(t);
    flp_shard_cross_entropy run = scratch(&small, cuts);
    float loss[N], lse[N];

    (void)state;
    assert_succeeds(flp_shard_run_cross_entropy(cpu_context, &small, &args, cuts, &run));
    memcpy(loss, t->loss, sizeof(loss));
    memcpy(lse, t->lse, sizeof(lse));
    for (int rank = 0; rank < cuts->ranks; rank++) {
        const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(&small, cuts, rank);
        flp_linear_cross_entropy_args of = flp_shard_cross_entropy_args(&small, &args, &shard, run.partials, run.grad_hidden);
        of.ranks = cuts->ranks;
        memset(t->loss, 0, sizeof(t->loss));
        memset(t->lse, 0, sizeof(t->lse));
        assert_succeeds(flp_linear_cross_entropy_merge(cpu_context, &shard, &of));
        assert_memory_equal(loss, t->loss, sizeof(loss));
        assert_memory_equal(lse, t->lse, sizeof(lse));
    }
    release(&run);
    free(t);
}

/* The shards' partials come in any order; they lie in one. */
static void bits_do_not_depend_on_the_order_of_arrival(void **state)
{
    const flp_cutting *cuts = &flp_cuttings[4];
    tensors *once = run_cut(cpu_context, cuts), *again = make_tensors();
    const flp_linear_cross_entropy_args args = args_of(again);
    flp_shard_cross_entropy run = scratch(&small, cuts);

    (void)state;
    for (int rank = cuts->ranks - 1; rank >= 0; rank--) {
        const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(&small, cuts, rank);
        const flp_linear_cross_entropy_args of = flp_shard_cross_entropy_args(&small, &args, &shard, run.partials + rank * N * FLP_PARTIAL_FLOATS, NULL);
        assert_succeeds(flp_linear_cross_entropy_partials(cpu_context, &shard, &of));
    }
    const flp_linear_cross_entropy_problem any = flp_shard_cross_entropy_of(&small, cuts, 3);
    flp_linear_cross_entropy_args merge = flp_shard_cross_entropy_args(&small, &args, &any, run.partials, run.grad_hidden);
    merge.ranks = cuts->ranks;
    assert_succeeds(flp_linear_cross_entropy_merge(cpu_context, &any, &merge));
    assert_memory_equal(once->loss, again->loss, sizeof(once->loss));
    assert_memory_equal(once->entropy, again->entropy, sizeof(once->entropy));
    release(&run);
    free(once);
    free(again);
}

/* The rows are those of linear_logp's merge, but for rows that do not count. */
static void rows_have_the_bits_of_linear_logps_merge(void **state)
{
    const flp_cutting *cuts = &flp_cuttings[4];
    tensors *t = run_cut(cpu_context, cuts);
    const flp_linear_cross_entropy_args given = args_of(t);
    flp_linear_logp_problem forward = small.backward.forward;
    float partials[4 * N * FLP_PARTIAL_FLOATS], logp[N], lse[N], entropy[N];
    flp_linear_logp_args args = { .logp = logp, .lse = lse, .entropy = entropy };

    (void)state;
    forward.entropy = 1;
    memcpy(&args, &given, offsetof(flp_linear_logp_args, logp));
    for (int rank = 0; rank < cuts->ranks; rank++) {
        const flp_linear_logp_problem shard = flp_shard_of(&forward, cuts, rank);
        const flp_linear_logp_args of = flp_shard_args(&args, &shard, partials + rank * N * FLP_PARTIAL_FLOATS);
        assert_succeeds(flp_linear_logp(cpu_context, &shard, &of));
    }
    const flp_linear_logp_problem any = flp_shard_of(&forward, cuts, 0);
    const flp_linear_logp_merge_args merge = flp_shard_merge_args(&args, partials, cuts->ranks);
    assert_succeeds(flp_linear_logp_merge(cpu_context, &any, &merge));
    for (int i = 0; i < N; i++) {
        const int counts = t->target[i] >= 0;
        assert_memory_equal(&logp[i], &t->logp[i], sizeof(float));
        assert_true(counts ? lse[i] == t->lse[i] && entropy[i] == t->entropy[i] : t->lse[i] == 0 && t->entropy[i] == 0);
    }
    free(t);
}

/* ---- refusals ---- */

static void a_shard_takes_two_calls_and_a_whole_one(void **state)
{
    tensors *t = make_tensors();
    const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(&small, &flp_cuttings[1], 1);
    const flp_linear_cross_entropy_args whole = args_of(t);
    float partials[2 * N * FLP_PARTIAL_FLOATS];
    flp_linear_cross_entropy_args args = flp_shard_cross_entropy_args(&small, &whole, &shard, partials, t->grad_hidden);

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(cpu_context, &shard, &args),
                 "problem.vocab_total: got 1100, wanted 0: of a shard, flp_linear_cross_entropy_partials and flp_linear_cross_entropy_merge");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_merge(cpu_context, &shard, &args), "ranks: got 0, wanted at least 1");
    args.ranks = 2;
    args.partials = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_partials(cpu_context, &shard, &args), "partials: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_merge(cpu_context, &shard, &args), "partials: got NULL");
    args.partials = partials;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_partials(cpu_context, &small, &args), "problem.vocab_total: got 0, wanted that of a shard");
    args.partials = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_merge(cpu_context, &small, &args), "problem.vocab_total: got 0, wanted that of a shard");
    args.partials = partials;
    args.class_weights = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_partials(cpu_context, &shard, &args), "class_weights: got NULL");
    free(t);
}

static void a_whole_problem_has_no_partials(void **state)
{
    tensors *t = make_tensors();
    flp_linear_cross_entropy_args args = args_of(t);

    (void)state;
    args.partials = t->logp;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(cpu_context, &small, &args), "partials: got");
    free(t);
}

/* Gradients are zeros, and so is a loss that is a sum. */
static void without_rows_there_are_zeros(void **state)
{
    tensors *t = make_tensors();
    flp_linear_cross_entropy_problem whole = small;
    float partials[1] = { 0 };

    (void)state;
    whole.reduction = FLP_REDUCE_SUM;
    const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(&whole, &flp_cuttings[1], 1);
    flp_linear_cross_entropy_args args = args_of(t);
    args.rows = 0;
    args = flp_shard_cross_entropy_args(&whole, &args, &shard, partials, t->grad_hidden);
    args.ranks = 2;
    t->loss[0] = 3;
    t->grad_weight[V * D - 1] = 3;
    assert_succeeds(flp_linear_cross_entropy_partials(cpu_context, &shard, &args));
    assert_succeeds(flp_linear_cross_entropy_merge(cpu_context, &shard, &args));
    assert_true(t->loss[0] == 0 && t->grad_weight[V * D - 1] == 0);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_in_shards_agrees_with_fp64),
        cmocka_unit_test(bits_repeat_on_any_number_of_threads),
        cmocka_unit_test(every_rank_has_the_same_rows),
        cmocka_unit_test(bits_do_not_depend_on_the_order_of_arrival),
        cmocka_unit_test(rows_have_the_bits_of_linear_logps_merge),
        cmocka_unit_test(a_shard_takes_two_calls_and_a_whole_one),
        cmocka_unit_test(a_whole_problem_has_no_partials),
        cmocka_unit_test(without_rows_there_are_zeros),
    };

    return cmocka_run_group_tests(tests, start, cpu_context_stop);
}
