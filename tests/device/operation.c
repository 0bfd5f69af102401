/* A small call of each operator on the device. */
#include "device/operation.h"

#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { ROWS = FLP_OPERATION_ROWS, HIDDEN = FLP_OPERATION_HIDDEN, VOCAB = FLP_OPERATION_VOCAB };
enum { HIDDEN_STREAM = 61, WEIGHT_STREAM, LOGITS_STREAM, G_STREAM, IGNORED = -100 };
static const float some_lse = 10.6f; /* near the lse of logits ~ N(0, 4); any number would do */

static flp_gpu *const gpu = &flp_device_test.gpu;

static CUdeviceptr make_matrix(int64_t rows, int64_t columns, unsigned stream, double deviation)
{
    CUdeviceptr data;
    flp_gpu_matrix matrix;

    assert_succeeds(flp_gpu_allocate(gpu, (size_t)(rows * columns) * 2, &data));
    matrix = flp_gpu_matrix_rows(data, FLP_BF16, rows, columns);
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &matrix, stream, deviation));
    return data;
}

void flp_operation_make_inputs(flp_operation_inputs *inputs)
{
    float g[ROWS], lse[ROWS];

    flp_device_test_need_kernels();
    for (int i = 0; i < ROWS; i++) {
        inputs->targets[i] = i % 7 == 3 ? IGNORED : (i * 7919 + 13) % VOCAB;
        g[i] = (float)flp_case_random_normal(G_STREAM, (uint64_t)i);
        lse[i] = some_lse;
    }
    inputs->hidden = make_matrix(ROWS, HIDDEN, HIDDEN_STREAM, 1);
    inputs->weight = make_matrix(VOCAB, HIDDEN, WEIGHT_STREAM, 0.125);
    inputs->logits = make_matrix(ROWS, VOCAB, LOGITS_STREAM, 2);
    assert_succeeds(flp_gpu_copy_in(gpu, inputs->targets, sizeof(inputs->targets), &inputs->target));
    assert_succeeds(flp_gpu_copy_in(gpu, lse, sizeof(lse), &inputs->lse));
    assert_succeeds(flp_gpu_copy_in(gpu, g, sizeof(g), &inputs->g));
}

/* ---- parts of the calls ---- */

static void *output(const flp_operation *o, int index)
{
    return flp_gpu_pointer(o->output[index]);
}

static void add_output(flp_operation *o, int64_t elements, size_t element_bytes)
{
    int at = 0;

    while (o->output_bytes[at] > 0)
        at++;
    o->output_bytes[at] = (size_t)elements * element_bytes;
    assert_succeeds(flp_gpu_allocate(gpu, o->output_bytes[at], &o->output[at]));
}

/* ---- linear_logp: logp, lse, entropy, argmax ---- */

static const flp_linear_logp_problem forward_problem = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB, .argmax = 1, .entropy = 1 };

static flp_linear_logp_args forward_args(const flp_operation *o)
{
    return (flp_linear_logp_args){
        .rows = o->rows,
        .hidden = flp_gpu_pointer(o->inputs->hidden),
        .weight = flp_gpu_pointer(o->inputs->weight),
        .target = flp_gpu_pointer(o->inputs->target),
        .ignore_index = IGNORED,
        .flags = FLP_IGNORE_INDEX,
        .logp = output(o, 0),
        .lse = output(o, 1),
        .entropy = output(o, 2),
        .argmax = output(o, 3),
        .stream = o->stream,
    };
}

static flp_status forward_create(flp_operation *o)
{
    for (int i = 0; i < 4; i++)
        add_output(o, ROWS, 4);
    return flp_linear_logp_plan_create(o->context, &forward_problem, &o->plan);
}

static flp_status forward_execute(flp_operation *o)
{
    flp_linear_logp_args args = forward_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_linear_logp_execute(o->plan, &args);
}

static flp_status forward_call(flp_operation *o)
{
    const flp_linear_logp_args args = forward_args(o);

    return flp_linear_logp(o->context, &forward_problem, &args);
}

static flp_status forward_prepare(flp_operation *o)
{
    return flp_linear_logp_prepare(o->context, &forward_problem, o->stream);
}

/* ---- linear_logp_backward: grad_hidden, grad_weight ---- */

static const flp_linear_logp_backward_problem backward_problem = {
    .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB },
    .grad_hidden = FLP_BF16,
    .grad_weight = FLP_BF16,
};

