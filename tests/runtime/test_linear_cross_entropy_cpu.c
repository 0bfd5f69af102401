/* linear_cross_entropy on the host: all cases against fp64, through a plan and without one; threads; and what it shares with its parts. */
#include "cpu/convert.h"
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "cross_entropy_cases.h"
#include <math.h>
#include <stdlib.h>
#include "assertions.h"

static flp_context *contexts[4]; /* [t]: of t threads */

static int start(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++) {
        flp_context_options options = { .cache_directory = "", .cpu_threads = threads, .flags = FLP_CONTEXT_NO_GPU };
        if (flp_context_create(&options, &contexts[threads]) != FLP_OK ||
            flp_token_loss_define(contexts[threads], flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK)
            return 1;
    }
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++)
        flp_context_destroy(contexts[threads]);
    return 0;
}

static void find_case(const char *name, flp_cross_entropy_case *c)
{
    for (int i = 0; i < flp_cross_entropy_case_count(); i++) {
        flp_cross_entropy_case_get(i, c);
        if (strcmp(c->gradient.name, name) == 0)
            return;
    }
    fail_msg("there is no case \"%s\"", name);
}

typedef flp_status executor(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args);

static flp_status call_through_a_plan(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    flp_plan *plan;
    flp_status status = flp_linear_cross_entropy_plan_create(contexts[2], problem, &plan);
    if (status != FLP_OK)
        return status;
    status = flp_linear_cross_entropy_execute(plan, args);
    flp_plan_destroy(plan);
    return status;
}

static flp_status call_by_dispatch(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    return flp_linear_cross_entropy(contexts[2], problem, args);
}

/* Returns whether the case held; prints why not. */
static int execute(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data, executor *executor)
{
    flp_cross_entropy_case_call call;
    char message[256];
    flp_cross_entropy_case_restore_outputs(data);
    flp_cross_entropy_case_args(c, data, NULL, NULL, NULL, &call);
    flp_status status = executor(&c->problem, &call.args);
    int right =
        status == FLP_OK && flp_cross_entropy_case_check(c, data, flp_gradient_cpu_roundoff(c->problem.backward.forward.dtype), message, sizeof message);
    if (!right)
        print_error("case \"%s\": %s\n", c->gradient.name, status == FLP_OK ? message : flp_error_message());
    return right;
}

static void every_case_agrees_with_fp64(void **state)
{
    (void)state;
    int failures = 0;
    for (int i = 0; i < flp_cross_entropy_case_count(); i++) {
        flp_cross_entropy_case c;
        flp_cross_entropy_case_data data;
        flp_cross_entropy_case_get(i, &c);
        if (!flp_case_dtype_runs(c.problem.backward.forward.dtype))
            continue;
        assert_true(flp_cross_entropy_case_make_data(&c, &data));
        failures += !execute(&c, &data, call_through_a_plan);
        failures += !execute(&c, &data, call_by_dispatch);
        flp_cross_entropy_case_free_data(&data);
    }
    assert_int_equal(failures, 0);
}

static void a_row_of_weight_0_is_nothing_even_where_its_loss_is_infinite(void **state)
{
    (void)state;
    const float hidden[2][2] = { { 1, 2 }, { 2, -1 } }, weight[3][2] = { { 0, 1 }, { 1, 0 }, { 1, 1 } }, bias[3] = { 0, 0, -INFINITY }, tokens[2] = { 0, 1 };
    const int64_t target[2] = { 2, 0 };
    float loss, grad_hidden[2][2], grad_weight[3][2];
    const flp_linear_cross_entropy_problem problem = {
        .backward = { .forward = { .dtype = FLP_F32, .rows = 2, .hidden = 2, .vocab = 3, .bias_dtype = FLP_F32, .target_dtype = FLP_I64 },
                      .grad_hidden = FLP_F32,
                      .grad_weight = FLP_F32 },
        .reduction = FLP_REDUCE_MEAN,
        .token_weights = 1
    };
    const flp_linear_cross_entropy_args args = { .rows = 2,
                                                 .hidden = hidden,
                                                 .weight = weight,
                                                 .bias = bias,
                                                 .target = target,
                                                 .temperature = 1,
                                                 .token_weights = tokens,
                                                 .loss = &loss,
                                                 .grad_hidden = grad_hidden,
                                                 .grad_weight = grad_weight };
    assert_int_equal(FLP_OK, call_by_dispatch(&problem, &args));
    /* Row 1's logits are -1, 2 and none. */
    assert_true(fabs(loss - log1p(exp(3))) < 1e-6);
    assert_true(grad_hidden[0][0] == 0 && grad_hidden[0][1] == 0);
    assert_true(fabs(grad_weight[1][0] - 2 / (1 + exp(-3))) < 1e-5);
}

