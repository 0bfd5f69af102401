/* Every case of the CPU tests of the backward, and the edge cases of its kernels, on the GPU: on the chosen path, then on the portable one. */
#include <stdlib.h>

#include "device/gradient_edge_cases.h"
#include "device/gradient_on_device.h"
#include "device/warm_up.h"

static const flp_backend backends[] = { FLP_BACKEND_AUTO, FLP_BACKEND_PORTABLE };
enum { BACKENDS = 2 };

static flp_gradient_case *cases;
static int case_count;

static void collect_cases(void)
{
    const int quick = flp_device_test.quick, edges = quick ? flp_gradient_edge_case_quick_count() : flp_gradient_edge_case_count();

    cases = calloc((size_t)(flp_gradient_case_count() + edges), sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < flp_gradient_case_count(); i++) {
        flp_gradient_case_get(i, &cases[case_count]);
        case_count += !quick || cases[case_count].problem.with_forward;
    }
    for (int i = 0; i < edges; i++)
        (quick ? flp_gradient_edge_case_quick_get : flp_gradient_edge_case_get)(i, &cases[case_count++]);
}

static void make_plan(int index)
{
    flp_linear_logp_backward_problem problem = cases[index / BACKENDS].problem;
    flp_plan *plan;

    problem.forward.backend = backends[index % BACKENDS];
    if (flp_linear_logp_backward_plan_create(flp_device_test.context, &problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

/* TMA reads and writes rows at multiples of 16 bytes only; and the products read fp32 across D, which WGMMA cannot. */
static int takes_sm_90a(const flp_gradient_case *c)
{
    const flp_linear_logp_backward_problem *p = &c->problem;
    const int weight_gradient_bytes = p->grad_weight == FLP_F32 ? 4 : 2;

    return flp_device_test.gpu.facts.compute_capability == 90 && p->forward.dtype != FLP_F32 && p->forward.weight_stride * 2 % 16 == 0 &&
           (p->grad_weight == FLP_NONE || p->grad_weight_stride * weight_gradient_bytes % 16 == 0) && c->forward.misalignment % 16 == 0;
}

/* ---- one case */

static void fetch_and_check(const flp_gradient_case *c, const char *call, const flp_gradient_on_device *copy, flp_gradient_case_data *data,
                            const flp_gradient_reference *reference)
{
    char message[512] = "";

    flp_gradient_on_device_fetch(c, call, copy, data);
    if (!flp_gradient_case_check(c, data, reference, flp_gradient_gpu_roundoff(c->problem.forward.dtype), message, sizeof(message)))
        fail_msg("%s, %s: %s", c->name, call, message);
}

static void execute_forward(const flp_gradient_case *c, flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    flp_linear_logp_args forward;
    CUdeviceptr outputs;

    assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, (size_t)(3 * args->rows + 1) * sizeof(float), &outputs));
    forward = flp_gradient_case_forward_args(c, args, flp_gpu_pointer(outputs));
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
}

/* Executes in a workspace of exactly the bytes that the plan says, and checks the results. */
static void check_plan(const flp_gradient_case *c, flp_plan *plan, const char *path, flp_gradient_case_data *data, const flp_gradient_reference *reference)
{
    const int64_t bytes = flp_plan_workspace_bytes(plan, c->problem.forward.rows);
    flp_gradient_on_device copy = { 0 };
    flp_linear_logp_backward_args args;
    char message[256];

    flp_gradient_case_restore_outputs(data);
    flp_gradient_on_device_upload(c, data, &copy, &args);
    assert_succeeds(flp_device_case_make_workspace(&flp_device_test.gpu, bytes, flp_device_test.quick, &copy.workspace));
    args.workspace = flp_gpu_pointer(copy.workspace.base);
    args.workspace_bytes = (size_t)bytes;
    if (c->problem.with_forward)
        execute_forward(c, plan, &args);
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    fetch_and_check(c, path, &copy, data, reference);
    if (!flp_gradient_case_check_filter(c, plan, message, sizeof(message)))
        fail_msg("%s, %s: %s", c->name, path, message);
}

/* The same by a call without a plan, which uses dispatch and the context's scratch. */
static void check_dispatch(const flp_gradient_case *c, flp_backend backend, const char *path, flp_gradient_case_data *data,
                           const flp_gradient_reference *reference)
{
    flp_linear_logp_backward_problem problem = c->problem;
    flp_gradient_on_device copy = { 0 };
    flp_linear_logp_backward_args args;

    problem.forward.backend = backend;
    problem.memory_budget = 0;
    problem.with_forward = 0;
    flp_gradient_case_restore_outputs(data);
    flp_gradient_on_device_upload(c, data, &copy, &args);
    assert_succeeds(flp_linear_logp_backward(flp_device_test.context, &problem, &args));
    fetch_and_check(c, path, &copy, data, reference);
}

static void a_case_is_right(void **state)
{
    const flp_gradient_case *c = *state;
    const char *const paths[] = { takes_sm_90a(c) ? "sm_90a" : "portable", "portable" };
    flp_gradient_case_data data;
    flp_gradient_reference reference;

    assert_true(flp_gradient_case_make_data(c, &data, &reference));
    for (int i = 0; i < (takes_sm_90a(c) ? BACKENDS : 1); i++) {
        flp_linear_logp_backward_problem problem = c->problem;
        flp_plan *plan;
        problem.forward.backend = backends[i];
        assert_succeeds(flp_linear_logp_backward_plan_create(flp_device_test.context, &problem, &plan));
        assert_string_equal(paths[i], flp_backend_name(flp_plan_backend(plan)));
        check_plan(c, plan, paths[i], &data, &reference);
        flp_plan_destroy(plan);
        flp_gpu_free_all(&flp_device_test.gpu);
        check_dispatch(c, backends[i], paths[i], &data, &reference);
        flp_gpu_free_all(&flp_device_test.gpu);
    }
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
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
    code = flp_device_test_run_cases("linear_logp's backward on the device", case_count, test_at);
    flp_device_test_finish();
    free(cases);
    return code;
}