static flp_linear_logp_backward_args backward_args(const flp_operation *o)
{
    return (flp_linear_logp_backward_args){
        .rows = o->rows,
        .hidden = flp_gpu_pointer(o->inputs->hidden),
        .weight = flp_gpu_pointer(o->inputs->weight),
        .target = flp_gpu_pointer(o->inputs->target),
        .ignore_index = IGNORED,
        .flags = FLP_IGNORE_INDEX,
        .lse = flp_gpu_pointer(o->inputs->lse),
        .g_logp = flp_gpu_pointer(o->inputs->g),
        .grad_hidden = output(o, 0),
        .grad_weight = output(o, 1),
        .stream = o->stream,
    };
}

static flp_status backward_create(flp_operation *o)
{
    add_output(o, ROWS * HIDDEN, 2);
    add_output(o, VOCAB * HIDDEN, 2);
    return flp_linear_logp_backward_plan_create(o->context, &backward_problem, &o->plan);
}

static flp_status backward_execute(flp_operation *o)
{
    flp_linear_logp_backward_args args = backward_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_linear_logp_backward_execute(o->plan, &args);
}

static flp_status backward_call(flp_operation *o)
{
    const flp_linear_logp_backward_args args = backward_args(o);

    return flp_linear_logp_backward(o->context, &backward_problem, &args);
}

static flp_status backward_prepare(flp_operation *o)
{
    return flp_linear_logp_backward_prepare(o->context, &backward_problem, o->stream);
}

/* ---- linear_cross_entropy: loss, grad_hidden, grad_weight ---- */

static const flp_linear_cross_entropy_problem loss_problem = {
    .backward = { .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB }, .grad_hidden = FLP_BF16, .grad_weight = FLP_BF16 },
    .reduction = FLP_REDUCE_NONE,
};

static flp_linear_cross_entropy_args loss_args(const flp_operation *o)
{
    return (flp_linear_cross_entropy_args){
        .rows = o->rows,
        .hidden = flp_gpu_pointer(o->inputs->hidden),
        .weight = flp_gpu_pointer(o->inputs->weight),
        .target = flp_gpu_pointer(o->inputs->target),
        .ignore_index = IGNORED,
        .flags = FLP_IGNORE_INDEX,
        .loss = output(o, 0),
        .grad_hidden = output(o, 1),
        .grad_weight = output(o, 2),
        .stream = o->stream,
    };
}

static flp_status loss_create(flp_operation *o)
{
    add_output(o, ROWS, 4);
    add_output(o, ROWS * HIDDEN, 2);
    add_output(o, VOCAB * HIDDEN, 2);
    return flp_linear_cross_entropy_plan_create(o->context, &loss_problem, &o->plan);
}

static flp_status loss_execute(flp_operation *o)
{
    flp_linear_cross_entropy_args args = loss_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_linear_cross_entropy_execute(o->plan, &args);
}

static flp_status loss_call(flp_operation *o)
{
    const flp_linear_cross_entropy_args args = loss_args(o);

    return flp_linear_cross_entropy(o->context, &loss_problem, &args);
}

static flp_status loss_prepare(flp_operation *o)
{
    return flp_linear_cross_entropy_prepare(o->context, &loss_problem, o->stream);
}

/* ---- logits_logp: logp, lse; its backward, fused: these and grad_logits ---- */

static const flp_logits_logp_problem logits_problem = { .dtype = FLP_BF16, .rows = ROWS, .vocab = VOCAB };
static const flp_logits_logp_backward_problem fused_problem = { .dtype = FLP_BF16, .rows = ROWS, .vocab = VOCAB, .fused = 1 };

static flp_logits_logp_args logits_args(const flp_operation *o)
{
    return (flp_logits_logp_args){
        .rows = o->rows,
        .logits = flp_gpu_pointer(o->inputs->logits),
        .target = flp_gpu_pointer(o->inputs->target),
        .ignore_index = IGNORED,
        .flags = FLP_IGNORE_INDEX,
        .logp = output(o, 0),
        .lse = output(o, 1),
        .stream = o->stream,
    };
}

static flp_status logits_create(flp_operation *o)
{
    add_output(o, ROWS, 4);
    add_output(o, ROWS, 4);
    return flp_logits_logp_plan_create(o->context, &logits_problem, &o->plan);
}

static flp_status logits_execute(flp_operation *o)
{
    flp_logits_logp_args args = logits_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_logits_logp_execute(o->plan, &args);
}

static flp_status logits_call(flp_operation *o)
{
    const flp_logits_logp_args args = logits_args(o);

    return flp_logits_logp(o->context, &logits_problem, &args);
}

static flp_status logits_prepare(flp_operation *o)
{
    return flp_logits_logp_prepare(o->context, &logits_problem, o->stream);
}

