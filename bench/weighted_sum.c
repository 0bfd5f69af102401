/* Sets one case of weighted_sum up, checks it and measures it. */
#include "weighted_sum.h"

#include <string.h>

#include "base/status.h"
#include "baselines.h"
#include "core/plan.h"
#include "regimes.h"
#include "weighted_sum_check.h"

/* Launches take turns at copies of x: otherwise the end of x, which the L2 cache still holds from the last launch, would favour the next. The number is odd,
 * so that both operations of a pair come to every copy. */
enum { COPIES = 3, NON_BLOCKING = 1, X_STREAM = 34, W_STREAM = 35, G_STREAM = 36, MOST_BASELINES = 2 };

typedef enum { SUM, GRAD_X, GRAD_W, BOTH } direction;

typedef struct {
    flp_gpu *gpu;
    direction direction;
    flp_weighted_sum_backward_problem problem; /* of a forward case: its member forward */
    int64_t rows, columns, bytes;              /* bytes of x */
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_read_kernel read;
    flp_write_kernel write;
    flp_copy_kernel copy;
    flp_cublas cublas;
    CUdeviceptr x[COPIES], grad_x[COPIES], w, g, y, grad_w;
    unsigned turn;
    flp_context *context;
    flp_plan *plan;
} bench;

#define SHAPE(dtype, sizes) \
    "weighted_sum:" dtype ":" sizes, "weighted_sum_backward:" dtype ":" sizes ":gx_" dtype, "weighted_sum_backward:" dtype ":" sizes ":gw_" dtype

const char *const flp_weighted_sum_cases[] = { SHAPE("f32", "n65536:d4096"),
                                               SHAPE("bf16", "n65536:d4096"),
                                               SHAPE("f32", "n1048576:d512"),
                                               SHAPE("bf16", "n1048576:d512"),
                                               SHAPE("f32", "n4096:d32768"),
                                               SHAPE("bf16", "n4096:d32768"),
                                               NULL };

int flp_weighted_sum_is_case(const char *text)
{
    return strncmp(text, "weighted_sum", strlen("weighted_sum")) == 0;
}

static flp_status check_shape(const bench *b, const char *text)
{
    const flp_weighted_sum_backward_problem *p = &b->problem;
    const flp_dtype dtype = p->forward.dtype;
    const int is_plain = (dtype == FLP_BF16 || dtype == FLP_F32) && !p->forward.w_dtype && !p->forward.y_dtype && !p->forward.x_stride && !p->grad_x_stride &&
                         !p->accumulate && (!p->grad_x || p->grad_x == dtype) && (!p->grad_w || p->grad_w == dtype);

    if (is_plain && p->forward.rows > 0 && b->bytes % 16 == 0)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "case %s: wanted bf16 or f32 throughout, rows, no strides, whole 16 bytes", text);
}

static flp_status parse(const char *text, bench *b)
{
    flp_weighted_sum_problem *forward = &b->problem.forward;
    flp_status status;

    if (strncmp(text, "weighted_sum_backward:", strlen("weighted_sum_backward:")) == 0) {
        status = flp_weighted_sum_backward_problem_parse(text, &b->problem);
        b->direction = !b->problem.grad_w ? GRAD_X : !b->problem.grad_x ? GRAD_W : BOTH;
    } else {
        status = flp_weighted_sum_problem_parse(text, forward);
        b->direction = SUM;
    }
    b->rows = forward->rows;
    b->columns = forward->columns;
    b->bytes = b->rows * b->columns * (forward->dtype == FLP_F32 ? 4 : 2);
    return status == FLP_OK ? check_shape(b, text) : status;
}

static flp_gpu_matrix matrix_of(const bench *b, CUdeviceptr data, int64_t rows, int64_t columns)
{
    return flp_gpu_matrix_rows(data, b->problem.forward.dtype, rows, columns);
}

/* ---- the launches */

static unsigned next_copy(bench *b)
{
    return b->turn++ % COPIES;
}

static flp_status launch_ours(void *data)
{
    bench *b = data;
    const unsigned copy = next_copy(b);
    const flp_weighted_sum_args forward = {
        .rows = b->rows, .x = flp_gpu_pointer(b->x[copy]), .w = flp_gpu_pointer(b->w), .y = flp_gpu_pointer(b->y), .stream = b->stream
    };
    const flp_weighted_sum_backward_args backward = { .rows = b->rows,
                                                      .g = flp_gpu_pointer(b->g),
                                                      .x = flp_gpu_pointer(b->x[copy]),
                                                      .w = flp_gpu_pointer(b->w),
                                                      .grad_x = b->problem.grad_x ? flp_gpu_pointer(b->grad_x[copy]) : NULL,
                                                      .grad_w = b->problem.grad_w ? flp_gpu_pointer(b->grad_w) : NULL,
                                                      .stream = b->stream };

    return b->direction == SUM ? flp_weighted_sum_execute(b->plan, &forward) : flp_weighted_sum_backward_execute(b->plan, &backward);
}

static flp_status launch_read(void *data)
{
    bench *b = data;

    return flp_read_kernel_launch(b->gpu, &b->read, b->x[next_copy(b)], b->bytes, b->stream);
}

