/* Sets one case of scale up, checks it and measures it. */
#include "scale.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "baselines.h"
#include "core/plan.h"
#include "regimes.h"
#include "scale_check.h"

/* Launches take turns at copies of x, and the baseline at what it writes: otherwise the end of x, which the L2 cache still holds from the last launch, would
 * favour the next. The number is odd, so that both operations of a pair come to every copy. */
enum { COPIES = 3, NON_BLOCKING = 1, X_STREAM = 37, WORD = 16 };

/* The factors of a case without FLP_SCALE_ONE. The one that is timed is -1, by which x may be multiplied any number of times without drifting to 0 or
 * infinity. Its products need no rounding, so the check has a factor whose products do. */
static const float timed_factor = -1, checked_factor = 1.0F / 3;

typedef struct {
    flp_gpu *gpu;
    flp_scale_problem problem;
    int is_one;    /* 1: the factor is 1 */
    int64_t bytes; /* of x */
    CUstream stream;
    flp_gpu_kernels kernels;
    flp_copy_kernel copy;
    CUdeviceptr memory[COPIES], x[COPIES]; /* x begins in memory, at an address that is aligned to no more than the problem says */
    CUdeviceptr copied[COPIES], factor;
    unsigned turn;
    void *checked_rows; /* of each copy of x, before it is scaled */
    flp_context *context;
    flp_plan *plan;
} bench;

const char *const flp_scale_cases[] = { "scale:bf16:n128256:d4096", "scale:bf16:n128256:d4096" FLP_SCALE_ONE, "scale:bf16:n4096:d4096",
                                        "scale:f32:n128256:d2048",  "scale:bf16:n128256:d4096:align2",        NULL };

int flp_scale_is_case(const char *text)
{
    return strncmp(text, "scale:", strlen("scale:")) == 0;
}

/* Cuts FLP_SCALE_ONE off the end of text and returns 1, if it is there. */
static int cut_one(char *text)
{
    const size_t length = strlen(text), word = strlen(FLP_SCALE_ONE);

    if (length < word || strcmp(text + length - word, FLP_SCALE_ONE) != 0)
        return 0;
    text[length - word] = 0;
    return 1;
}

static flp_status parse(const char *text, bench *b)
{
    flp_scale_problem *p = &b->problem;
    char *problem = flp_text_duplicate(text);
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a case");
    b->is_one = cut_one(problem);
    status = flp_scale_problem_parse(problem, p);
    free(problem);
    if (status != FLP_OK)
        return status;
    b->bytes = p->rows * p->columns * flp_dtype_bytes(p->dtype);
    if (p->rows > 0 && !p->x_stride && b->bytes % WORD == 0)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "case %s: wanted rows, no strides, whole 16 bytes", text);
}

/* ---- the launches */

static unsigned next_copy(bench *b)
{
    return b->turn++ % COPIES;
}

static flp_status launch_ours(void *data)
{
    bench *b = data;
    const flp_scale_args args = {
        .rows = b->problem.rows, .x = flp_gpu_pointer(b->x[next_copy(b)]), .factor = flp_gpu_pointer(b->factor), .stream = b->stream
    };

    return flp_scale_execute(b->plan, &args);
}

/* Reads and writes as many bytes as a factor other than 1 does. Its addresses are aligned, whatever x's are. */
static flp_status launch_copy(void *data)
{
    bench *b = data;
    const unsigned copy = next_copy(b);

    return flp_copy_kernel_launch(b->gpu, &b->copy, b->memory[copy], b->copied[copy], b->bytes, b->stream);
}

/* ---- the inputs: every copy of x has the same numbers, normal(0, 1) */

static flp_gpu_matrix copy_of_x(const bench *b, int copy)
{
    return flp_gpu_matrix_rows(b->x[copy], b->problem.dtype, b->problem.rows, b->problem.columns);
}

static flp_status make_copy(bench *b, int copy)
{
    flp_status status = flp_gpu_allocate(b->gpu, (size_t)b->bytes + WORD, &b->memory[copy]);
    flp_gpu_matrix matrix;

    if (status == FLP_OK)
        status = flp_gpu_allocate(b->gpu, (size_t)b->bytes, &b->copied[copy]);
    b->x[copy] = b->memory[copy] + (uint64_t)(b->problem.pointer_alignment % WORD);
    matrix = copy_of_x(b, copy);
    return status == FLP_OK ? flp_gpu_kernels_fill(b->gpu, &b->kernels, &matrix, X_STREAM, 1) : status;
}

static flp_status set_factor(const bench *b, float factor)
{
    return flp_gpu_upload(b->gpu, b->factor, &factor, sizeof(factor));
}

