/* scale on the host device: the cases of tests/scale_cases.h. */
#include <stdlib.h>
#include <string.h>

#include "host/host_suite.h"
#include "scale_cases.h"

static flp_scale_case *cases;
static char (*names)[160];

static int count(void)
{
    if (cases)
        return flp_scale_case_count();
    cases = calloc((size_t)flp_scale_case_count(), sizeof(*cases));
    names = calloc((size_t)flp_scale_case_count(), sizeof(*names));
    if (!cases || !names)
        abort();
    for (int i = 0; i < flp_scale_case_count(); i++) {
        flp_scale_case_get(i, &cases[i]);
        strcat(strcpy(names[i], "scale: "), cases[i].name);
    }
    return flp_scale_case_count();
}

static const char *name(int index)
{
    return names[index];
}

static void compile(flp_context *context, int index)
{
    flp_plan *plan;

    if (flp_scale_plan_create(context, &cases[index].problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

/* With a factor of 1, x is no device memory, so that a kernel that reads or writes it is found out. */
static int run(flp_context *context, int index, char *message, size_t bytes)
{
    const flp_scale_case *c = &cases[index];
    flp_host_memory memory = { 0 };
    flp_scale_data data;
    flp_plan *plan = NULL;
    flp_status status;
    int done;

    if (!flp_scale_case_make(c, &data))
        abort();
    flp_host_memory_add(&memory, (unsigned char *)&data.factor, 0, sizeof(data.factor));
    if (c->factor != 1)
        flp_host_memory_add(&memory, data.base, data.offset, data.x_bytes);
    status = flp_scale_plan_create(context, &c->problem, &plan);
    if (status == FLP_OK)
        status = flp_scale_execute(plan, &(flp_scale_args){ .rows = c->problem.rows, .x = data.base + data.offset, .factor = &data.factor });
    done = flp_host_suite_succeeded(status, message, bytes) && flp_scale_case_check(c, &data, message, bytes);
    flp_plan_destroy(plan);
    flp_host_memory_remove(&memory);
    flp_scale_case_free(&data);
    return done;
}

const flp_host_family flp_host_scale = { count, name, compile, run };
