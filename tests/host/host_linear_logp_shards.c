/* Shards of the vocabulary on the host device: cases of linear_logp, its backward and linear_cross_entropy, each of which is cut into shards in one of the ways
 * of tests/shards.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "cross_entropy_cases.h"
#include "host/host_suite.h"
#include "runtime/fake_driver_functions.h"
#include "shards.h"

enum { ALIGNMENT = 256 };

static const flp_cutting *cutting_of(int index)
{
    return &flp_cuttings[index % FLP_CUTTINGS];
}

static float *allocate(flp_host_memory *memory, int64_t floats)
{
    const size_t bytes = (size_t)floats * sizeof(float);
    float *made = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);

    if (!made)
        abort();
    flp_host_memory_add(memory, (unsigned char *)made, 0, bytes);
    return made;
}

static void list_buffers(const flp_case_buffer *buffers, int count, flp_host_memory *memory)
{
    for (int i = 0; i < count; i++)
        flp_host_memory_add(memory, buffers[i].base, buffers[i].offset, buffers[i].data_bytes);
}

/* 1: the case runs. A problem without rows has nothing to cut; a large case is left out, which is said. */
static int runs_here(const flp_linear_logp_problem *p, const char *name)
{
    const int small = (double)p->rows * (double)p->hidden * (double)p->vocab < 5e6 && p->hidden <= 1024;

    if (!small)
        flp_host_suite_leave_out(name);
    return small && p->rows > 0;
}

/* Unless all cases run, every fifth one does, by which each way to cut meets all dtypes: the tile kernels are those of the cases without shards. */
static int is_taken(int index)
{
    return flp_host_every() == 1 || index % 5 == 0;
}

/* ---- linear_logp ---- */

typedef struct {
    flp_case c;
    char name[144];
} forward_case;
static forward_case *forward_cases;
static int forward_count;

static int count_forward(void)
{
    const int all = flp_case_count();

    if (forward_cases)
        return forward_count;
    forward_cases = calloc((size_t)all, sizeof(*forward_cases));
    if (!forward_cases)
        abort();
    for (int i = 0; i < all; i++) {
        forward_case *to = &forward_cases[forward_count];
        flp_case_get(i, &to->c);
        snprintf(to->name, sizeof(to->name), "%s: %s", cutting_of(forward_count)->name, to->c.name);
        forward_count += is_taken(i) && runs_here(&to->c.problem, to->name);
    }
    return forward_count;
}

static const char *name_forward(int index)
{
    return forward_cases[index].name;
}

