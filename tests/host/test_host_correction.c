/* Each kernel multiplies its products exactly once by the factor that corrects the tensor cores' truncation: if the factor is changed to 2 and hidden is
 * halved, the results stay the same. */
#include <stdio.h>
#include <stdlib.h>

#include "host/host_kernels.h"
#include "host/host_linear_logp.h"
#include "host/host_linear_logp_backward.h"
#include "host/host_suite.h"
#include "runtime/assertions.h"

/* The factor for D = 64, which all cases have. */
static const flp_host_mutation doubled = { "correction = 1.0f + 64 * 0x1p-30f", "correction = 2" };

#define BF16 .dtype = FLP_BF16, .rows = 33, .hidden = 64, .vocab = 300
static const flp_case forwards[] = {
    { .name = "plain", .problem = { BF16 } },
    { .name = "f16, columns", .problem = { .dtype = FLP_F16, .rows = 33, .hidden = 64, .vocab = 304, .weight_layout = FLP_HIDDEN_VOCAB } },
    { .name = "bias", .bias = FLP_CASE_PLAIN_BIAS, .problem = { BF16, .bias_dtype = FLP_F32 } },
    { .name = "softcap", .problem = { BF16, .softcap = 5 } },
    { .name = "bias and softcap", .bias = FLP_CASE_PLAIN_BIAS, .problem = { BF16, .bias_dtype = FLP_F32, .softcap = 5 } },
    { .name = "argmax and entropy", .problem = { BF16, .argmax = 1, .entropy = 1 } },
    { .name = "more rows than a block", .problem = { .dtype = FLP_BF16, .rows = 150, .hidden = 64, .vocab = 300 } },
};
static const int with_forward[] = { 0, 1 };
enum { FORWARDS = sizeof(forwards) / sizeof(*forwards) };

static void halve_hidden(const flp_case *c, flp_case_data *data)
{
    const flp_case_buffer *hidden = &data->buffer[FLP_CASE_HIDDEN];
    void *values = hidden->base + hidden->offset;

    for (int64_t i = 0; i < c->problem.rows * c->problem.hidden_stride; i++)
        flp_reference_encode(c->problem.dtype, flp_reference_decode(c->problem.dtype, values, i) / 2, values, i);
}

static flp_context *start(void)
{
    flp_context *context = flp_host_suite_start(90);

    assert_non_null(context);
    flp_host_kernels_forget();
    flp_host_kernels_mutate(&doubled);
    flp_host_suite_begin(1);
    return context;
}

static void finish(flp_context *context, int done, const char *name, const char *message)
{
    const int mutated = flp_host_kernels_mutated();

    flp_host_kernels_mutate(NULL);
    flp_context_destroy(context);
    if (!done)
        fail_msg("%s: %s", name, message);
    assert_int_not_equal(0, mutated);
}

static void the_forward_applies_it_once(void **state)
{
    (void)state;
    for (int i = 0; i < FORWARDS; i++) {
        flp_context *context = start();
        flp_case c = forwards[i];
        flp_case_data data;
        flp_linear_logp_args args;
        flp_reference reference;
        char message[8192] = "";

        flp_host_linear_logp_complete(&c);
        assert_true(flp_case_make_data(&c, &data));
        flp_case_args(&c, &data, NULL, &args);
        assert_true(flp_reference_compute(&c.problem, &args, &reference));
        halve_hidden(&c, &data);
        finish(context, flp_host_linear_logp_run_data(context, &c, &data, &reference, message, sizeof(message)), c.name, message);
        flp_reference_free(&reference);
        flp_case_free_data(&data);
    }
}

/* grad_weight is left out: it is a product with hidden itself, which is halved. */
static void the_backward_applies_it_once(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * FORWARDS; i++) {
        flp_context *context = start();
        flp_gradient_case c = { .forward = forwards[i / 2] };
        flp_gradient_case_data data;
        flp_gradient_reference reference;
        char message[8192] = "";

        flp_host_linear_logp_complete(&c.forward);
        c.forward.problem.argmax = c.forward.problem.entropy = 0;
        c.problem = (flp_linear_logp_backward_problem){ .forward = c.forward.problem,
                                                        .grad_hidden = c.forward.problem.dtype,
                                                        .grad_bias = FLP_F32,
                                                        .grad_hidden_stride = c.forward.problem.hidden,
                                                        .with_forward = with_forward[i % 2],
                                                        .g_entropy = forwards[i / 2].problem.entropy };
        if (c.forward.problem.bias_dtype == FLP_NONE)
            c.problem.grad_bias = FLP_NONE;
        assert_true(flp_gradient_case_make_data(&c, &data, &reference));
        halve_hidden(&c.forward, &data.forward);
        finish(context, flp_host_linear_logp_backward_run_data(context, &c, &data, &reference, message, sizeof(message)), c.forward.name, message);
        flp_gradient_reference_free(&reference);
        flp_gradient_case_free_data(&data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forward_applies_it_once),
        cmocka_unit_test(the_backward_applies_it_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