/* The figures that the project set out from. */
static void the_seed_case_has_the_loss_and_the_gradients_of_fp64(void **state)
{
    static const char *const names[] = { "seed case", "seed case, sum" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        flp_cross_entropy_case c;
        flp_cross_entropy_case_data data;
        flp_cross_entropy_case_call call;
        find_case(names[i], &c);
        assert_true(flp_cross_entropy_case_make_data(&c, &data));
        flp_cross_entropy_case_args(&c, &data, NULL, NULL, NULL, &call);
        assert_succeeds(flp_linear_cross_entropy(contexts[2], &c.problem, &call.args));
        assert_true(fabs(call.args.loss[0] - data.reference.total) <= 1e-5 * data.reference.total);
        assert_true(flp_gradient_is_close(&data.gradients.hidden, call.args.grad_hidden, 512, 1, 512));
        assert_true(flp_gradient_is_close(&data.gradients.weight, call.args.grad_weight, 1, 512, 1024));
        flp_cross_entropy_case_free_data(&data);
    }
}

/* ---- bits ---- */

static unsigned char *copy_of(const flp_case_buffer *buffer)
{
    unsigned char *copy = malloc(buffer->bytes);
    memcpy(copy, buffer->base, buffer->bytes);
    return copy;
}

static void loss_and_gradients_repeat_on_any_number_of_threads(void **state)
{
    flp_cross_entropy_case c;
    flp_cross_entropy_case_data data;
    flp_cross_entropy_case_call call;
    (void)state;
    find_case("token weights, class weights, smoothing, z-loss", &c);
    assert_true(flp_cross_entropy_case_make_data(&c, &data));
    flp_cross_entropy_case_args(&c, &data, NULL, NULL, NULL, &call);
    assert_succeeds(flp_linear_cross_entropy(contexts[1], &c.problem, &call.args));
    unsigned char *loss = copy_of(&data.own[FLP_CROSS_ENTROPY_LOSS]), *first[FLP_GRADIENT_BUFFERS];
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
        first[role] = copy_of(&data.gradient.own[role]);
    for (int run = 0; run < 20; run++) {
        flp_cross_entropy_case_restore_outputs(&data);
        assert_succeeds(flp_linear_cross_entropy(contexts[1 + run % 3], &c.problem, &call.args));
        assert_memory_equal(loss, data.own[FLP_CROSS_ENTROPY_LOSS].base, data.own[FLP_CROSS_ENTROPY_LOSS].bytes);
        for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
            assert_memory_equal(first[role], data.gradient.own[role].base, data.gradient.own[role].bytes);
    }
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
        free(first[role]);
    free(loss);
    flp_cross_entropy_case_free_data(&data);
}

/* The loss adds nothing to the forward. (Its backward takes more of it than an lse in fp32, so that has other bits than a separate call's.) */
static void the_results_are_those_of_a_separate_call(void **state)
{
    flp_cross_entropy_case c;
    flp_cross_entropy_case_data data;
    flp_cross_entropy_case_call call;
    (void)state;
    find_case("sum", &c);
    assert_true(flp_cross_entropy_case_make_data(&c, &data));
    flp_cross_entropy_case_args(&c, &data, NULL, NULL, NULL, &call);
    int64_t rows = call.args.rows;
    float *logp = malloc((size_t)rows * 4 * sizeof *logp), *lse = logp + rows, *own_logp = logp + 2 * rows, *own_lse = logp + 3 * rows;
    double sum = 0;
    call.args.logp = own_logp;
    call.args.lse = own_lse;
    call.args.entropy = NULL;
    assert_succeeds(flp_linear_cross_entropy(contexts[2], &c.problem, &call.args));

    flp_linear_logp_args forward;
    flp_case_args(&c.gradient.forward, &data.gradient.forward, NULL, &forward);
    forward.logp = logp;
    forward.lse = lse;
    forward.entropy = NULL;
    forward.argmax = NULL;
    assert_succeeds(flp_linear_logp(contexts[2], &c.problem.backward.forward, &forward));
    assert_memory_equal(logp, own_logp, (size_t)rows * sizeof *logp);
    assert_memory_equal(lse, own_lse, (size_t)rows * sizeof *lse);
    for (int64_t i = 0; i < rows; i++)
        sum -= logp[i];
    /* Each logp is rounded to fp32 here, the sum once there. */
    assert_true(fabs(call.args.loss[0] - sum) <= 0x1p-23 * sum);
    free(logp);
    flp_cross_entropy_case_free_data(&data);
}