static flp_logits_logp_backward_args fused_args(const flp_operation *o)
{
    return (flp_logits_logp_backward_args){
        .rows = o->rows,
        .logits = flp_gpu_pointer(o->inputs->logits),
        .target = flp_gpu_pointer(o->inputs->target),
        .ignore_index = IGNORED,
        .flags = FLP_IGNORE_INDEX,
        .g_logp = flp_gpu_pointer(o->inputs->g),
        .logp = output(o, 0),
        .lse = output(o, 1),
        .grad_logits = output(o, 2),
        .stream = o->stream,
    };
}

static flp_status fused_create(flp_operation *o)
{
    add_output(o, ROWS, 4);
    add_output(o, ROWS, 4);
    add_output(o, ROWS * VOCAB, 2);
    return flp_logits_logp_backward_plan_create(o->context, &fused_problem, &o->plan);
}

static flp_status fused_execute(flp_operation *o)
{
    flp_logits_logp_backward_args args = fused_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_logits_logp_backward_execute(o->plan, &args);
}

static flp_status fused_call(flp_operation *o)
{
    const flp_logits_logp_backward_args args = fused_args(o);

    return flp_logits_logp_backward(o->context, &fused_problem, &args);
}

static flp_status fused_prepare(flp_operation *o)
{
    return flp_logits_logp_backward_prepare(o->context, &fused_problem, o->stream);
}

/* ---- weighted_sum and its backward: y; grad_x, grad_w. The first row of weight is w ---- */

static const flp_weighted_sum_problem sum_problem = { .dtype = FLP_BF16, .rows = ROWS, .columns = HIDDEN, .y_dtype = FLP_F32 };
static const flp_weighted_sum_backward_problem sum_backward_problem = {
    .forward = { .dtype = FLP_BF16, .rows = ROWS, .columns = HIDDEN, .y_dtype = FLP_F32 },
    .grad_x = FLP_BF16,
    .grad_w = FLP_F32,
};

static flp_status sum_create(flp_operation *o)
{
    add_output(o, ROWS, 4);
    return flp_weighted_sum_plan_create(o->context, &sum_problem, &o->plan);
}

static flp_weighted_sum_args sum_args(const flp_operation *o)
{
    return (flp_weighted_sum_args){
        .rows = o->rows, .x = flp_gpu_pointer(o->inputs->hidden), .w = flp_gpu_pointer(o->inputs->weight), .y = output(o, 0), .stream = o->stream
    };
}

static flp_status sum_execute(flp_operation *o)
{
    const flp_weighted_sum_args args = sum_args(o);

    return flp_weighted_sum_execute(o->plan, &args);
}

static flp_status sum_call(flp_operation *o)
{
    const flp_weighted_sum_args args = sum_args(o);

    return flp_weighted_sum(o->context, &sum_problem, &args);
}

static flp_status sum_prepare(flp_operation *o)
{
    return flp_weighted_sum_prepare(o->context, &sum_problem, o->stream);
}

static flp_weighted_sum_backward_args sum_backward_args(const flp_operation *o)
{
    return (flp_weighted_sum_backward_args){ .rows = o->rows,
                                             .g = flp_gpu_pointer(o->inputs->g),
                                             .x = flp_gpu_pointer(o->inputs->hidden),
                                             .w = flp_gpu_pointer(o->inputs->weight),
                                             .grad_x = output(o, 0),
                                             .grad_w = output(o, 1),
                                             .stream = o->stream };
}

static flp_status sum_backward_create(flp_operation *o)
{
    add_output(o, ROWS * HIDDEN, 2);
    add_output(o, HIDDEN, 4);
    return flp_weighted_sum_backward_plan_create(o->context, &sum_backward_problem, &o->plan);
}

static flp_status sum_backward_execute(flp_operation *o)
{
    flp_weighted_sum_backward_args args = sum_backward_args(o);

    args.workspace = flp_gpu_pointer(o->workspace);
    args.workspace_bytes = o->workspace_bytes;
    return flp_weighted_sum_backward_execute(o->plan, &args);
}

static flp_status sum_backward_call(flp_operation *o)
{
    const flp_weighted_sum_backward_args args = sum_backward_args(o);

    return flp_weighted_sum_backward(o->context, &sum_backward_problem, &args);
}

static flp_status sum_backward_prepare(flp_operation *o)
{
    return flp_weighted_sum_backward_prepare(o->context, &sum_backward_problem, o->stream);
}

/* ---- scale: x, which is hidden before each execution. The factor is the first row's lse ---- */

static const flp_scale_problem scale_problem = { .dtype = FLP_BF16, .rows = ROWS, .columns = HIDDEN };

