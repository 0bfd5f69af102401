/* Shards of the vocabulary on the GPU, computed one after another and merged: every case of linear_logp, its backward and linear_cross_entropy, each of which
 * is cut in one of the ways of tests/shards.h. The partials are also merged on the host. */
#include <stdio.h>
#include <stdlib.h>

#include "device/device_case.h"
#include "device/device_test.h"
#include "device/gradient_on_device.h"
#include "device/loss_on_device.h"
#include "shards.h"

static flp_context *host_context;

static const flp_cutting *cutting_of(int index)
{
    return &flp_cuttings[index % FLP_CUTTINGS];
}

/* ---- linear_logp ---- */

typedef struct {
    int index;
    flp_case c;
} forward_case;

static float *run_shards(const forward_case *of, const flp_linear_logp_args *args)
{
    const flp_cutting *cutting = cutting_of(of->index);
    CUdeviceptr partials;

    assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, (size_t)cutting->ranks * (size_t)args->rows * FLP_PARTIAL_FLOATS * sizeof(float), &partials));
    for (int rank = 0; rank < cutting->ranks; rank++) {
        const flp_linear_logp_problem shard = flp_shard_of(&of->c.problem, cutting, rank);
        float *part = (float *)flp_gpu_pointer(partials) + rank * args->rows * FLP_PARTIAL_FLOATS;
        const flp_linear_logp_args of_shard = flp_shard_args(args, &shard, part);
        assert_succeeds(flp_linear_logp(flp_device_test.context, &shard, &of_shard));
    }
    return flp_gpu_pointer(partials);
}

static void check(const forward_case *of, const char *where, const flp_case_data *data, const flp_reference *reference)
{
    char message[512] = "";

    if (!flp_case_check(&of->c, data, reference, message, sizeof(message)))
        fail_msg("%s, %s, merged on the %s: %s", of->c.name, cutting_of(of->index)->name, where, message);
}

static void merge_on_device(const forward_case *of, const flp_linear_logp_args *args, const float *partials)
{
    const flp_cutting *cutting = cutting_of(of->index);
    const flp_linear_logp_problem any = flp_shard_of(&of->c.problem, cutting, 0);
    const flp_linear_logp_merge_args merge = flp_shard_merge_args(args, partials, cutting->ranks);

    assert_succeeds(flp_linear_logp_merge(flp_device_test.context, &any, &merge));
    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
}

/* Merges on the host, as ranks do that exchange their partials through it. */
static void merge_on_host(const forward_case *of, flp_case_data *data, const float *on_device)
{
    const flp_cutting *cutting = cutting_of(of->index);
    const flp_linear_logp_problem any = flp_shard_of(&of->c.problem, cutting, 0);
    flp_linear_logp_merge_args merge;
    flp_linear_logp_args args;
    size_t bytes;
    float *partials;

    flp_case_poison_outputs(data);
    flp_case_args(&of->c, data, NULL, &args);
    bytes = (size_t)cutting->ranks * (size_t)args.rows * FLP_PARTIAL_FLOATS * sizeof(float);
    partials = malloc(bytes + 1);
    assert_non_null(partials);
    assert_succeeds(flp_gpu_download(&flp_device_test.gpu, partials, (CUdeviceptr)(uintptr_t)on_device, bytes));
    merge = flp_shard_merge_args(&args, partials, cutting->ranks);
    assert_succeeds(flp_linear_logp_merge(host_context, &any, &merge));
    free(partials);
}

static void a_case_in_shards_is_right(void **state)
{
    const forward_case *of = *state;
    flp_case_data data;
    flp_reference reference;
    flp_device_case on_device;
    flp_linear_logp_args args;
    char message[512] = "";
    int intact;

    assert_true(flp_case_make_data(&of->c, &data));
    flp_case_args(&of->c, &data, NULL, &args);
    assert_true(flp_reference_compute(&of->c.problem, &args, &reference));
    assert_succeeds(flp_device_case_upload(&flp_device_test.gpu, &data, flp_device_test.quick, &on_device));
    flp_device_case_args(&of->c, &data, &on_device, &args);
    const float *partials = run_shards(of, &args);
    merge_on_device(of, &args, partials);
    assert_succeeds(flp_device_case_download(&flp_device_test.gpu, &data, &on_device, &intact, message, sizeof(message)));
    if (!intact)
        fail_msg("%s: %s", of->c.name, message);
    check(of, "GPU", &data, &reference);
    merge_on_host(of, &data, partials);
    check(of, "host", &data, &reference);
    flp_reference_free(&reference);
    flp_case_free_data(&data);
}

