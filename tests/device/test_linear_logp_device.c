/* Every case of the CPU tests of linear_logp, and the edge cases of its kernels, on the GPU: on the chosen path, then on the portable one. */
#include <stdlib.h>

#include "device/device_case.h"
#include "device/device_test.h"
#include "device/edge_cases.h"
#include "device/warm_up.h"
#include "base/dtype.h"

static const flp_backend backends[] = { FLP_BACKEND_AUTO, FLP_BACKEND_PORTABLE };
enum { BACKENDS = 2 };

static flp_case *cases;
static int case_count;

static void collect_cases(void)
{
    int shared = flp_device_test.quick ? 0 : flp_case_count();
    int edges = flp_device_test.quick ? flp_edge_case_quick_count() : flp_edge_case_count();

    case_count = shared + edges;
    cases = calloc((size_t)case_count, sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < shared; i++)
        flp_case_get(i, &cases[i]);
    for (int i = 0; i < edges; i++)
        (flp_device_test.quick ? flp_edge_case_quick_get : flp_edge_case_get)(i, &cases[shared + i]);
}

/* TMA reads rows at multiples of 16 bytes only; WGMMA reads fp32, as tf32, along D only, and has no exact fp32 product. */
static const char *expected_path(const flp_case *c)
{
    const flp_linear_logp_problem *p = &c->problem;
    const int bytes = flp_dtype_bytes(p->dtype);
    const int multiplies = p->dtype != FLP_F32 || (p->precision == FLP_PRECISION_TENSOR && p->weight_layout == FLP_VOCAB_HIDDEN);
    const int loads = (p->hidden_stride * bytes) % 16 == 0 && (p->weight_stride * bytes) % 16 == 0 && c->misalignment % 16 == 0;

    if (flp_device_test.gpu.facts.compute_capability == 90 && multiplies && loads)
        return "sm_90a";
    return "portable";
}

static void make_plan(int index)
{
    flp_linear_logp_problem problem = cases[index / BACKENDS].problem;
    flp_plan *plan;

    problem.backend = backends[index % BACKENDS];
    if (flp_linear_logp_plan_create(flp_device_test.context, &problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

/* ---- one case */

static void fetch_and_check(const flp_case *c, const char *call, flp_case_data *data, const flp_device_case *on_device, const flp_reference *reference)
{
    char message[512] = "";
    int intact;

    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
    assert_succeeds(flp_device_case_download(&flp_device_test.gpu, data, on_device, &intact, message, sizeof(message)));
    if (!intact || !flp_case_check(c, data, reference, message, sizeof(message)))
        fail_msg("%s, %s: %s", c->name, call, message);
}

static void check_target_errors(flp_plan *plan, const flp_reference *reference)
{
    int64_t count, first;

    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(reference->bad_count, count);
    assert_int_equal(reference->bad_first, first);
    assert_succeeds(flp_plan_target_errors(plan, &count, NULL));
    assert_int_equal(0, count);
}

static void check_plan(const flp_case *c, flp_plan *plan, const char *path, flp_case_data *data, const flp_reference *reference)
{
    flp_gpu *gpu = &flp_device_test.gpu;
    const int64_t bytes = flp_plan_workspace_bytes(plan, c->problem.rows);
    flp_device_case on_device;
    flp_linear_logp_args args;

    flp_case_poison_outputs(data);
    assert_succeeds(flp_device_case_upload(gpu, data, flp_device_test.quick, &on_device));
    assert_succeeds(flp_device_case_add_workspace(gpu, bytes, flp_device_test.quick, &on_device));
    flp_device_case_args(c, data, &on_device, &args);
    flp_device_case_use_workspace(&on_device, &args);
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    fetch_and_check(c, path, data, &on_device, reference);
    check_target_errors(plan, reference);
}

/* The same by a call without a plan, which uses dispatch and the context's scratch. */
static void check_dispatch(const flp_case *c, flp_backend backend, const char *path, flp_case_data *data, const flp_reference *reference)
{
    flp_linear_logp_problem problem = c->problem;
    flp_device_case on_device;
    flp_linear_logp_args args;

    problem.backend = backend;
    flp_case_poison_outputs(data);
    assert_succeeds(flp_device_case_upload(&flp_device_test.gpu, data, flp_device_test.quick, &on_device));
    flp_device_case_args(c, data, &on_device, &args);
    assert_succeeds(flp_linear_logp(flp_device_test.context, &problem, &args));
    fetch_and_check(c, path, data, &on_device, reference);
}

static void a_case_is_right(void **state)
{
    const flp_case *c = *state;
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args on_host;

    assert_true(flp_case_make_data(c, &data));
    flp_case_args(c, &data, NULL, &on_host);
    assert_true(flp_reference_compute(&c->problem, &on_host, &reference));
    for (int i = 0; i < BACKENDS; i++) {
        const char *wanted = backends[i] == FLP_BACKEND_AUTO ? expected_path(c) : "portable";
        flp_linear_logp_problem problem = c->problem;
        flp_plan *plan;
        problem.backend = backends[i];
        if (i > 0 && strcmp(wanted, expected_path(c)) == 0)
            break;
        assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, &problem, &plan));
        assert_string_equal(wanted, flp_backend_name(flp_plan_backend(plan)));
        check_plan(c, plan, wanted, &data, &reference);
        flp_plan_destroy(plan);
        flp_gpu_free_all(&flp_device_test.gpu);
        check_dispatch(c, backends[i], wanted, &data, &reference);
        flp_gpu_free_all(&flp_device_test.gpu);
    }
    flp_reference_free(&reference);
    flp_case_free_data(&data);
}

static struct CMUnitTest test_at(int index)
{
    return flp_device_test_case(cases[index].name, a_case_is_right, &cases[index]);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    collect_cases();
    flp_device_warm_up(case_count * BACKENDS, make_plan);
    code = flp_device_test_run_cases("linear_logp on the device", case_count, test_at);
    flp_device_test_finish();
    free(cases);
    return code;
}
