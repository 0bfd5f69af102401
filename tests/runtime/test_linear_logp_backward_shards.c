/* linear_logp's backward over shards of the vocabulary, on the host: all cases, cut in many ways, against fp64; grad_weight's and grad_bias' bits. */
#include <stdlib.h>

#include "cpu_context.h"
#include "assertions.h"
#include "fusedlogp.h"
#include "shards.h"

static flp_status run_shards(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args, const flp_cutting *cuts)
{
    const int64_t part = args->rows * whole->forward.hidden;
    float *parts = malloc((size_t)(cuts->ranks * part + 1) * sizeof(*parts));
    flp_status status = FLP_OK;

    assert_non_null(parts);
    for (int rank = 0; status == FLP_OK && rank < cuts->ranks; rank++) {
        const flp_linear_logp_backward_problem shard = flp_shard_backward_of(whole, cuts, rank);
        const flp_linear_logp_backward_args of_shard = flp_shard_backward_args(whole, args, &shard, parts + rank * part);
        status = flp_linear_logp_backward(cpu_context, &shard, &of_shard);
    }
    if (status == FLP_OK)
        flp_shard_sum_hidden(whole, args, parts, cuts->ranks);
    free(parts);
    return status;
}

static int cut_case_is_right(const flp_gradient_case *c, flp_gradient_case_data *data, const flp_gradient_reference *reference, const flp_cutting *cuts)
{
    flp_linear_logp_backward_problem whole = c->problem;
    flp_linear_logp_backward_args args;
    char message[256];
    int right;

    whole.with_forward = 0;
    whole.memory_budget = 0;
    flp_gradient_case_args(c, data, NULL, NULL, &args);
    flp_gradient_case_restore_outputs(data);
    flp_status status = run_shards(&whole, &args, cuts);
    right = status == FLP_OK && flp_gradient_case_check(c, data, reference, flp_gradient_cpu_roundoff(whole.forward.dtype), message, sizeof(message));
    if (!right)
        print_error("case \"%s\", %s: %s\n", c->name, cuts->name, status == FLP_OK ? message : flp_error_message());
    return right;
}

/* Within the tolerances of the call without shards: parts of grad_hidden are fp32 sums, as the whole's are. */
static void every_case_in_shards_agrees_with_fp64(void **state)
{
    int failures = 0;

    (void)state;
    for (int i = 0; i < flp_gradient_case_count(); i++) {
        flp_gradient_case c;
        flp_gradient_case_data data;
        flp_gradient_reference reference;
        flp_gradient_case_get(i, &c);
        if (!flp_case_dtype_runs(c.problem.forward.dtype))
            continue;
        assert_true(flp_gradient_case_make_data(&c, &data, &reference));
        failures += !cut_case_is_right(&c, &data, &reference, &flp_cuttings[i % FLP_CUTTINGS]); /* in turns: of each option there are many cases */
        flp_gradient_reference_free(&reference);
        flp_gradient_case_free_data(&data);
    }
    assert_int_equal(failures, 0);
}

/* ---- small tensors ---- */

enum { N = 37, D = 33, V = 1100 };

typedef struct {
    float hidden[N * D], weight[V * D], bias[V], logp[N], lse[N], ones[N], grad_hidden[N * D], grad_weight[V * D], grad_bias[V];
    int64_t target[N];
} tensors;

static const flp_linear_logp_backward_problem small = {
    .forward = { .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .hidden_stride = D, .weight_stride = D, .bias_dtype = FLP_F32 },
    .grad_hidden = FLP_F32,
    .grad_weight = FLP_F32,
    .grad_bias = FLP_F32,
    .grad_hidden_stride = D,
    .grad_weight_stride = D
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
        made->target[i] = i * 7919 % V;
        made->ones[i] = 1;
        made->lse[i] = 20;
        made->logp[i] = -3;
    }
    return made;
}

static flp_linear_logp_backward_args args_of(tensors *t)
{
    return (flp_linear_logp_backward_args){ .rows = N,
                                            .hidden = t->hidden,
                                            .weight = t->weight,
                                            .bias = t->bias,
                                            .target = t->target,
                                            .lse = t->lse,
                                            .logp = t->logp,
                                            .g_logp = t->ones,
                                            .grad_hidden = t->grad_hidden,
                                            .grad_weight = t->grad_weight,
                                            .grad_bias = t->grad_bias };
}

/* An entry's gradients are sums over rows, in their order, wherever the vocabulary is cut. */
static void grad_weight_and_grad_bias_have_the_bits_of_the_whole(void **state)
{
    tensors *whole = make_tensors(), *cut = make_tensors();
    const flp_linear_logp_backward_args whole_args = args_of(whole), args = args_of(cut);

    (void)state;
    assert_succeeds(flp_linear_logp_backward(cpu_context, &small, &whole_args));
    for (int k = 0; k < FLP_CUTTINGS; k++) {
        memset(cut->grad_weight, 0, sizeof(cut->grad_weight));
        memset(cut->grad_bias, 0, sizeof(cut->grad_bias));
        assert_succeeds(run_shards(&small, &args, &flp_cuttings[k]));
        assert_memory_equal(whole->grad_weight, cut->grad_weight, sizeof(whole->grad_weight));
        assert_memory_equal(whole->grad_bias, cut->grad_bias, sizeof(whole->grad_bias));
    }
    free(whole);
    free(cut);
}

static void a_shard_has_no_forward_of_its_own(void **state)
{
    flp_linear_logp_backward_problem shard = flp_shard_backward_of(&small, &flp_cuttings[1], 0);
    flp_plan *plan;

    (void)state;
    shard.with_forward = 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_plan_create(cpu_context, &shard, &plan),
                 "with_forward: got 1, wanted 0: a shard's rows are merged");
}

static void a_shard_that_is_not_empty_has_its_tensors(void **state)
{
    tensors *t = make_tensors();
    const flp_linear_logp_backward_problem shard = flp_shard_backward_of(&small, &flp_cuttings[1], 1);
    const flp_linear_logp_backward_args whole = args_of(t);
    flp_linear_logp_backward_args args = flp_shard_backward_args(&small, &whole, &shard, t->grad_hidden);

    (void)state;
    args.grad_weight = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward(cpu_context, &shard, &args), "grad_weight: got NULL");
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_in_shards_agrees_with_fp64),
        cmocka_unit_test(grad_weight_and_grad_bias_have_the_bits_of_the_whole),
        cmocka_unit_test(a_shard_has_no_forward_of_its_own),
        cmocka_unit_test(a_shard_that_is_not_empty_has_its_tensors),
    };

    return cmocka_run_group_tests(tests, cpu_context_start, cpu_context_stop);
}
