/* Every case of the CPU tests of linear_cross_entropy on the GPU: on the chosen path, then on the portable one; with a plan and without. */
#include <stdlib.h>
#include <string.h>

#include "device/loss_on_device.h"
#include "device/warm_up.h"

static const flp_backend backends[] = { FLP_BACKEND_AUTO, FLP_BACKEND_PORTABLE };
enum { BACKENDS = 2, QUICK_CASES = 12 };

static flp_cross_entropy_case *cases;
static int case_count;

static const char in_chunks[] = "saved exponentials, rows in chunks";

static int begins(const flp_cross_entropy_case *c, const char *with)
{
    return strncmp(c->gradient.name, with, strlen(with)) == 0;
}

static void collect_cases(void)
{
    cases = calloc((size_t)flp_cross_entropy_case_count(), sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < flp_cross_entropy_case_count(); i++) {
        flp_cross_entropy_case_get(i, &cases[case_count]);
        case_count +=
            !flp_device_test.quick || i < QUICK_CASES || begins(&cases[case_count], "saved exponentials") || begins(&cases[case_count], "forward only");
    }
}

static void make_plan(int index)
{
    flp_linear_cross_entropy_problem problem = cases[index / BACKENDS].problem;
    flp_plan *plan;

    problem.backward.forward.backend = backends[index % BACKENDS];
    if (flp_linear_cross_entropy_plan_create(flp_device_test.context, &problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

/* ---- one case */

static void fetch_and_check(const flp_cross_entropy_case *c, const char *path, const flp_loss_on_device *copy, flp_cross_entropy_case_data *data)
{
    char message[512] = "";

    flp_loss_on_device_fetch(c, path, copy, data);
    if (!flp_cross_entropy_case_check(c, data, flp_loss_on_device_roundoff(c), message, sizeof(message)))
        fail_msg("%s, %s: %s", c->gradient.name, path, message);
}

/* Executes in a workspace of exactly the bytes that the plan says, and checks the results. */
static void check_plan(const flp_cross_entropy_case *c, flp_plan *plan, const char *path, flp_cross_entropy_case_data *data)
{
    const int64_t bytes = flp_plan_workspace_bytes(plan, c->problem.backward.forward.rows);
    flp_loss_on_device copy = { 0 };
    flp_cross_entropy_case_call call;

    flp_loss_on_device_upload(c, data, &copy, &call);
    assert_succeeds(flp_device_case_make_workspace(&flp_device_test.gpu, bytes, flp_device_test.quick, &copy.workspace));
    call.args.workspace = flp_gpu_pointer(copy.workspace.base);
    call.args.workspace_bytes = (size_t)bytes;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &call.args));
    fetch_and_check(c, path, &copy, data);
}

/* The same by a call without a plan, which uses dispatch and the context's scratch. */
static void check_dispatch(const flp_cross_entropy_case *c, flp_backend backend, const char *path, flp_cross_entropy_case_data *data)
{
    flp_linear_cross_entropy_problem problem = c->problem;
    flp_loss_on_device copy = { 0 };
    flp_cross_entropy_case_call call;

    problem.backward.forward.backend = backend;
    flp_loss_on_device_upload(c, data, &copy, &call);
    assert_succeeds(flp_linear_cross_entropy(flp_device_test.context, &problem, &call.args));
    fetch_and_check(c, path, &copy, data);
}

static void a_case_is_right(void **state)
{
    const flp_cross_entropy_case *c = *state;
    flp_cross_entropy_case_data data;

    assert_true(flp_cross_entropy_case_make_data(c, &data));
    for (int i = 0; i < BACKENDS; i++) {
        flp_linear_cross_entropy_problem problem = c->problem;
        const char *path = backends[i] == FLP_BACKEND_AUTO ? "auto" : "portable";
        flp_plan *plan;
        problem.backward.forward.backend = backends[i];
        assert_succeeds(flp_linear_cross_entropy_plan_create(flp_device_test.context, &problem, &plan));
        check_plan(c, plan, path, &data);
        flp_plan_destroy(plan);
        flp_gpu_free_all(&flp_device_test.gpu);
        check_dispatch(c, backends[i], path, &data);
        flp_gpu_free_all(&flp_device_test.gpu);
    }
    flp_cross_entropy_case_free_data(&data);
}

/* ---- results that chunks of rows do not change */

enum { ALL_ROWS_BUDGET = 1 << 26, ROW_OUTPUTS = 4 };

typedef struct {
    unsigned char *bytes[ROW_OUTPUTS];
    size_t count[ROW_OUTPUTS];
} row_outputs;

/* grad_hidden, logp, lse and entropy from a plan with this memory_budget. */
static row_outputs run_with(const flp_cross_entropy_case *c, flp_backend backend, int64_t memory_budget)
{
    flp_linear_cross_entropy_problem problem = c->problem;
    flp_cross_entropy_case_data data;
    const flp_case_buffer *from[ROW_OUTPUTS] = { &data.gradient.own[FLP_GRADIENT_HIDDEN], &data.own[FLP_CROSS_ENTROPY_LOGP], &data.own[FLP_CROSS_ENTROPY_LSE],
                                                 &data.own[FLP_CROSS_ENTROPY_ENTROPY] };
    row_outputs outputs = { .count = { 0 } };
    flp_plan *plan;

    problem.backward.forward.backend = backend;
    problem.backward.memory_budget = memory_budget;
    assert_true(flp_cross_entropy_case_make_data(c, &data));
    assert_succeeds(flp_linear_cross_entropy_plan_create(flp_device_test.context, &problem, &plan));
    assert_int_equal(memory_budget < ALL_ROWS_BUDGET, strstr(flp_plan_describe(plan), " at a time\n") != NULL);
    check_plan(c, plan, "chunks of rows", &data);
    flp_plan_destroy(plan);
    flp_gpu_free_all(&flp_device_test.gpu);
    for (int i = 0; i < ROW_OUTPUTS; i++) {
        if (!from[i]->base)
            continue;
        outputs.count[i] = from[i]->bytes;
        outputs.bytes[i] = malloc(from[i]->bytes);
        assert_non_null(outputs.bytes[i]);
        memcpy(outputs.bytes[i], from[i]->base, from[i]->bytes);
    }
    flp_cross_entropy_case_free_data(&data);
    return outputs;
}

static void rows_in_chunks_have_the_bits_of_all_rows_at_once(void **state)
{
    int compared = 0;

    (void)state;
    for (int i = 0; i < case_count * BACKENDS; i++) {
        const flp_cross_entropy_case *c = &cases[i / BACKENDS];
        row_outputs chunks, all;
        if (!begins(c, in_chunks))
            continue;
        chunks = run_with(c, backends[i % BACKENDS], c->problem.backward.memory_budget);
        all = run_with(c, backends[i % BACKENDS], ALL_ROWS_BUDGET);
        for (int k = 0; k < ROW_OUTPUTS; k++) {
            if (chunks.count[k] > 0)
                assert_memory_equal(chunks.bytes[k], all.bytes[k], chunks.count[k]);
            free(chunks.bytes[k]);
            free(all.bytes[k]);
        }
        compared++;
    }
    assert_in_range(compared, 2, case_count * BACKENDS);
}

static struct CMUnitTest test_at(int index)
{
    if (index == case_count)
        return flp_device_test_case("rows in chunks have the bits of all rows at once", rows_in_chunks_have_the_bits_of_all_rows_at_once, NULL);
    return flp_device_test_case(cases[index].gradient.name, a_case_is_right, &cases[index]);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    collect_cases();
    if (flp_token_loss_define(flp_device_test.context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK)
        return 1;
    flp_device_warm_up(case_count * BACKENDS, make_plan);
    code = flp_device_test_run_cases("linear_cross_entropy on the device", case_count + 1, test_at);
    flp_device_test_finish();
    free(cases);
    return code;
}
