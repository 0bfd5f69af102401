/* Cases of linear_cross_entropy with a memory budget on the host device. */
#include "host/budgeted_loss.h"

#include <stdio.h>
#include <string.h>

#include "host/host_linear_cross_entropy.h"
#include "host/host_suite.h"
#include "runtime/assertions.h"

flp_cross_entropy_case flp_budgeted_loss_complete(const flp_cross_entropy_case *given)
{
    flp_cross_entropy_case c = *given;

    flp_gradient_case_complete(0, &c.gradient);
    c.problem.backward = c.gradient.problem;
    return c;
}

static flp_status make_plan(flp_context *context, const flp_cross_entropy_case *c, int64_t rows, int64_t budget, flp_plan **plan)
{
    flp_linear_cross_entropy_problem problem = c->problem;

    *plan = NULL;
    problem.backward.forward.rows = rows;
    problem.backward.memory_budget = budget;
    assert_succeeds(flp_token_loss_define(context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss));
    return flp_linear_cross_entropy_plan_create(context, &problem, plan);
}

int64_t flp_budgeted_loss_least(flp_context *context, const flp_cross_entropy_case *c, int64_t rows)
{
    flp_plan *plan;
    long long least = 0;
    const char *at;

    assert_int_equal(FLP_BAD_ARGUMENT, make_plan(context, c, rows, 1, &plan));
    at = strstr(flp_error_message(), "at least ");
    assert_non_null(at);
    assert_int_equal(1, sscanf(at, "at least %lld", &least));
    assert_int_equal(FLP_BAD_ARGUMENT, make_plan(context, c, rows, least - 1, &plan));
    return least;
}

void flp_budgeted_loss_run(flp_context *context, const flp_cross_entropy_case *given, int64_t plan_rows, int64_t budget, uint64_t seed)
{
    flp_cross_entropy_case c = *given;
    char message[8192] = "";
    flp_plan *plan;

    if (budget > 0) {
        assert_succeeds(make_plan(context, &c, plan_rows, budget, &plan));
        assert_true(flp_plan_workspace_bytes(plan, plan_rows) <= budget);
        flp_plan_destroy(plan);
    }
    c.problem.backward.memory_budget = budget;
    flp_host_suite_begin(seed);
    if (!flp_host_linear_cross_entropy_run(context, &c, plan_rows, message, sizeof(message)))
        fail_msg("%s, budget %lld, plan of %lld rows, seed %llu: %s", c.gradient.name, (long long)budget, (long long)plan_rows, (unsigned long long)seed,
                 message);
}

flp_cross_entropy_case flp_budgeted_loss_of_rows(const flp_cross_entropy_case *given, int64_t rows)
{
    flp_cross_entropy_case c = *given;

    c.problem.backward.forward.rows = c.gradient.problem.forward.rows = c.gradient.forward.problem.rows = rows;
    return c;
}