static flp_status make_inputs(bench *b)
{
    flp_status status = flp_gpu_allocate(b->gpu, sizeof(float), &b->factor);
    flp_gpu_matrix first;

    for (int i = 0; i < COPIES && status == FLP_OK; i++)
        status = make_copy(b, i);
    if (status == FLP_OK)
        status = flp_gpu_synchronize(b->gpu);
    first = copy_of_x(b, 0);
    return status == FLP_OK ? flp_scale_check_fetch(b->gpu, &first, &b->checked_rows) : status;
}

static flp_status make_plan(bench *b, flp_backend backend)
{
    flp_status status = flp_context_create(NULL, &b->context);

    b->problem.backend = backend;
    if (status == FLP_OK)
        status = flp_scale_plan_create(b->context, &b->problem, &b->plan);
    if (status == FLP_OK && !flp_plan_on_gpu(b->plan))
        status = flp_status_fail(FLP_NO_VARIANT, "the plan runs on the CPU: %s", flp_plan_reason(b->plan));
    return status;
}

/* Scales each copy of x once and checks it. *error: the largest of the copies. */
static flp_status run_and_check(bench *b, double *error)
{
    const float factor = b->is_one ? 1 : checked_factor;
    double of_copy = 0;
    flp_status status = set_factor(b, factor);

    *error = 0;
    for (int i = 0; i < COPIES && status == FLP_OK; i++)
        status = launch_ours(b);
    if (status == FLP_OK)
        status = flp_gpu_synchronize(b->gpu);
    for (int i = 0; i < COPIES && status == FLP_OK; i++) {
        const flp_gpu_matrix x = copy_of_x(b, i);
        status = flp_scale_check(b->gpu, &x, b->checked_rows, factor, &of_copy);
        *error = of_copy > *error ? of_copy : *error;
    }
    return status;
}

/* ---- the results */

/* work: x, read once and written once. With a factor of 1 our rate is no memory's, because neither is done; the ratio says what that saves. */
static json_t *pack(const bench *b, const char *text, double error, json_t *regimes)
{
    const flp_plan *plan = b->plan;

    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:f, s:i, s:f, s:s, s:s, s:f, s:O}", "problem", text, "path", flp_backend_name(flp_plan_backend(plan)),
                     "kernel", plan->kernels[FLP_ROLE_SCALE]->manifest.variant, "numerics", flp_plan_numerics(plan), "workspace_bytes",
                     (json_int_t)flp_plan_workspace_bytes(plan, b->problem.rows), "factor", b->is_one ? 1.0 : (double)timed_factor, "rows_checked",
                     FLP_SCALE_CHECKED, "relative_error", error, "baseline", "copy of x", "unit", "TB/s", "work", (double)b->bytes * 2e-12, "regimes", regimes);
}

static flp_status measure(bench *b, const char *text, const flp_forward_options *options, double error, json_t **result)
{
    const flp_measured ours = { launch_ours, b }, baseline = { launch_copy, b };
    json_t *regimes = json_object();
    flp_status status = regimes ? set_factor(b, b->is_one ? 1 : timed_factor) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");

    if (status == FLP_OK)
        status = flp_regimes_measure(b->gpu, b->stream, options->regimes, &options->measure, &ours, &baseline, regimes);
    if (status == FLP_OK && !(*result = pack(b, text, error, regimes)))
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    json_decref(regimes);
    return status;
}

static flp_status run(bench *b, const char *text, const flp_forward_options *options, json_t **result)
{
    double error = 0;
    flp_status status = flp_gpu_check(b->gpu, b->gpu->driver->stream_create(&b->stream, NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = flp_gpu_kernels_load(b->gpu, &b->kernels);
    if (status == FLP_OK)
        status = flp_copy_kernel_load(b->gpu, &b->copy);
    if (status == FLP_OK)
        status = make_inputs(b);
    if (status == FLP_OK)
        status = make_plan(b, options->backend);
    if (status == FLP_OK)
        status = run_and_check(b, &error);
    return status == FLP_OK ? measure(b, text, options, error, result) : status;
}

flp_status flp_scale_check_case(const char *text)
{
    bench b = { 0 };

    return parse(text, &b);
}

flp_status flp_scale_run(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result)
{
    bench b = { .gpu = gpu };
    flp_status status = parse(text, &b);

    *result = NULL;
    if (status == FLP_OK)
        status = run(&b, text, options, result);
    flp_plan_destroy(b.plan);
    flp_context_destroy(b.context);
    flp_copy_kernel_unload(gpu, &b.copy);
    flp_gpu_kernels_unload(gpu, &b.kernels);
    flp_gpu_free_all(gpu);
    if (b.stream)
        gpu->driver->stream_destroy(b.stream);
    free(b.checked_rows);
    return status;
}
