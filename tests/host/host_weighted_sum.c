/* weighted_sum and its backward on the host device: the cases of tests/weighted_sum_cases.h. */
#include <stdio.h>
#include <stdlib.h>

#include "host/host_suite.h"
#include "weighted_sum_cases.h"
#include "weighted_sum_depth.h"

typedef struct {
    char name[160];
    flp_weighted_case c;
    int backward;
} weighted_run;

static weighted_run *runs;
static int run_count;

/* Of the many sizes around vectors and teams, only some of those with many rows are taken. */
static int is_small(int index, const flp_weighted_case *c)
{
    const flp_weighted_sum_problem *p = &c->problem.forward;

    return (double)p->rows * (double)p->columns < 1.5e5 && (index < 2 * FLP_WEIGHTED_QUICK || p->rows < 100 || index % 3 == 0);
}

static int count(void)
{
    if (runs)
        return run_count;
    runs = calloc((size_t)flp_weighted_case_count() * 2, sizeof(*runs));
    if (!runs)
        abort();
    for (int i = 0; i < flp_weighted_case_count(); i++) {
        flp_weighted_case c;
        flp_weighted_case_get(i, &c);
        if (!is_small(i, &c))
            flp_host_suite_leave_out(c.name);
        for (int backward = 0; backward < 2 && is_small(i, &c); backward++) {
            weighted_run *one = &runs[run_count++];
            *one = (weighted_run){ .c = c, .backward = backward };
            snprintf(one->name, sizeof(one->name), "weighted sum, %s: %s", backward ? "gradients" : "forward", c.name);
        }
    }
    return run_count;
}

static const char *name(int index)
{
    return runs[index].name;
}

static flp_status create_plan(flp_context *context, const weighted_run *one, flp_plan **plan)
{
    return one->backward ? flp_weighted_sum_backward_plan_create(context, &one->c.problem, plan)
                         : flp_weighted_sum_plan_create(context, &one->c.problem.forward, plan);
}

static void compile(flp_context *context, int index)
{
    flp_plan *plan;

    if (create_plan(context, &runs[index], &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static flp_status execute(flp_plan *plan, const weighted_run *one, const flp_weighted_data *data)
{
    flp_weighted_sum_args forward;
    flp_weighted_sum_backward_args backward;

    if (one->backward) {
        flp_weighted_case_backward(&one->c, data, NULL, &backward);
        return flp_weighted_sum_backward_execute(plan, &backward);
    }
    flp_weighted_case_forward(&one->c, data, NULL, &forward);
    return flp_weighted_sum_execute(plan, &forward);
}

static int check(const flp_plan *plan, const weighted_run *one, const flp_weighted_data *data, char *message, size_t bytes)
{
    if (one->backward)
        return flp_weighted_case_check_gradients(&one->c, data, flp_weighted_gradient_depth(plan, one->c.problem.forward.rows), message, bytes);
    return flp_weighted_case_check_sum(&one->c, data, flp_weighted_sum_depth(plan), message, bytes);
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    const weighted_run *one = &runs[index];
    flp_host_memory memory = { 0 };
    flp_weighted_data data;
    flp_plan *plan = NULL;
    flp_status status;
    int done;

    if (!flp_weighted_case_make(&one->c, &data))
        abort();
    for (int role = 0; role < FLP_WEIGHTED_ROLES; role++)
        flp_host_memory_add(&memory, data.buffer[role].base, data.buffer[role].offset, data.buffer[role].data_bytes);
    status = create_plan(context, one, &plan);
    if (status == FLP_OK)
        status = execute(plan, one, &data);
    done = flp_host_suite_succeeded(status, message, bytes) && check(plan, one, &data, message, bytes);
    flp_plan_destroy(plan);
    flp_host_memory_remove(&memory);
    flp_weighted_case_free(&data);
    return done;
}

const flp_host_family flp_host_weighted_sum = { count, name, compile, run };
