/* Runs kernels with the same inputs on the GPU and on the host machine: the model of the GPU does what the GPU does. First the forward, then the gradients.
 *
 * The largest logit's index must be the same. The other results need not, because the machine sums a product exactly and truncates once, where tensor cores
 * align and truncate, and because it takes exp2 from the C library. Each side is within eight times flp_reference.rounding of fp64, and independent errors of
 * both add up to sqrt(2) times that. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device_case.h"
#include "device/device_test.h"
#include "device/edge_cases.h"
#include "device/gradient_edge_cases.h"
#include "device/gradient_on_device.h"
#include "host/host_linear_logp.h"
#include "host/host_linear_logp_backward.h"
#include "host/host_suite.h"
#include "base/dtype.h"

enum { MOST_CASES = 32 };
static const double deviations = 8;

static flp_context *host;
static flp_case cases[MOST_CASES];
static flp_case_data on_gpu[MOST_CASES];
static int case_count;

/* Cases with ties, and with sums that are exact on both sides. */
static const flp_case exact[] = {
    { .name = "whole numbers", .values = FLP_CASE_INTEGERS, .problem = { .dtype = FLP_BF16, .argmax = 1, .entropy = 1 } },
    { .name = "whole numbers, f32", .values = FLP_CASE_INTEGERS, .problem = { .dtype = FLP_F32, .argmax = 1, .entropy = 1 } },
    { .name = "whole numbers, columns", .values = FLP_CASE_INTEGERS, .problem = { .dtype = FLP_F16, .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1 } },
};

static void collect_cases(void)
{
    for (int i = 0; i < flp_edge_case_quick_count() && i < MOST_CASES - 3; i++) {
        flp_edge_case_quick_get(i, &cases[case_count]);
        /* A large vocabulary would take the host machine minutes. */
        case_count += cases[case_count].problem.vocab < 4000;
    }
    for (int i = 0; i < 3; i++, case_count++) {
        cases[case_count] = exact[i];
        flp_case_complete(i, &cases[case_count]);
    }
}

static void run_on_gpu(const flp_case *c, flp_case_data *data)
{
    flp_gpu *gpu = &flp_device_test.gpu;
    flp_device_case on_device;
    flp_linear_logp_args args;
    char message[256] = "";
    int intact;

    assert_true(flp_case_make_data(c, data));
    assert_succeeds(flp_device_case_upload(gpu, data, 0, &on_device));
    flp_device_case_args(c, data, &on_device, &args);
    assert_succeeds(flp_linear_logp(flp_device_test.context, &c->problem, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    assert_succeeds(flp_device_case_download(gpu, data, &on_device, &intact, message, sizeof(message)));
    assert_true(intact);
    flp_gpu_free_all(gpu);
}

/* ---- gradients ---- */

static flp_gradient_case gradients[MOST_CASES];
static flp_gradient_case_data gradients_on_gpu[MOST_CASES];
static flp_gradient_reference gradient_references[MOST_CASES];
static int gradient_count;

static void collect_gradients(void)
{
    for (int i = 0; i < flp_gradient_edge_case_quick_count() && gradient_count < MOST_CASES; i++) {
        const flp_linear_logp_problem *p = &gradients[gradient_count].problem.forward;
        flp_gradient_edge_case_quick_get(i, &gradients[gradient_count]);
        gradient_count += p->vocab < 4000 && p->rows * p->hidden * p->vocab < 5000000;
    }
}

static void run_gradients_on_gpu(int index)
{
    const flp_gradient_case *c = &gradients[index];
    flp_gradient_case_data *data = &gradients_on_gpu[index];
    flp_linear_logp_backward_problem problem = c->problem;
    flp_gradient_on_device copy = { 0 };
    flp_linear_logp_backward_args args;

    problem.with_forward = 0;
    assert_true(flp_gradient_case_make_data(c, data, &gradient_references[index]));
    flp_gradient_on_device_upload(c, data, &copy, &args);
    assert_succeeds(flp_linear_logp_backward(flp_device_test.context, &problem, &args));
    flp_gradient_on_device_fetch(c, "on the GPU", &copy, data);
    flp_gpu_free_all(&flp_device_test.gpu);
}

/* ---- the two sides, one after the other ---- */

/* The GPU's results are all computed first, because the library loads one driver at a time. */
static int set_up(void **state)
{
    const int capability = flp_device_test.gpu.facts.compute_capability == 90 ? 90 : 80;

    (void)state;
    for (int i = 0; i < case_count; i++)
        run_on_gpu(&cases[i], &on_gpu[i]);
    for (int i = 0; i < gradient_count; i++)
        run_gradients_on_gpu(i);
    flp_device_test_finish();
    host = flp_host_suite_start(capability);
    return host == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < case_count; i++)
        flp_case_free_data(&on_gpu[i]);
    for (int i = 0; i < gradient_count; i++) {
        flp_gradient_case_free_data(&gradients_on_gpu[i]);
        flp_gradient_reference_free(&gradient_references[i]);
    }
    flp_context_destroy(host);
    return 0;
}

static const void *values_of(const flp_case_data *data, flp_case_role role)
{
    return data->buffer[role].base ? data->buffer[role].base + data->buffer[role].offset : NULL;
}

static void compare(const char *name, flp_case_role role, const flp_case_data *gpu, const flp_case_data *machine, const double *rounding, int64_t rows)
{
    const float *a = values_of(gpu, role), *b = values_of(machine, role);

    for (int64_t i = 0; a && i < rows; i++) {
        const double allowed = sqrt(2) * deviations * rounding[i];
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])) && !(fabs((double)a[i] - b[i]) <= allowed))
            fail_msg("%s[%lld]: the GPU has %.9g, the host machine %.9g, allowed %.3g", name, (long long)i, a[i], b[i], allowed);
    }
}

