/* linear_logp's backward on the host device: the cases of tests/gradient_cases.h. */
#include "base/dtype.h"
#include "host/host_linear_logp_backward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host_forward_pair.h"
#include "host/host_suite.h"

static flp_gradient_case *cases;
static char (*names)[128];
static int case_count;

/* By name, not by size: a case that is too large by mistake then takes long here, and is not left out in silence. */
static int is_left_out(const flp_gradient_case *c)
{
    static const char *const too_large[] = { "seed case", "many rows and entries", "forward too, in chunks, wide rows" };

    for (size_t i = 0; i < sizeof(too_large) / sizeof(*too_large); i++)
        if (strcmp(c->name, too_large[i]) == 0)
            return 1;
    return 0;
}

#define LIKELY(nats) .values = FLP_CASE_INTEGERS, .rows = FLP_CASE_EQUAL_TARGETS, .margin = nats
#define ALL_F32 .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32

/* More cases for the kernels alone: likely targets whose logp is given; logits far from 0, after their forward; one infinite upstream gradient. */
static const flp_gradient_case kernels_own[] = {
    { .name = "likely targets, f32",
      .gives_logp = 1,
      .problem = { ALL_F32 },
      .forward = { LIKELY(40), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "likely targets, f32, of lse and entropy",
      .gives_logp = 1,
      .problem = { ALL_F32, .g_lse = 1, .g_entropy = 1 },
      .forward = { LIKELY(16), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "likely targets",
      .gives_logp = 1,
      .problem = { ALL_F32 },
      .forward = { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "likely targets, softcap",
      .gives_logp = 1,
      .problem = { ALL_F32 },
      .forward = { LIKELY(20), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300, .softcap = 50 } } },
    { .name = "likely targets, forward too, f32",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { LIKELY(40), .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "likely targets, forward too",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "likely targets, forward too, in the first columns",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { LIKELY(80), .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 90 } } },
    { .name = "logits of 1e9, forward too, f32",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { .temperature = 1e-8, .values = FLP_CASE_INTEGERS, .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "logits of 1e9, forward too",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { .temperature = 1e-8, .values = FLP_CASE_INTEGERS, .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 300 } } },
    { .name = "logits 1e30 down, forward too",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { .bias = FLP_CASE_1E30_DOWN, .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300, .bias_dtype = FLP_F32 } } },
    { .name = "logits at the lowest, forward too",
      .problem = { ALL_F32, .with_forward = 1 },
      .forward = { .bias = FLP_CASE_LOWEST, .problem = { .dtype = FLP_BF16, .rows = 45, .hidden = 8, .vocab = 300, .bias_dtype = FLP_F32 } } },
    { .name = "a main gradient of more tiles than there are workers",
      .problem = { .grad_hidden = FLP_BF16, .grad_weight = FLP_F32, .accumulate = FLP_ACCUMULATE_WEIGHT },
      .forward = { .problem = { .dtype = FLP_BF16, .rows = 130, .hidden = 24, .vocab = 1500 } } },
    { .name = "one infinite upstream gradient",
      .upstream = FLP_UPSTREAM_ONE_INFINITE,
      .problem = { .grad_hidden = FLP_F32 },
      .forward = { .problem = { .dtype = FLP_F16, .rows = 45, .hidden = 8, .vocab = 300 } } },
};
enum { KERNELS_OWN = sizeof(kernels_own) / sizeof(*kernels_own) };

static void get(int index, flp_gradient_case *c)
{
    const int shared = flp_gradient_case_count();

    if (index < shared) {
        flp_gradient_case_get(index, c);
        return;
    }
    *c = kernels_own[index - shared];
    flp_gradient_case_complete(index, c);
}

static int count(void)
{
    const int all = flp_gradient_case_count() + KERNELS_OWN;

    if (cases)
        return case_count;
    cases = calloc((size_t)all, sizeof(*cases));
    names = calloc((size_t)all, sizeof(*names));
    if (!cases || !names)
        abort();
    for (int i = 0; i < all; i++) {
        get(i, &cases[case_count]);
        snprintf(names[case_count], sizeof(names[0]), "gradients: %s", cases[case_count].name);
        case_count += !is_left_out(&cases[case_count]);
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

/* Executes the forward, then the backward, in the same workspace. */
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

/* Each bad target must have been counted once: with_forward, the forward counts them and the backward does not. */
static int check_target_errors(const flp_gradient_case *c, flp_plan *plan, const flp_linear_logp_backward_args *args, char *message, size_t bytes)
{
    const flp_linear_logp_problem *forward = &c->problem.forward;
    int64_t count = 0, first = -1;

    for (int64_t i = args->rows - 1; i >= 0; i--) {
        const int64_t target = forward->target_dtype == FLP_I32 ? ((const int32_t *)args->target)[i] : ((const int64_t *)args->target)[i];
        if (flp_reference_ignores(args->flags, args->ignore_index, target) || (target >= 0 && target < forward->vocab))
            continue;
        count++;
        first = i;
    }
    return flp_host_suite_check_target_errors(plan, count, first, message, bytes);
}

static int execute(flp_context *context, const flp_gradient_case *c, const flp_linear_logp_backward_args *args, char *message, size_t bytes)
{
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_backward_plan_create(context, &c->problem, &plan);
    int done;

    if (status == FLP_OK)
        status = c->problem.with_forward ? execute_both(c, plan, args) : flp_linear_logp_backward_execute(plan, args);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_gradient_case_check_filter(c, plan, message, bytes) &&
           check_target_errors(c, plan, args, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

/* ---- bits ---- */

enum { FIRST_OF_PART = 8 }; /* 16-bit rows from there on are aligned like the first; in the products' tiles each is at another place */

static const float *advance(const float *values, int64_t rows)
{
    return values ? values + rows : NULL;
}

/* The arguments for `rows` rows from FIRST_OF_PART on. */
static flp_linear_logp_backward_args args_of_part(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *all, int64_t rows)
{
    const int64_t first = FIRST_OF_PART;
    const int64_t hidden_bytes = problem->forward.hidden_stride * flp_dtype_bytes(problem->forward.dtype);
    flp_linear_logp_backward_args args = *all;

    args.rows = rows;
    args.hidden = (const char *)all->hidden + first * hidden_bytes;
    args.target = (const char *)all->target + first * flp_dtype_bytes(problem->forward.target_dtype);
    args.row_temperature = advance(all->row_temperature, first);
    args.lse = advance(all->lse, first);
    args.entropy = advance(all->entropy, first);
    args.g_logp = advance(all->g_logp, first);
    args.g_lse = advance(all->g_lse, first);
    args.g_entropy = advance(all->g_entropy, first);
    args.grad_hidden = (char *)all->grad_hidden + first * problem->grad_hidden_stride * flp_dtype_bytes(problem->grad_hidden);
    return args;
}

/* Whether a row's grad_hidden does not depend on the other rows. In fp16 the factor does, with a filter its blocks do, and with a budget the chunks depend on
 * the problem's rows. */
static int has_bits_of_its_own(const flp_gradient_case *c)
{
    const flp_linear_logp_backward_problem *p = &c->problem;

    return p->with_forward && p->forward.dtype != FLP_F16 && p->grad_filter_eps == 0 && p->memory_budget == 0 && p->grad_hidden != FLP_NONE &&
           !(p->accumulate & FLP_ACCUMULATE_HIDDEN) && p->forward.rows > FIRST_OF_PART + 1;
}

/* Computes grad_hidden of some of the rows again, by a plan for these alone: its bits must be the same. */
static int check_part(flp_context *context, const flp_gradient_case *c, const flp_gradient_case_data *data, const flp_linear_logp_backward_args *all,
                      char *message, size_t bytes)
{
    const flp_case_buffer *buffer = &data->own[FLP_GRADIENT_HIDDEN];
    unsigned char *before = malloc(buffer->data_bytes);
    flp_gradient_case part = *c;
    flp_linear_logp_backward_args args;
    int done;

    if (!before)
        abort();
    memcpy(before, buffer->base + buffer->offset, buffer->data_bytes);
    part.problem.forward.rows = (c->problem.forward.rows - FIRST_OF_PART + 1) / 2;
    args = args_of_part(&c->problem, all, part.problem.forward.rows);
    for (int64_t i = 0; i < args.rows; i++)
        memset((char *)args.grad_hidden + i * c->problem.grad_hidden_stride * flp_dtype_bytes(c->problem.grad_hidden), 0xff,
               (size_t)(c->problem.forward.hidden * flp_dtype_bytes(c->problem.grad_hidden)));
    done = execute(context, &part, &args, message, bytes);
    if (done && memcmp(before, buffer->base + buffer->offset, buffer->data_bytes) != 0) {
        snprintf(message, bytes, "grad_hidden of %d rows from %d on: other bits than among all", (int)args.rows, FIRST_OF_PART);
        done = 0;
    }
    free(before);
    return done;
}

int flp_host_linear_logp_backward_run_data(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data,
                                           const flp_gradient_reference *reference, char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    flp_linear_logp_backward_args args;
    int done;

    flp_gradient_case_args(c, data, NULL, NULL, &args);
    list_buffers(data, &memory);
    done = execute(context, c, &args, message, bytes) &&
           flp_gradient_case_check(c, data, reference, flp_gradient_gpu_roundoff(c->problem.forward.dtype), message, bytes);
    flp_host_memory_remove(&memory);
    return done;
}

/* The checks other than that of the gradients, which data has already. */
static int check_more(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data, char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    flp_linear_logp_backward_args args;
    int done;

    flp_gradient_case_args(c, data, NULL, NULL, &args);
    list_buffers(data, &memory);
    done = (!c->problem.with_forward || flp_host_forward_pair_check(context, c, data, message, bytes)) &&
           (!has_bits_of_its_own(c) || check_part(context, c, data, &args, message, bytes));
    flp_host_memory_remove(&memory);
    return done;
}

int flp_host_linear_logp_backward_run(flp_context *context, const flp_gradient_case *c, char *message, size_t bytes)
{
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    int done;

    if (!flp_gradient_case_make_data(c, &data, &reference))
        abort();
    done = flp_host_linear_logp_backward_run_data(context, c, &data, &reference, message, bytes) && check_more(context, c, &data, message, bytes);
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
    return done;
}

static int run(flp_context *context, int index, char *message, size_t bytes)
{
    return flp_host_linear_logp_backward_run(context, &cases[index], message, bytes);
}

const flp_host_family flp_host_linear_logp_backward = { count, name, compile, run };
