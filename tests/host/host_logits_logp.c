/* logits_logp on the host device: the cases of tests/logits_cases.h in each of their forms, forward, backward, fused and in place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_suite.h"
#include "logits_cases.h"

/* More rows than blocks run at the same time, so that a block, or a cluster, takes one row after the other; and a single row, which the blocks of a cluster
 * share. */
static const flp_logits_case more[] = {
    { .name = "many rows of one warp", .problem = { .dtype = FLP_BF16, .rows = 301, .vocab = 100, .argmax = 1 } },
    { .name = "many rows of two warps", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 61, .vocab = 3000, .entropy = 1 } },
    { .name = "many rows of one block",
      .rows = FLP_LOGITS_IGNORED | FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_BF16, .rows = 19, .vocab = 10248, .entropy = 1 } },
    { .name = "many rows of two blocks", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .rows = 11, .vocab = 16384, .entropy = 1 } },
    { .name = "many rows of four blocks", .problem = { .dtype = FLP_BF16, .rows = 9, .vocab = 50257 } },
    /* Indexed rows, so that a row and its gradients begin at different places within a vector. */
    { .name = "many indexed rows of one block, odd",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_IGNORED | FLP_LOGITS_UNEVEN,
      .problem = { .dtype = FLP_BF16, .rows = 9, .vocab = 20483, .entropy = 1 } },
    { .name = "many indexed rows of two blocks, odd",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_INDICES | FLP_LOGITS_BAD_TARGETS,
      .problem = { .dtype = FLP_F16, .rows = 9, .vocab = 36869, .softcap = 30 } },
    { .name = "many scattered rows of two blocks, odd",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED,
      .problem = { .dtype = FLP_F32, .rows = 9, .vocab = 17411 } },
    { .name = "many indexed rows of one block, odd, huge and cold",
      .values = FLP_LOGITS_HUGE,
      .temperature = 1e-9,
      .rows = FLP_LOGITS_INDEXED,
      .problem = { .dtype = FLP_F16, .rows = 9, .vocab = 18433, .entropy = 1 } },
    { .name = "many rows of eight blocks", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F32, .rows = 7, .vocab = 70000 } },
    { .name = "one row", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_BF16, .rows = 1, .vocab = 20488, .argmax = 1, .entropy = 1 } },
    { .name = "one row, more segments than warps", .problem = { .dtype = FLP_F32, .rows = 1, .vocab = 140000, .argmax = 1 } },
    { .name = "one row, ignored", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 1, .vocab = 12001, .entropy = 1 } },
    { .name = "one row, bad target",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_TARGETS | FLP_LOGITS_ROW_TEMPERATURES,
      .problem = { .dtype = FLP_BF16, .rows = 1, .vocab = 12000, .softcap = 30 } },
    { .name = "one row, bad index",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_INDICES,
      .problem = { .dtype = FLP_F32, .rows = 1, .vocab = 9000, .argmax = 1 } },
};

typedef struct {
    char name[128];
    flp_logits_case c;
    flp_logits_form form;
} logits_run;

static logits_run *runs;
static int run_count;

static int is_small(const flp_logits_case *c)
{
    return (double)c->problem.rows * (double)c->problem.vocab < 3e5;
}

static void take(const flp_logits_case *c)
{
    static const char *const forms[FLP_LOGITS_FORMS] = { "forward", "backward", "fused", "in place" };

    for (int form = 0; form < FLP_LOGITS_FORMS; form++) {
        if (!flp_logits_case_has(c, (flp_logits_form)form))
            continue;
        logits_run *one = &runs[run_count++];
        *one = (logits_run){ .c = *c, .form = (flp_logits_form)form };
        snprintf(one->name, sizeof(one->name), "logits, %s: %s", forms[form], c->name);
    }
}

static int count(void)
{
    const int shared = flp_logits_case_count(), own = (int)(sizeof(more) / sizeof(*more));

    if (runs)
        return run_count;
    runs = calloc((size_t)(shared + own) * FLP_LOGITS_FORMS, sizeof(*runs));
    if (!runs)
        abort();
    for (int i = 0; i < shared + own; i++) {
        flp_logits_case c;
        if (i < shared) {
            flp_logits_case_get(i, &c);
            if (!is_small(&c)) {
                flp_host_suite_leave_out(c.name);
                continue;
            }
        } else {
            c = more[i - shared];
            flp_logits_case_complete(i, &c);
        }
        take(&c);
    }
    return run_count;
}

static const char *name(int index)
{
    return runs[index].name;
}

static flp_status create_plan(flp_context *context, const logits_run *one, const flp_logits_logp_backward_problem *backward, flp_plan **plan)
{
    return one->form == FLP_LOGITS_FORWARD ? flp_logits_logp_plan_create(context, &one->c.problem, plan)
                                           : flp_logits_logp_backward_plan_create(context, backward, plan);
}

static void compile(flp_context *context, int index)
{
    const flp_logits_data nothing = { 0 };
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args;
    flp_plan *plan;

    flp_logits_case_backward(&runs[index].c, &nothing, NULL, runs[index].form, &problem, &args);
    if (create_plan(context, &runs[index], &problem, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static int execute(flp_context *context, const logits_run *one, flp_logits_data *data, const flp_logits_wanted *wanted, char *message, size_t bytes)
{
    flp_logits_logp_args args;
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args backward;
    flp_plan *plan = NULL;
    flp_status status;
    int done;

    flp_logits_case_forward(&one->c, data, NULL, &args);
    flp_logits_case_backward(&one->c, data, NULL, one->form, &problem, &backward);
    status = create_plan(context, one, &problem, &plan);
    if (status == FLP_OK)
        status = one->form == FLP_LOGITS_FORWARD ? flp_logits_logp_execute(plan, &args) : flp_logits_logp_backward_execute(plan, &backward);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_logits_case_check(&one->c, data, wanted, one->form, message, bytes) &&
           flp_host_suite_check_target_errors(plan, wanted->bad_count, wanted->bad_first, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    const logits_run *one = &runs[index];
    flp_host_memory memory = { 0 };
    flp_logits_data data;
    flp_logits_wanted wanted;
    int done;

    if (!flp_logits_case_make(&one->c, &data) || !flp_logits_case_compute(&one->c, &data, &wanted))
        abort();
    flp_logits_case_poison(&data);
    if (one->form == FLP_LOGITS_IN_PLACE) {
        const flp_logits_buffer *logits = &data.buffer[FLP_LOGITS_LOGITS], *gradients = &data.buffer[FLP_LOGITS_GRAD];
        memcpy(gradients->base + gradients->offset, logits->base + logits->offset, logits->data_bytes);
    }
    for (int role = 0; role < FLP_LOGITS_ROLES; role++)
        flp_host_memory_add(&memory, data.buffer[role].base, data.buffer[role].offset, data.buffer[role].data_bytes);
    done = execute(context, one, &data, &wanted, message, bytes);
    flp_host_memory_remove(&memory);
    flp_logits_wanted_free(&wanted);
    flp_logits_case_free(&data);
    return done;
}

const flp_host_family flp_host_logits_logp = { count, name, compile, run };