static void both_compute_the_same(void **state)
{
    const int index = (int)((const flp_case *)*state - cases);
    const flp_case *c = &cases[index];
    const int64_t rows = c->problem.rows;
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args args;
    char message[8192] = "";

    alarm(flp_device_test.seconds);
    assert_true(flp_case_make_data(c, &data));
    flp_case_args(c, &data, NULL, &args);
    assert_true(flp_reference_compute(&c->problem, &args, &reference));
    flp_host_suite_begin((uint64_t)index);
    if (!flp_host_linear_logp_run_data(host, c, &data, &reference, message, sizeof(message)))
        fail_msg("%s, on the host machine: %s", c->name, message);
    compare("logp", FLP_CASE_LOGP, &on_gpu[index], &data, reference.rounding, rows);
    compare("lse", FLP_CASE_LSE, &on_gpu[index], &data, reference.rounding, rows);
    compare("entropy", FLP_CASE_ENTROPY, &on_gpu[index], &data, reference.entropy_rounding, rows);
    if (c->problem.argmax)
        assert_memory_equal(values_of(&on_gpu[index], FLP_CASE_ARGMAX), values_of(&data, FLP_CASE_ARGMAX), (size_t)rows * sizeof(int32_t));
    flp_reference_free(&reference);
    flp_case_free_data(&data);
}

/* The norm of the difference over the norm of the machine's values, over a gradient in memory. Gaps are left out, because both sides have NaN there. */
static double relative_difference(flp_dtype dtype, const flp_case_buffer *gpu, const flp_case_buffer *machine)
{
    const int64_t bytes = flp_dtype_bytes(dtype), count = (int64_t)gpu->data_bytes / bytes;
    double size = 0, difference = 0;

    for (int64_t i = 0; i < count; i++) {
        const double a = flp_reference_decode(dtype, gpu->base + gpu->offset, i), b = flp_reference_decode(dtype, machine->base + machine->offset, i);
        if (isnan(a) && isnan(b))
            continue;
        size += b * b;
        difference += (a - b) * (a - b);
    }
    return size > 0 ? sqrt(difference / size) : difference;
}

/* Both sides round the derivatives by the logits, and the gradients, in the same way. They differ in sums in fp32, and in the few roundings that these change.
 * So the difference is far below that of one rounding of everything, which is u / sqrt(3) in norm. */
static void both_compute_the_same_gradients(void **state)
{
    const int index = (int)((const flp_gradient_case *)*state - gradients);
    const flp_linear_logp_backward_problem *p = &gradients[index].problem;
    const flp_dtype dtypes[] = { p->grad_hidden, p->grad_weight, p->grad_bias };
    flp_gradient_case c = gradients[index];
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    char message[8192] = "";

    alarm(flp_device_test.seconds);
    c.problem.with_forward = 0;
    assert_true(flp_gradient_case_make_data(&c, &data, &reference));
    flp_host_suite_begin((uint64_t)index);
    if (!flp_host_linear_logp_backward_run_data(host, &c, &data, &reference, message, sizeof(message)))
        fail_msg("%s, on the host machine: %s", c.name, message);
    for (int i = 0; i < 3; i++) {
        const flp_gradient_role role = (flp_gradient_role)(FLP_GRADIENT_HIDDEN + i);
        const double unit = p->forward.dtype == FLP_BF16 ? 0x1p-8 : p->forward.dtype == FLP_F16 ? 0x1p-11 : 0x1p-18;
        double difference;
        if (dtypes[i] == FLP_NONE)
            continue;
        difference = relative_difference(dtypes[i], &gradients_on_gpu[index].own[role], &data.own[role]);
        print_message("# %s, gradient %d: %.3g of one rounding\n", c.name, i, difference / (unit / sqrt(3)));
        if (!(difference <= unit / sqrt(3) / 2))
            fail_msg("%s, gradient %d: the GPU and the host machine differ by %.3g in norm", c.name, i, difference);
    }
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[2 * MOST_CASES];
    int code;

    collect_cases();
    collect_gradients();
    code = flp_device_test_start(argc, argv);
    if (code != 0)
        return code;
    for (int i = 0; i < case_count; i++)
        tests[i] = (struct CMUnitTest){ cases[i].name, both_compute_the_same, NULL, NULL, &cases[i] };
    for (int i = 0; i < gradient_count; i++)
        tests[case_count + i] = (struct CMUnitTest){ gradients[i].name, both_compute_the_same_gradients, NULL, NULL, &gradients[i] };
    return _cmocka_run_group_tests("the GPU and the host machine", tests, (size_t)(case_count + gradient_count), set_up, tear_down);
}
