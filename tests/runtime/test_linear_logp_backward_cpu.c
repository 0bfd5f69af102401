/* linear_logp's backward on the host: all cases against fp64, called directly and through the public calls. */
#include "operators/linear/linear_logp_cpu.h"
#include "gradient_cases.h"
#include <stdlib.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static flp_thread_pool *pool;
static flp_context *context;

static int start(void **state)
{
    (void)state;
    flp_context_options options = { .cache_directory = "", .cpu_threads = 2, .flags = FLP_CONTEXT_NO_GPU };
    return flp_thread_pool_create(2, &pool) != FLP_OK || flp_context_create(&options, &context) != FLP_OK;
}

static int stop(void **state)
{
    (void)state;
    flp_thread_pool_destroy(pool);
    flp_context_destroy(context);
    return 0;
}

/* The context's own plans cannot be asked for their bad targets. */
enum { NOT_COUNTED = -2 };

typedef flp_status executor(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args, int64_t *bad_count, int64_t *bad_first);

static flp_status call_directly(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args, int64_t *bad_count,
                                int64_t *bad_first)
{
    return flp_linear_logp_backward_cpu(pool, problem, args, NULL, bad_count, bad_first);
}

static flp_status call_through_a_plan(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args, int64_t *bad_count,
                                      int64_t *bad_first)
{
    flp_linear_logp_backward_args with_workspace = *args;
    void *memory = NULL;
    flp_plan *plan;
    flp_status status = flp_linear_logp_backward_plan_create(context, problem, &plan);
    if (status != FLP_OK)
        return status;
    if (problem->with_forward) {
        const flp_gradient_case c = { .problem = *problem };
        float *outputs = malloc((size_t)(3 * args->rows + 1) * sizeof *outputs);
        assert_non_null(outputs);
        with_workspace.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, args->rows);
        with_workspace.workspace = memory = aligned_alloc(256, with_workspace.workspace_bytes + 256);
        assert_non_null(memory);
        flp_linear_logp_args forward = flp_gradient_case_forward_args(&c, &with_workspace, outputs);
        status = flp_linear_logp_backward_execute_forward(plan, &forward);
        free(outputs);
    }
    if (status == FLP_OK)
        status = flp_linear_logp_backward_execute(plan, &with_workspace);
    if (status == FLP_OK)
        status = flp_plan_target_errors(plan, bad_count, bad_first);
    flp_plan_destroy(plan);
    free(memory);
    return status;
}

static flp_status call_by_dispatch(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args, int64_t *bad_count,
                                   int64_t *bad_first)
{
    flp_linear_logp_backward_problem alone = *problem;
    alone.with_forward = 0;
    alone.memory_budget = 0;
    *bad_count = *bad_first = NOT_COUNTED;
    return flp_linear_logp_backward(context, &alone, args);
}

static int64_t bad_targets_of(const flp_gradient_case *c, const flp_linear_logp_backward_args *args, int64_t *first)
{
    int64_t count = 0;
    *first = -1;
    for (int64_t i = 0; i < args->rows; i++) {
        int64_t target = c->problem.forward.target_dtype == FLP_I32 ? ((const int32_t *)args->target)[i] : ((const int64_t *)args->target)[i];
        if (flp_reference_ignores(args->flags, args->ignore_index, target) || (target >= 0 && target < c->problem.forward.vocab))
            continue;
        if (count++ == 0)
            *first = i;
    }
    return count;
}

/* Returns whether the case held; prints why not. */
static int execute(const flp_gradient_case *c, flp_gradient_case_data *data, const flp_gradient_reference *reference, executor *executor)
{
    flp_linear_logp_backward_args args;
    char message[256];
    int64_t bad_count = 0, bad_first = -1, first, count;
    flp_gradient_case_args(c, data, NULL, NULL, &args);
    flp_gradient_case_restore_outputs(data);
    flp_status status = executor(&c->problem, &args, &bad_count, &bad_first);
    int right = status == FLP_OK && flp_gradient_case_check(c, data, reference, flp_gradient_cpu_roundoff(c->problem.forward.dtype), message, sizeof message);
    if (!right)
        print_error("case \"%s\": %s\n", c->name, status == FLP_OK ? message : flp_error_message());
    count = bad_targets_of(c, &args, &first);
    if (bad_count != NOT_COUNTED) {
        assert_int_equal(bad_count, count);
        assert_int_equal(bad_first, first);
    }
    return right;
}