/* Equal rows: in fp32 each addition to a sum this large would be rounded the same way. */
static void many_losses_are_added_in_fp64(void **state)
{
    enum { ROWS = 100000, VOCAB = 3 };
    static float hidden[ROWS], weight[VOCAB];
    static int32_t target[ROWS];
    const flp_linear_cross_entropy_problem problem = {
        .backward.forward = { .dtype = FLP_F32, .rows = ROWS, .hidden = 1, .vocab = VOCAB, .target_dtype = FLP_I32 }, .reduction = FLP_REDUCE_SUM
    };
    static float logp[ROWS];
    float loss;
    const flp_linear_cross_entropy_args args = { .rows = ROWS, .hidden = hidden, .weight = weight, .target = target, .loss = &loss, .logp = logp };
    (void)state;
    assert_succeeds(flp_linear_cross_entropy(contexts[2], &problem, &args));
    assert_true(fabs(logp[0] + log(3)) <= 0x1p-23);
    /* What a row adds is in fp64, or logp's fp32; the sum is rounded once. */
    assert_true(fabs(loss - ROWS * log(3)) <= 0x1p-23 * ROWS * log(3));
}

static void numerics_names_the_arithmetic(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_linear_cross_entropy_cpu_numerics(FLP_BF16, &text);
    assert_non_null(text.data);
    assert_int_equal(strncmp(text.data, "linear_cross_entropy:cpu3:linear_logp:cpu", 41), 0);
    assert_contains(text.data, ";linear_logp_backward:cpu");
    flp_text_free(&text);
}

/* More rows than one group of the forward: with room for all logits, and for some sets of them. Without a softcap they are saved where they are computed. */
static void expect_the_same_bits_with_saved_logits(double softcap)
{
    enum { ROWS = 1300, DEPTH = 16, ENTRIES = 300 };
    static uint16_t hidden[ROWS * DEPTH], weight[ENTRIES * DEPTH];
    static float wanted[ROWS * DEPTH + ENTRIES * DEPTH], got[ROWS * DEPTH + ENTRIES * DEPTH];
    static int64_t target[ROWS];
    const int64_t budgets[] = { 1500000, 0, 65 * 2 * 252 * 16 * 4 }; /* of 70 sets 46, all, and some of the second group */
    const flp_context_options options = { .flags = FLP_CONTEXT_NO_GPU };
    flp_context *context;
    for (int i = 0; i < ROWS * DEPTH; i++)
        hidden[i] = flp_convert_f32_to_bf16((float)flp_case_random_normal(1, (uint64_t)i));
    for (int i = 0; i < ENTRIES * DEPTH; i++)
        weight[i] = flp_convert_f32_to_bf16((float)flp_case_random_normal(2, (uint64_t)i));
    for (int i = 0; i < ROWS; i++)
        target[i] = i % 7 == 0 ? -100 : i % ENTRIES;
    assert_int_equal(flp_context_create(&options, &context), FLP_OK);
    for (int i = 0; i < 3; i++) {
        float loss, *to = i == 0 ? wanted : got;
        const flp_linear_cross_entropy_problem problem = {
            .backward = { .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = DEPTH, .vocab = ENTRIES, .softcap = softcap, .backend = FLP_BACKEND_CPU },
                          .grad_hidden = FLP_F32,
                          .grad_weight = FLP_F32,
                          .memory_budget = budgets[i] },
            .reduction = FLP_REDUCE_MEAN
        };
        const flp_linear_cross_entropy_args args = { .rows = ROWS,
                                                     .hidden = hidden,
                                                     .weight = weight,
                                                     .target = target,
                                                     .ignore_index = -100,
                                                     .flags = FLP_IGNORE_INDEX,
                                                     .loss = &loss,
                                                     .grad_hidden = to,
                                                     .grad_weight = to + ROWS * DEPTH };
        memset(to, 0x7f, sizeof got);
        if (flp_linear_cross_entropy(context, &problem, &args) != FLP_OK)
            fail_msg("%s", flp_error_message());
        assert_memory_equal(wanted, to, sizeof got);
    }
    flp_context_destroy(context);
}

static void saved_logits_change_no_bit(void **state)
{
    (void)state;
    expect_the_same_bits_with_saved_logits(0);
    expect_the_same_bits_with_saved_logits(3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_weight_0_is_nothing_even_where_its_loss_is_infinite),
        cmocka_unit_test(every_case_agrees_with_fp64),
        cmocka_unit_test(the_seed_case_has_the_loss_and_the_gradients_of_fp64),
        cmocka_unit_test(loss_and_gradients_repeat_on_any_number_of_threads),
        cmocka_unit_test(the_results_are_those_of_a_separate_call),
        cmocka_unit_test(many_losses_are_added_in_fp64),
        cmocka_unit_test(numerics_names_the_arithmetic),
        cmocka_unit_test(saved_logits_change_no_bit),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