static void compile_forward(flp_context *context, int index)
{
    const flp_linear_logp_problem shard = flp_shard_of(&forward_cases[index].c.problem, cutting_of(index), 0);
    flp_plan *plan;

    if (flp_linear_logp_plan_create(context, &shard, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static flp_status run_shards(flp_context *context, const flp_linear_logp_problem *whole, const flp_linear_logp_args *args, const flp_cutting *cutting,
                             float *partials)
{
    flp_status status = FLP_OK;

    for (int rank = 0; status == FLP_OK && rank < cutting->ranks; rank++) {
        const flp_linear_logp_problem shard = flp_shard_of(whole, cutting, rank);
        const flp_linear_logp_args of_shard = flp_shard_args(args, &shard, partials + rank * args->rows * FLP_PARTIAL_FLOATS);
        status = flp_linear_logp(context, &shard, &of_shard);
    }
    return status;
}

/* Merges by a plan, which has counts of bad targets. */
static int merge(flp_context *context, const flp_case *c, const flp_case_data *data, const flp_reference *reference, const flp_cutting *cutting,
                 const flp_linear_logp_merge_args *args, char *message, size_t bytes)
{
    const flp_linear_logp_problem any = flp_shard_of(&c->problem, cutting, cutting->ranks - 1);
    flp_plan *plan = NULL;
    flp_status status = flp_linear_logp_plan_create(context, &any, &plan);
    int done;

    if (status == FLP_OK)
        status = flp_linear_logp_execute_merge(plan, args);
    done = flp_host_suite_succeeded(status, message, bytes) && flp_case_check(c, data, reference, message, bytes) &&
           flp_host_suite_check_target_errors(plan, reference->bad_count, reference->bad_first, message, bytes);
    flp_plan_destroy(plan);
    return done;
}

static int run_data(flp_context *context, const flp_case *c, const flp_case_data *data, const flp_reference *reference, const flp_cutting *cutting,
                    char *message, size_t bytes)
{
    flp_host_memory memory = { 0 };
    flp_linear_logp_args args;
    float *partials = allocate(&memory, cutting->ranks * c->problem.rows * FLP_PARTIAL_FLOATS);
    int done;

    list_buffers(data->buffer, FLP_CASE_BUFFERS, &memory);
    flp_case_args(c, data, NULL, &args);
    done = flp_host_suite_succeeded(run_shards(context, &c->problem, &args, cutting, partials), message, bytes);
    if (done) {
        const flp_linear_logp_merge_args merge_args = flp_shard_merge_args(&args, partials, cutting->ranks);
        done = merge(context, c, data, reference, cutting, &merge_args, message, bytes);
    }
    flp_host_memory_remove(&memory);
    free(partials);
    return done;
}

static int run_forward(flp_context *context, int index, char *message, size_t bytes)
{
    const flp_case *c = &forward_cases[index].c;
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args args;
    int done;

    if (!flp_case_make_data(c, &data))
        abort();
    flp_case_args(c, &data, NULL, &args);
    if (!flp_reference_compute(&c->problem, &args, &reference))
        abort();
    done = run_data(context, c, &data, &reference, cutting_of(index), message, bytes);
    flp_reference_free(&reference);
    flp_case_free_data(&data);
    return done;
}

const flp_host_family flp_host_linear_logp_shards = { count_forward, name_forward, compile_forward, run_forward };

/* ---- its backward ---- */

typedef struct {
    flp_gradient_case c;
    char name[160];
} gradient_case;
static gradient_case *gradient_cases;
static int gradient_count;

static int count_gradients(void)
{
    const int all = flp_gradient_case_count();

    if (gradient_cases)
        return gradient_count;
    gradient_cases = calloc((size_t)all, sizeof(*gradient_cases));
    if (!gradient_cases)
        abort();
    for (int i = 0; i < all; i++) {
        gradient_case *to = &gradient_cases[gradient_count];
        flp_gradient_case_get(i, &to->c);
        snprintf(to->name, sizeof(to->name), "gradients of %s: %s", cutting_of(gradient_count)->name, to->c.name);
        gradient_count += is_taken(i) && !to->c.problem.with_forward && runs_here(&to->c.problem.forward, to->name);
    }
    return gradient_count;
}

static const char *name_gradients(int index)
{
    return gradient_cases[index].name;
}

static void compile_gradients(flp_context *context, int index)
{
    const flp_linear_logp_backward_problem shard = flp_shard_backward_of(&gradient_cases[index].c.problem, cutting_of(index), 0);
    flp_plan *plan;

    if (flp_linear_logp_backward_plan_create(context, &shard, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

/* A copy of grad_hidden at the time when its event is recorded, by which it must be complete. (The workspace's event is recorded later.) */
static struct {
    const float *grad_hidden;
    float *then;
    size_t bytes;
    int is_recorded;
} at_event;

static void take_grad_hidden(int function)
{
    if (function != FAKE_event_record || at_event.is_recorded)
        return;
    at_event.is_recorded = 1;
    memcpy(at_event.then, at_event.grad_hidden, at_event.bytes);
}

static int64_t grad_weight_bytes(const flp_linear_logp_backward_problem *shard)
{
    const int transposed = shard->forward.weight_layout == FLP_HIDDEN_VOCAB;
    const int64_t rows = transposed ? shard->forward.hidden : shard->forward.vocab, columns = transposed ? shard->forward.vocab : shard->forward.hidden;
    const int64_t stride = shard->grad_weight_stride ? shard->grad_weight_stride : shard->forward.weight_stride ? shard->forward.weight_stride : columns;

    return shard->grad_weight == FLP_NONE || shard->forward.vocab == 0 ? 0 : ((rows - 1) * stride + columns) * flp_dtype_bytes(shard->grad_weight);
}

/* Runs a shard's backward with an event after which an exchange of grad_hidden could begin, and checks that grad_hidden is complete then. alike: 1: the
 * gradients must also have the bits of a call without an event. */
static flp_status run_with_event(flp_context *context, const flp_linear_logp_backward_problem *shard, const flp_linear_logp_backward_args *given, int alike)
{
    const size_t bytes = shard->grad_hidden != FLP_NONE ? (size_t)(given->rows * shard->forward.hidden) * sizeof(float) : 0;
    const size_t weight_bytes = (size_t)grad_weight_bytes(shard);
    flp_linear_logp_backward_args args = *given;
    char *hidden = malloc(bytes + 1), *weight = malloc(weight_bytes + 1);
    flp_status status = FLP_OK;
    CUevent event;

    at_event.grad_hidden = args.grad_hidden;
    at_event.then = malloc(bytes + 1);
    at_event.bytes = bytes;
    if (!hidden || !weight || !at_event.then || fake_cuda_event_create(&event, 0) != CUDA_SUCCESS)
        abort();
    if (alike) {
        status = flp_linear_logp_backward(context, shard, &args);
        memcpy(hidden, args.grad_hidden ? args.grad_hidden : hidden, bytes);
        memcpy(weight, args.grad_weight ? args.grad_weight : weight, weight_bytes);
    }
    args.grad_hidden_event = event;
    args.multiprocessors_left = 2;
    at_event.is_recorded = 0;
    fake_driver.on_call = take_grad_hidden;
    if (status == FLP_OK)
        status = flp_linear_logp_backward(context, shard, &args);
    fake_driver.on_call = NULL;
    if (status == FLP_OK && bytes > 0 && (!at_event.is_recorded || memcmp(at_event.then, args.grad_hidden, bytes) != 0))
        status = flp_status_fail(FLP_INTERNAL, "grad_hidden was not complete at its event");
    if (status == FLP_OK && alike &&
        ((bytes > 0 && memcmp(hidden, args.grad_hidden, bytes) != 0) || (weight_bytes > 0 && memcmp(weight, args.grad_weight, weight_bytes) != 0)))
        status = flp_status_fail(FLP_INTERNAL, "an event changed bits of gradients");
    fake_cuda_event_destroy(event);
    free(at_event.then);
    free(weight);
    free(hidden);
    return status;
}

static flp_status run_backward_shards(flp_context *context, const flp_linear_logp_backward_problem *given, const flp_linear_logp_backward_args *args,
                                      const flp_cutting *cutting)
{
    const int64_t part = args->rows * given->forward.hidden;
    flp_linear_logp_backward_problem whole = *given;
    flp_host_memory memory = { 0 };
    float *parts = allocate(&memory, cutting->ranks * part);
    flp_status status = FLP_OK;

    whole.memory_budget = 0; /* that of the whole problem may be too small for a shard */
    for (int rank = 0; status == FLP_OK && rank < cutting->ranks; rank++) {
        const flp_linear_logp_backward_problem shard = flp_shard_backward_of(&whole, cutting, rank);
        const flp_linear_logp_backward_args of_shard = flp_shard_backward_args(&whole, args, &shard, parts + rank * part);
        status = run_with_event(context, &shard, &of_shard, rank == 0 && !shard.accumulate);
    }
    if (status == FLP_OK)
        flp_shard_sum_hidden(&whole, args, parts, cutting->ranks);
    flp_host_memory_remove(&memory);
    free(parts);
    return status;
}

static const double roundoff[] = { [FLP_BF16] = 0x1p-8, [FLP_F16] = 0x1p-11, [FLP_F32] = 0 }; /* dlogit is kept in the dtype of the inputs */

static int run_gradients(flp_context *context, int index, char *message, size_t bytes)
{
    const flp_gradient_case *c = &gradient_cases[index].c;
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_linear_logp_backward_args args;
    flp_host_memory memory = { 0 };
    int done;

    if (!flp_gradient_case_make_data(c, &data, &reference))
        abort();
    list_buffers(data.forward.buffer, FLP_CASE_BUFFERS, &memory);
    list_buffers(data.own, FLP_GRADIENT_BUFFERS, &memory);
    flp_gradient_case_args(c, &data, NULL, NULL, &args);
    done = flp_host_suite_succeeded(run_backward_shards(context, &c->problem, &args, cutting_of(index)), message, bytes) &&
           flp_gradient_case_check(c, &data, &reference, roundoff[c->problem.forward.dtype], message, bytes);
    flp_host_memory_remove(&memory);
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
    return done;
}

const flp_host_family flp_host_linear_logp_backward_shards = { count_gradients, name_gradients, compile_gradients, run_gradients };

/* ---- linear_cross_entropy ---- */

typedef struct {
    flp_cross_entropy_case c;
    char name[160];
} loss_case;
static loss_case *loss_cases;
static int loss_count;

/* One case more than in the table: targets so likely that lse alone does not tell how far from certain they are. */
static const flp_cross_entropy_case likely = { .gradient = { .name = "likely targets, f32",
                                                             .problem = { .grad_hidden = FLP_F32, .grad_weight = FLP_F32 },
                                                             .forward = { .values = FLP_CASE_INTEGERS,
                                                                          .rows = FLP_CASE_EQUAL_TARGETS,
                                                                          .margin = 40,
                                                                          .problem = { .dtype = FLP_F32, .rows = 45, .hidden = 8, .vocab = 300 } } },
                                               .problem.reduction = FLP_REDUCE_NONE,
                                               .outputs = 1 };

static void get_loss(int index, flp_cross_entropy_case *c)
{
    if (index > 0) {
        flp_cross_entropy_case_get(index - 1, c);
        return;
    }
    *c = likely;
    flp_cross_entropy_case_complete(flp_cross_entropy_case_count(), c);
}

static int count_losses(void)
{
    const int all = flp_cross_entropy_case_count() + 1;

    if (loss_cases)
        return loss_count;
    loss_cases = calloc((size_t)all, sizeof(*loss_cases));
    if (!loss_cases)
        abort();
    for (int i = 0; i < all; i++) {
        loss_case *to = &loss_cases[loss_count];
        get_loss(i, &to->c);
        snprintf(to->name, sizeof(to->name), "cross-entropy of %s: %s", cutting_of(loss_count)->name, to->c.gradient.name);
        loss_count += is_taken(i) && runs_here(&to->c.problem.backward.forward, to->name);
    }
    return loss_count;
}

static const char *name_losses(int index)
{
    return loss_cases[index].name;
}

static flp_status define_loss(flp_context *context)
{
    return flp_token_loss_define(context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss);
}

static void compile_losses(flp_context *context, int index)
{
    const flp_linear_cross_entropy_problem shard = flp_shard_cross_entropy_of(&loss_cases[index].c.problem, cutting_of(index), 0);
    flp_plan *plan;

    if (define_loss(context) == FLP_OK && flp_linear_cross_entropy_plan_create(context, &shard, &plan) == FLP_OK)
        flp_plan_destroy(plan);
}

static int check_losses(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, const flp_shard_cross_entropy *run, char *message,
                        size_t bytes)
{
    if (run->bad_count == data->forward.bad_count && run->bad_first == data->forward.bad_first)
        return flp_cross_entropy_case_check(c, data, roundoff[c->problem.backward.forward.dtype], message, bytes);
    snprintf(message, bytes, "bad targets: got %lld, wanted %lld", (long long)run->bad_count, (long long)data->forward.bad_count);
    return 0;
}

static int run_losses(flp_context *context, int index, char *message, size_t bytes)
{
    const flp_cross_entropy_case *c = &loss_cases[index].c;
    const flp_cutting *cutting = cutting_of(index);
    const flp_linear_logp_problem *forward = &c->problem.backward.forward;
    flp_host_memory memory = { 0 };
    flp_cross_entropy_case_data data;
    flp_cross_entropy_case_call call;
    flp_shard_cross_entropy run = { .partials = allocate(&memory, cutting->ranks * forward->rows * FLP_PARTIAL_FLOATS),
                                    .grad_hidden = allocate(&memory, cutting->ranks * forward->rows * forward->hidden) };
    flp_status status = define_loss(context);
    int done;

    if (!flp_cross_entropy_case_make_data(c, &data))
        abort();
    list_buffers(data.gradient.forward.buffer, FLP_CASE_BUFFERS, &memory);
    list_buffers(data.gradient.own, FLP_GRADIENT_BUFFERS, &memory);
    list_buffers(data.own, FLP_CROSS_ENTROPY_BUFFERS, &memory);
    flp_cross_entropy_case_args(c, &data, NULL, NULL, NULL, &call);
    if (status == FLP_OK)
        status = flp_shard_run_cross_entropy(context, &c->problem, &call.args, cutting, &run);
    done = flp_host_suite_succeeded(status, message, bytes) && check_losses(c, &data, &run, message, bytes);
    flp_host_memory_remove(&memory);
    flp_cross_entropy_case_free_data(&data);
    free(run.partials);
    free(run.grad_hidden);
    return done;
}

const flp_host_family flp_host_linear_cross_entropy_shards = { count_losses, name_losses, compile_losses, run_losses };
