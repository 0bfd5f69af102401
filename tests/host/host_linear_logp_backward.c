/* linear_logp's backward on the host device: the cases of tests/gradient_cases.h. */
#include "host/host_linear_logp_backward.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/host_suite.h"

static flp_gradient_case *cases;
static char (*names)[128];
static int case_count;

static int is_small(const flp_gradient_case *c)
{
    const flp_linear_logp_problem *p = &c->problem.forward;

    return (double)p->rows * (double)p->hidden * (double)p->vocab < 5e6;
}

static int count(void)
{
    if (cases)
        return case_count;
    cases = calloc((size_t)flp_gradient_case_count(), sizeof(*cases));
    names = calloc((size_t)flp_gradient_case_count(), sizeof(*names));
    if (!cases || !names)
        abort();
    for (int i = 0; i < flp_gradient_case_count(); i++) {
        flp_gradient_case_get(i, &cases[case_count]);
        snprintf(names[case_count], sizeof(names[0]), "gradients: %s", cases[case_count].name);
        case_count += is_small(&cases[case_count]);
    }
    return case_count;
}

static const char *name(int index)
{
    return names[index];
}

static void compile(flp_context *context, int index)
{
    flp_plan *plan;

    if (flp_linear_logp_backward_plan_create(context, &cases[index].problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static void list_buffers(const flp_gradient_case_data *data, flp_host_memory *memory)
{
    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        flp_host_memory_add(memory, data->forward.buffer[role].base, data->forward.buffer[role].offset, data->forward.buffer[role].data_bytes);
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++)
        flp_host_memory_add(memory, data->own[role].base, data->own[role].offset, data->own[role].data_bytes);
}

/* The derivatives by the logits are kept in the dtype of the inputs. */
static double dlogit_roundoff(flp_dtype dtype)
{
    return dtype == FLP_BF16 ? 0x1p-8 : dtype == FLP_F16 ? 0x1p-11 : 0;
}

/* With its forward, in memory that stays between the two. */
static flp_status execute_both(const flp_gradient_case *c, flp_plan *plan, const flp_linear_logp_backward_args *given)
{
    const size_t output_bytes = (size_t)(3 * given->rows + 1) * sizeof(float), alignment = 256;
    flp_linear_logp_backward_args args = *given;
    flp_linear_logp_args forward;
    flp_host_memory memory = { 0 };
    float *outputs = aligned_alloc(alignment, (output_bytes + alignment) / alignment * alignment);
    flp_status status;

    args.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, args.rows);
    args.workspace = aligned_alloc(alignment, (args.workspace_bytes + alignment) / alignment * alignment);
    if (!outputs || !args.workspace)
        abort();
    flp_host_memory_add(&memory, (unsigned char *)outputs, 0, output_bytes);
    flp_host_memory_add(&memory, args.workspace, 0, args.workspace_bytes);
    forward = flp_gradient_case_forward_args(c, &args, outputs);
    status = flp_linear_logp_backward_execute_forward(plan, &forward);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_execute(plan, &args);
    flp_host_memory_remove(&memory);
    free(outputs);
    free(args.workspace);
    return status;
}

static int execute(flp_context *context, const flp_gradient_case *c, const flp_linear_logp_backward_args *args, char *message, size_t bytes)
{
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_backward_plan_create(context, &c->problem, &plan);
    int done;

    if (status == FLP_OK)
        status = c->problem.with_forward ? execute_both(c, plan, args) : flp_linear_logp_backward_execute(plan, args);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_gradient_case_check_filter(c, plan, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

int flp_host_linear_logp_backward_run(flp_context *context, const flp_gradient_case *c, char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_linear_logp_backward_args args;
    int done;

    if (!flp_gradient_case_make_data(c, &data, &reference))
        abort();
    flp_gradient_case_args(c, &data, NULL, NULL, &args);
    list_buffers(&data, &memory);
    done = execute(context, c, &args, message, bytes) &&
           flp_gradient_case_check(c, &data, &reference, dlogit_roundoff(c->problem.forward.dtype), message, bytes);
    flp_host_memory_remove(&memory);
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
    return done;
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    return flp_host_linear_logp_backward_run(context, &cases[index], message, bytes);
}

const flp_host_family flp_host_linear_logp_backward = { count, name, compile, run };