static flp_status scale_create(flp_operation *o)
{
    add_output(o, ROWS * HIDDEN, 2);
    return flp_scale_plan_create(o->context, &scale_problem, &o->plan);
}

/* x is overwritten, so that what is on the stream, or in a graph, begins with a copy. */
static flp_status restore_x(const flp_operation *o)
{
    return flp_gpu_check(gpu, gpu->copy(o->output[0], o->inputs->hidden, o->output_bytes[0], o->stream), "cuMemcpyDtoDAsync");
}

static flp_scale_args scale_args(const flp_operation *o)
{
    return (flp_scale_args){ .rows = o->rows, .x = output(o, 0), .factor = flp_gpu_pointer(o->inputs->lse), .stream = o->stream };
}

static flp_status scale_execute(flp_operation *o)
{
    const flp_scale_args args = scale_args(o);
    const flp_status status = restore_x(o);

    return status == FLP_OK ? flp_scale_execute(o->plan, &args) : status;
}

static flp_status scale_call(flp_operation *o)
{
    const flp_scale_args args = scale_args(o);
    const flp_status status = restore_x(o);

    return status == FLP_OK ? flp_scale(o->context, &scale_problem, &args) : status;
}

static flp_status scale_prepare(flp_operation *o)
{
    return flp_scale_prepare(o->context, &scale_problem, o->stream);
}

const flp_operation_kind flp_operation_kinds[] = {
    { "linear_logp", 1, forward_create, forward_execute, forward_call, forward_prepare },
    { "linear_logp_backward", 1, backward_create, backward_execute, backward_call, backward_prepare },
    { "linear_cross_entropy", 1, loss_create, loss_execute, loss_call, loss_prepare },
    { "logits_logp", 1, logits_create, logits_execute, logits_call, logits_prepare },
    { "logits_logp_backward, fused", 1, fused_create, fused_execute, fused_call, fused_prepare },
    { "weighted_sum", 0, sum_create, sum_execute, sum_call, sum_prepare },
    { "weighted_sum_backward", 0, sum_backward_create, sum_backward_execute, sum_backward_call, sum_backward_prepare },
    { "scale", 0, scale_create, scale_execute, scale_call, scale_prepare },
};

int flp_operation_kind_count(void)
{
    return (int)(sizeof(flp_operation_kinds) / sizeof(flp_operation_kinds[0]));
}

/* ---- one operation ---- */

void flp_operation_open(const flp_operation_kind *kind, const flp_operation_inputs *inputs, CUstream stream, flp_operation *operation)
{
    *operation = (flp_operation){ .kind = kind, .inputs = inputs, .context = flp_device_test.context, .stream = stream, .rows = ROWS };
    assert_succeeds(kind->create(operation));
    operation->workspace_bytes = (size_t)flp_plan_workspace_bytes(operation->plan, ROWS);
    assert_succeeds(flp_gpu_allocate(gpu, operation->workspace_bytes, &operation->workspace));
}

void flp_operation_close(flp_operation *operation)
{
    flp_plan_destroy(operation->plan);
    operation->plan = NULL;
}

void flp_operation_poison(const flp_operation *operation)
{
    for (int i = 0; i < FLP_OPERATION_OUTPUTS && operation->output_bytes[i] > 0; i++)
        assert_succeeds(flp_gpu_set(gpu, operation->output[i], 0xff, operation->output_bytes[i]));
}

unsigned char *flp_operation_fetch(const flp_operation *operation, size_t *bytes)
{
    unsigned char *all;

    assert_succeeds(flp_gpu_synchronize(gpu));
    *bytes = 0;
    for (int i = 0; i < FLP_OPERATION_OUTPUTS; i++)
        *bytes += operation->output_bytes[i];
    all = malloc(*bytes);
    assert_non_null(all);
    *bytes = 0;
    for (int i = 0; i < FLP_OPERATION_OUTPUTS && operation->output_bytes[i] > 0; i++) {
        assert_succeeds(flp_gpu_download(gpu, all + *bytes, operation->output[i], operation->output_bytes[i]));
        *bytes += operation->output_bytes[i];
    }
    return all;
}

void flp_operation_expect(const flp_operation *operation, const unsigned char *wanted, const char *what)
{
    size_t bytes, at = 0;
    unsigned char *got = flp_operation_fetch(operation, &bytes);

    while (at < bytes && got[at] == wanted[at])
        at++;
    free(got);
    if (at < bytes)
        fail_msg("%s, %s: the outputs differ from byte %zu of %zu on", operation->kind->name, what, at, bytes);
}