static flp_status launch_write(void *data)
{
    bench *b = data;

    return flp_write_kernel_launch(b->gpu, &b->write, b->grad_x[next_copy(b)], b->bytes, b->stream);
}

static flp_status launch_copy(void *data)
{
    bench *b = data;
    const unsigned copy = next_copy(b);

    return flp_copy_kernel_launch(b->gpu, &b->copy, b->x[copy], b->grad_x[copy], b->bytes, b->stream);
}

static flp_status launch_gemv(void *data)
{
    bench *b = data;
    const int is_sum = b->direction == SUM;

    return flp_cublas_gemv(&b->cublas, b->problem.forward.dtype, is_sum, flp_gpu_pointer(b->x[next_copy(b)]), flp_gpu_pointer(is_sum ? b->w : b->g),
                           flp_gpu_pointer(is_sum ? b->y : b->grad_w), b->rows, b->columns);
}

static flp_status launch_outer(void *data)
{
    bench *b = data;

    return flp_cublas_outer(&b->cublas, b->problem.forward.dtype, flp_gpu_pointer(b->g), flp_gpu_pointer(b->w), flp_gpu_pointer(b->grad_x[next_copy(b)]),
                            b->rows, b->columns);
}

/* The baselines of each direction. The first is the ceiling: an operation cannot be faster. */
static const struct {
    const char *name;
    flp_status (*launch)(void *data);
} baselines[][MOST_BASELINES] = {
    [SUM] = { { "read of x", launch_read }, { "cuBLAS gemv", launch_gemv } },
    [GRAD_X] = { { "write of grad_x", launch_write }, { "cuBLAS product of depth 1", launch_outer } },
    [GRAD_W] = { { "read of x", launch_read }, { "cuBLAS gemv", launch_gemv } },
    [BOTH] = { { "copy of x", launch_copy } },
};

/* ---- the inputs: normal(0, 1) each, from streams of their own */

static flp_status make_vector(bench *b, int64_t count, unsigned stream, CUdeviceptr *vector)
{
    const flp_status status = flp_gpu_allocate(b->gpu, (size_t)count * sizeof(float), vector);
    const flp_gpu_matrix matrix = matrix_of(b, *vector, 1, count);

    return status == FLP_OK ? flp_gpu_kernels_fill(b->gpu, &b->kernels, &matrix, stream, 1) : status;
}

static flp_status make_x(bench *b)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < COPIES && status == FLP_OK; i++) {
        status = flp_gpu_allocate(b->gpu, (size_t)b->bytes, &b->x[i]);
        if (status == FLP_OK && i == 0) {
            const flp_gpu_matrix matrix = matrix_of(b, b->x[0], b->rows, b->columns);
            status = flp_gpu_kernels_fill(b->gpu, &b->kernels, &matrix, X_STREAM, 1);
        } else if (status == FLP_OK) {
            status = flp_copy_kernel_launch(b->gpu, &b->copy, b->x[0], b->x[i], b->bytes, b->stream);
        }
    }
    return status;
}

static flp_status make_inputs(bench *b)
{
    flp_status status = b->direction == GRAD_X ? FLP_OK : make_x(b);

    for (int i = 0; i < COPIES && status == FLP_OK && b->problem.grad_x; i++)
        status = flp_gpu_allocate(b->gpu, (size_t)b->bytes, &b->grad_x[i]);
    if (status == FLP_OK)
        status = make_vector(b, b->columns, W_STREAM, &b->w);
    if (status == FLP_OK)
        status = make_vector(b, b->rows, G_STREAM, &b->g);
    if (status == FLP_OK)
        status = flp_gpu_allocate(b->gpu, (size_t)b->rows * sizeof(float), &b->y);
    if (status == FLP_OK)
        status = flp_gpu_allocate(b->gpu, (size_t)b->columns * sizeof(float), &b->grad_w);
    return status;
}

static flp_status load_baselines(bench *b)
{
    flp_status status = flp_gpu_kernels_load(b->gpu, &b->kernels);

    if (status == FLP_OK)
        status = flp_read_kernel_load(b->gpu, &b->read);
    if (status == FLP_OK)
        status = flp_write_kernel_load(b->gpu, &b->write);
    if (status == FLP_OK)
        status = flp_copy_kernel_load(b->gpu, &b->copy);
    return status == FLP_OK ? flp_cublas_open(b->stream, &b->cublas) : status;
}

static flp_status make_plan(bench *b, flp_backend backend)
{
    flp_status status = flp_context_create(NULL, &b->context);

    b->problem.forward.backend = backend;
    if (status == FLP_OK)
        status = b->direction == SUM ? flp_weighted_sum_plan_create(b->context, &b->problem.forward, &b->plan)
                                     : flp_weighted_sum_backward_plan_create(b->context, &b->problem, &b->plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(b->plan));
    return status;
}

/* ---- the check of whatever wrote the results last */