/* ---- its backward ---- */

typedef struct {
    int index;
    flp_gradient_case c;
} gradient_case;

static void run_backward_shards(const flp_linear_logp_backward_problem *whole, const flp_cutting *cutting, const flp_linear_logp_backward_args *args,
                                float *parts)
{
    for (int rank = 0; rank < cutting->ranks; rank++) {
        const flp_linear_logp_backward_problem shard = flp_shard_backward_of(whole, cutting, rank);
        const flp_linear_logp_backward_args of_shard = flp_shard_backward_args(whole, args, &shard, parts + rank * args->rows * whole->forward.hidden);
        assert_succeeds(flp_linear_logp_backward(flp_device_test.context, &shard, &of_shard));
    }
}

static void gradients_in_shards_are_right(void **state)
{
    const gradient_case *of = *state;
    const flp_cutting *cutting = cutting_of(of->index);
    const size_t bytes = (size_t)cutting->ranks * (size_t)of->c.problem.forward.rows * (size_t)of->c.problem.forward.hidden * sizeof(float);
    flp_linear_logp_backward_problem whole = of->c.problem;
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_gradient_on_device copy = { 0 };
    flp_linear_logp_backward_args args, on_host;
    float *parts = malloc(bytes + 1);
    char message[512] = "";
    CUdeviceptr on_device;

    whole.memory_budget = 0;
    assert_non_null(parts);
    assert_true(flp_gradient_case_make_data(&of->c, &data, &reference));
    flp_gradient_on_device_upload(&of->c, &data, &copy, &args);
    assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, bytes, &on_device));
    run_backward_shards(&whole, cutting, &args, flp_gpu_pointer(on_device));
    flp_gradient_on_device_fetch(&of->c, cutting->name, &copy, &data);
    assert_succeeds(flp_gpu_download(&flp_device_test.gpu, parts, on_device, bytes));
    flp_gradient_case_args(&of->c, &data, NULL, NULL, &on_host);
    flp_shard_sum_hidden(&whole, &on_host, parts, cutting->ranks);
    if (!flp_gradient_case_check(&of->c, &data, &reference, flp_gradient_gpu_roundoff(whole.forward.dtype), message, sizeof(message)))
        fail_msg("%s, %s: %s", of->c.name, cutting->name, message);
    flp_gradient_reference_free(&reference);
    flp_gradient_case_free_data(&data);
    free(parts);
}

/* ---- linear_cross_entropy ---- */

typedef struct {
    int index;
    flp_cross_entropy_case c;
    char name[144];
} loss_case;

static float *floats_on_device(int64_t count)
{
    CUdeviceptr made;

    assert_succeeds(flp_gpu_allocate(&flp_device_test.gpu, (size_t)count * sizeof(float), &made));
    return flp_gpu_pointer(made);
}

/* Sums up the parts of grad_hidden on the host, as ranks would. */
static void sum_parts(const loss_case *of, const float *on_device, flp_cross_entropy_case_data *data)
{
    const flp_linear_logp_backward_problem *backward = &of->c.problem.backward;
    const int ranks = cutting_of(of->index)->ranks;
    const size_t bytes = (size_t)ranks * (size_t)backward->forward.rows * (size_t)backward->forward.hidden * sizeof(float);
    flp_cross_entropy_case_call on_host;
    float *parts;

    if (backward->grad_hidden == FLP_NONE)
        return;
    parts = malloc(bytes + 1);
    assert_non_null(parts);
    assert_succeeds(flp_gpu_download(&flp_device_test.gpu, parts, (CUdeviceptr)(uintptr_t)on_device, bytes));
    flp_cross_entropy_case_args(&of->c, data, NULL, NULL, NULL, &on_host);
    const flp_linear_logp_backward_args sums = { .rows = on_host.args.rows, .grad_hidden = on_host.args.grad_hidden };
    flp_shard_sum_hidden(backward, &sums, parts, ranks);
    free(parts);
}