static void every_case_agrees_with_fp64(void **state)
{
    (void)state;
    int failures = 0;
    for (int i = 0; i < flp_gradient_case_count(); i++) {
        flp_gradient_case c;
        flp_gradient_case_data data;
        flp_gradient_reference reference;
        flp_gradient_case_get(i, &c);
        if (!flp_case_dtype_runs(c.problem.forward.dtype))
            continue;
        assert_true(flp_gradient_case_make_data(&c, &data, &reference));
        failures += !execute(&c, &data, &reference, call_directly);
        failures += !execute(&c, &data, &reference, call_through_a_plan);
        failures += !execute(&c, &data, &reference, call_by_dispatch);
        flp_gradient_reference_free(&reference);
        flp_gradient_case_free_data(&data);
    }
    assert_int_equal(failures, 0);
}

/* The figures that the project set out from; the gradients of a sum, whose rows weigh 1. */
static void the_seed_case_has_the_gradients_of_fp64(void **state)
{
    (void)state;
    flp_gradient_case c = { .name = "" };
    for (int i = 0; i < flp_gradient_case_count() && strcmp(c.name, "seed case") != 0; i++)
        flp_gradient_case_get(i, &c);
    assert_string_equal(c.name, "seed case");
    c.upstream = FLP_UPSTREAM_ONES;
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_linear_logp_backward_args args;
    assert_true(flp_gradient_case_make_data(&c, &data, &reference));
    flp_gradient_case_args(&c, &data, NULL, NULL, &args);
    assert_int_equal(flp_linear_logp_backward_cpu(pool, &c.problem, &args, NULL, NULL, NULL), FLP_OK);
    assert_true(flp_gradient_is_close(&reference.hidden, args.grad_hidden, 512, 1, 512));
    assert_true(flp_gradient_is_close(&reference.weight, args.grad_weight, 1, 512, 1024));
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
}

static void bad_targets_are_added_to_what_was_counted(void **state)
{
    (void)state;
    float hidden[3] = { 1, 2, 3 }, weight[2] = { 1, -1 }, ones[3] = { 1, 1, 1 }, gradient[3] = { 9, 9, 9 };
    int64_t target[3] = { 0, 2, -5 }, count = 10, first = 5;
    flp_linear_logp_backward_problem problem = {
        .forward = { .dtype = FLP_F32, .rows = 3, .hidden = 1, .vocab = 2, .hidden_stride = 1, .weight_stride = 1, .target_dtype = FLP_I64 },
        .grad_hidden = FLP_F32,
        .grad_hidden_stride = 1
    };
    flp_linear_logp_backward_args args = { .rows = 3,
                                           .hidden = hidden,
                                           .weight = weight,
                                           .target = target,
                                           .ignore_index = -100,
                                           .flags = FLP_IGNORE_INDEX,
                                           .lse = ones,
                                           .g_logp = ones,
                                           .grad_hidden = gradient };
    assert_int_equal(flp_linear_logp_backward_cpu(pool, &problem, &args, NULL, &count, &first), FLP_OK);
    assert_int_equal(count, 12);
    assert_int_equal(first, 1);
    assert_true(gradient[0] != 9 && gradient[1] == 0 && gradient[2] == 0);
}

static void numerics_names_the_arithmetic(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_linear_logp_backward_cpu_numerics(FLP_BF16, &text);
    assert_non_null(text.data);
    assert_int_equal(strncmp(text.data, "linear_logp_backward:cpu", 24), 0);
    flp_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_agrees_with_fp64),
        cmocka_unit_test(the_seed_case_has_the_gradients_of_fp64),
        cmocka_unit_test(bad_targets_are_added_to_what_was_counted),
        cmocka_unit_test(numerics_names_the_arithmetic),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