static flp_status check(bench *b, double *error)
{
    const flp_gpu_matrix w = matrix_of(b, b->w, 1, b->columns), g = matrix_of(b, b->g, 1, b->rows);
    double of_grad_x = 0;
    flp_status status = flp_gpu_synchronize(b->gpu);

    *error = 0;
    if (status == FLP_OK && b->direction == SUM) {
        const flp_gpu_matrix x = matrix_of(b, b->x[0], b->rows, b->columns);
        return flp_weighted_sum_check_sums(b->gpu, &b->kernels, &x, &w, b->y, error);
    }
    if (status == FLP_OK && b->problem.grad_w) {
        const flp_gpu_matrix turned = flp_gpu_matrix_turned(b->x[0], b->problem.forward.dtype, b->columns, b->rows);
        status = flp_weighted_sum_check_sums(b->gpu, &b->kernels, &turned, &g, b->grad_w, error);
    }
    for (int i = 0; i < COPIES && status == FLP_OK && b->problem.grad_x; i++) {
        const flp_gpu_matrix grad_x = matrix_of(b, b->grad_x[i], b->rows, b->columns);
        status = flp_weighted_sum_check_outer(b->gpu, &g, &w, &grad_x, &of_grad_x);
        *error = of_grad_x > *error ? of_grad_x : *error;
    }
    return status;
}

/* Launches once for each copy, so that all of what a ceiling left in them is overwritten. */
static flp_status run_and_check(bench *b, flp_status (*launch)(void *data), double *error)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < COPIES && status == FLP_OK; i++)
        status = launch(b);
    return status == FLP_OK ? check(b, error) : status;
}

/* ---- the results */

/* The kernel of a plan that is launched first; with both gradients, that of grad_x. */
static const char *first_kernel(const flp_plan *plan)
{
    const flp_kernel *sum = plan->kernels[FLP_ROLE_SUM], *outer = plan->kernels[FLP_ROLE_OUTER];

    return (sum ? sum : outer ? outer : plan->kernels[FLP_ROLE_TILE])->manifest.variant;
}

static json_t *pack(const bench *b, const char *text, const char *baseline, double error, json_t *regimes)
{
    const flp_plan *plan = b->plan;

    /* x, or grad_x, or both, once: what the other arrays add is not counted. */
    const double work = (double)b->bytes * (b->direction == BOTH ? 2e-12 : 1e-12);

    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:s, s:i, s:s, s:f, s:O}", "problem", text, "path", flp_backend_name(flp_plan_backend(plan)),
                     "kernel", first_kernel(plan), "numerics", flp_plan_numerics(plan), "workspace_bytes", (json_int_t)flp_plan_workspace_bytes(plan, b->rows),
                     "rows_checked", FLP_WEIGHTED_SUM_CHECKED, "relative_error", error, "baseline", baseline, "cublas_version", b->cublas.version, "unit",
                     "TB/s", "work", work, "regimes", regimes);
}

/* The ceilings compute nothing that could be checked. */
static int computes(flp_status (*launch)(void *data))
{
    return launch == launch_gemv || launch == launch_outer;
}

static flp_status run_baseline(bench *b, const char *text, int index, const flp_forward_options *options, json_t *results)
{
    const flp_measured ours = { launch_ours, b }, baseline = { baselines[b->direction][index].launch, b };
    json_t *regimes = json_object();
    double error = 0, of_baseline;
    flp_status status = regimes ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    if (status == FLP_OK && computes(baseline.launch))
        status = run_and_check(b, baseline.launch, &of_baseline);
    if (status == FLP_OK)
        status = run_and_check(b, launch_ours, &error);
    if (status == FLP_OK)
        status = flp_regimes_measure(b->gpu, b->stream, options->regimes, &options->measure, &ours, &baseline, regimes);
    if (status == FLP_OK && json_array_append_new(results, pack(b, text, baselines[b->direction][index].name, error, regimes)) != 0)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    return status;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t *results)
{
    flp_status status = flp_gpu_check(b->gpu, b->gpu->driver->stream_create(&b->stream, NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = load_baselines(b);
    if (status == FLP_OK)
        status = make_inputs(b);
    if (status == FLP_OK)
        status = make_plan(b, options->backend);
    for (int i = 0; i < MOST_BASELINES && baselines[b->direction][i].name && status == FLP_OK; i++)
        status = run_baseline(b, text, i, options, results);
    return status;
}

flp_status flp_weighted_sum_check_case(const char *text)
{
    bench b = { 0 };

    return parse(text, &b);
}

flp_status flp_weighted_sum_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **results)
{
    bench b = { .gpu = gpu };
    flp_status status = parse(text, &b);

    *results = json_array();
    if (status == FLP_OK)
        status = *results ? run(&b, text, options, *results) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    flp_plan_destroy(b.plan);
    flp_context_destroy(b.context);
    flp_cublas_close(&b.cublas);
    flp_read_kernel_unload(gpu, &b.read);
    flp_write_kernel_unload(gpu, &b.write);
    flp_copy_kernel_unload(gpu, &b.copy);
    flp_gpu_kernels_unload(gpu, &b.kernels);
    flp_gpu_free_all(gpu);
    if (b.stream)
        gpu->driver->stream_destroy(b.stream);
    if (status != FLP_OK) {
        json_decref(*results);
        *results = NULL;
    }
    return status;
}
