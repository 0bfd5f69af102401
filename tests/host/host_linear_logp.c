/* linear_logp's family on the host device: the cases of tests/cases.h, and the edges of tiles. */
#include "host/host_linear_logp.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/edge_cases.h"
#include "host/host_suite.h"

void flp_host_linear_logp_complete(flp_case *c)
{
    flp_linear_logp_problem *p = &c->problem;

    c->ignore_index = -100;
    if (p->target_dtype == FLP_NONE)
        p->target_dtype = FLP_I64;
    if (p->hidden_stride == 0)
        p->hidden_stride = p->hidden;
    if (p->weight_stride == 0)
        p->weight_stride = p->weight_layout == FLP_HIDDEN_VOCAB ? p->vocab : p->hidden;
}

static void list_buffers(const flp_case_data *data, flp_host_memory *memory)
{
    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        flp_host_memory_add(memory, data->buffer[role].base, data->buffer[role].offset, data->buffer[role].data_bytes);
}

/* Reading a plan's counts resets them and switches to the other one of two buffers: so a second execution must give the same counts. */
static int counts_again(flp_plan *plan, const flp_linear_logp_args *args, const flp_reference *reference, char *message, size_t bytes)
{
    return reference->bad_count == 0 || (flp_host_suite_succeeded(flp_linear_logp_execute(plan, args), message, bytes) &&
                                         flp_host_suite_check_target_errors(plan, reference->bad_count, reference->bad_first, message, bytes));
}

static int execute(flp_context *context, const flp_case *c, const flp_case_data *data, const flp_reference *reference, char *message, size_t bytes)
{
    flp_linear_logp_args args;
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_plan_create(context, &c->problem, &plan);
    int done;

    flp_case_args(c, data, NULL, &args);
    if (status == FLP_OK)
        status = flp_linear_logp_execute(plan, &args);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_case_check(c, data, reference, message, bytes) &&
           flp_host_suite_check_target_errors(plan, reference->bad_count, reference->bad_first, message, bytes) &&
           counts_again(plan, &args, reference, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

int flp_host_linear_logp_run_data(flp_context *context, const flp_case *c, flp_case_data *data, const flp_reference *reference, char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    int done;

    list_buffers(data, &memory);
    done = execute(context, c, data, reference, message, bytes);
    flp_host_memory_remove(&memory);
    return done;
}

int flp_host_linear_logp_run(flp_context *context, const flp_case *c, char *message, size_t bytes)
{
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args args;
    int done;

    if (!flp_case_make_data(c, &data))
        abort();
    flp_case_args(c, &data, NULL, &args);
    if (!flp_reference_compute(&c->problem, &args, &reference))
        abort();
    done = flp_host_linear_logp_run_data(context, c, &data, &reference, message, bytes);
    flp_reference_free(&reference);
    flp_case_free_data(&data);
    return done;
}

/* Not a long D: the host machine's tensor cores truncate each sum, and lose twice as much as was measured on real ones (gen/kernels/tile_config.lua). */
static int is_small(const flp_case *c)
{
    const flp_linear_logp_problem *p = &c->problem;

    return (double)p->rows * (double)p->hidden * (double)p->vocab < 5e7 && p->hidden <= 1024;
}

static flp_case *cases;
static int case_count;

static int count(void)
{
    const int shared = flp_case_count(), all = shared + flp_edge_case_quick_count();

    if (cases)
        return case_count;
    cases = calloc((size_t)all, sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < all; i++) {
        if (i < shared)
            flp_case_get(i, &cases[case_count]);
        else
            flp_edge_case_quick_get(i - shared, &cases[case_count]);
        if (is_small(&cases[case_count]))
            case_count++;
        else
            flp_host_suite_leave_out(cases[case_count].name);
    }
    return case_count;
}

static const char *name(int index)
{
    return cases[index].name;
}

static void compile(flp_context *context, int index)
{
    flp_plan *plan;

    if (flp_linear_logp_plan_create(context, &cases[index].problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    return flp_host_linear_logp_run(context, &cases[index], message, bytes);
}

const flp_host_family flp_host_linear_logp = { count, name, compile, run };