static void losses_in_shards_are_right(void **state)
{
    const loss_case *of = *state;
    const flp_cutting *cutting = cutting_of(of->index);
    const flp_linear_logp_problem *forward = &of->c.problem.backward.forward;
    flp_cross_entropy_case_data data;
    flp_cross_entropy_case_call call;
    flp_loss_on_device copy = { 0 };
    flp_shard_cross_entropy run;
    char message[512] = "";

    assert_true(flp_cross_entropy_case_make_data(&of->c, &data));
    flp_loss_on_device_upload(&of->c, &data, &copy, &call);
    run = (flp_shard_cross_entropy){ .partials = floats_on_device(cutting->ranks * forward->rows * FLP_PARTIAL_FLOATS),
                                     .grad_hidden = floats_on_device(cutting->ranks * forward->rows * forward->hidden) };
    assert_succeeds(flp_shard_run_cross_entropy_parts(flp_device_test.context, &of->c.problem, &call.args, cutting, &run));
    flp_loss_on_device_fetch(&of->c, cutting->name, &copy, &data);
    sum_parts(of, run.grad_hidden, &data);
    assert_int_equal(data.forward.bad_count, run.bad_count);
    assert_int_equal(data.forward.bad_first, run.bad_first);
    if (!flp_cross_entropy_case_check(&of->c, &data, flp_loss_on_device_roundoff(&of->c), message, sizeof(message)))
        fail_msg("%s, %s: %s", of->c.gradient.name, cutting->name, message);
    flp_cross_entropy_case_free_data(&data);
}

/* ---- */

static forward_case *forwards;
static gradient_case *gradients;
static loss_case *losses;

static int forward_count, gradient_count, loss_count;

static struct CMUnitTest test_at(int index)
{
    if (index < forward_count)
        return flp_device_test_case(forwards[index].c.name, a_case_in_shards_is_right, &forwards[index]);
    index -= forward_count;
    if (index < gradient_count)
        return flp_device_test_case(gradients[index].c.name, gradients_in_shards_are_right, &gradients[index]);
    return flp_device_test_case(losses[index - gradient_count].name, losses_in_shards_are_right, &losses[index - gradient_count]);
}

static void collect_losses(int step)
{
    losses = calloc((size_t)flp_cross_entropy_case_count(), sizeof(*losses));
    if (!losses)
        abort();
    for (int i = 0; i < flp_cross_entropy_case_count(); i += step) {
        loss_case *to = &losses[loss_count];
        flp_cross_entropy_case_get(i, &to->c);
        to->index = loss_count;
        snprintf(to->name, sizeof(to->name), "cross-entropy: %s", to->c.gradient.name);
        loss_count += to->c.problem.backward.forward.rows > 0;
    }
}

/* Collects the cases; of the backward those without with_forward. */
static void collect(void)
{
    const int step = flp_device_test.quick ? 16 : 1;

    forwards = calloc((size_t)flp_case_count(), sizeof(*forwards));
    gradients = calloc((size_t)flp_gradient_case_count(), sizeof(*gradients));
    if (!forwards || !gradients)
        abort();
    for (int i = 0; i < flp_case_count(); i += step) {
        flp_case_get(i, &forwards[forward_count].c);
        forwards[forward_count].index = forward_count;
        forward_count += forwards[forward_count].c.problem.rows > 0;
    }
    for (int i = 0; i < flp_gradient_case_count(); i += step) {
        flp_gradient_case_get(i, &gradients[gradient_count].c);
        gradients[gradient_count].index = gradient_count;
        gradient_count += !gradients[gradient_count].c.problem.with_forward && gradients[gradient_count].c.problem.forward.rows > 0;
    }
    collect_losses(step);
}

int main(int argc, char **argv)
{
    const flp_context_options on_host = { .cache_directory = "", .flags = FLP_CONTEXT_NO_GPU };
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    collect();
    if (flp_token_loss_define(flp_device_test.context, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) != FLP_OK)
        abort();
    if (flp_context_create(&on_host, &host_context) != FLP_OK)
        abort();
    code = flp_device_test_run_cases("shards of the vocabulary on the device", forward_count + gradient_count + loss_count, test_at);
    flp_context_destroy(host_context);
    flp_device_test_finish();
    free(forwards);
    free(gradients);
    free(losses);
    return code;
}
