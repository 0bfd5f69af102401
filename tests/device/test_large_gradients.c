/* Gradients whose matrices exceed 2^31 elements and 2^32 bytes, and logits of more than 2^31 elements. Some rows are compared with fp64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backward_check.h"
#include "base/dtype.h"
#include "cases.h"
#include "device/device_test.h"
#include "reference.h"

enum { HIDDEN_STREAM = 51, WEIGHT_STREAM, G_STREAM, LOGITS_STREAM, LOGITS_ROWS = 20000, LOGITS_VOCAB = 131072, LOGITS_CHECKED = 12 };

static flp_gpu *const gpu = &flp_device_test.gpu;

/* ---- gradients of the linear operators ---- */

enum { LEAST_BUDGET = 1 };
typedef enum { BACKWARD_ALONE, WITH_FORWARD, CROSS_ENTROPY } operation;

typedef struct {
    const char *name;
    operation operation;
    flp_dtype dtype;
    int64_t rows, hidden, vocab;
    flp_backend backend;
    flp_dtype grad_weight;
    unsigned accumulate;
    int64_t memory_budget; /* LEAST_BUDGET: the least one, which the message names that refuses one byte */
} shape;

/* V x D is 2.46e9 elements, except where D is 1024 (there N x V, the saved exponentials, are that many) and for the least workspaces. */
static const shape shapes[] = {
    { "backward, V x D past 2^31", BACKWARD_ALONE, FLP_BF16, 300, 4096, 600000, FLP_BACKEND_AUTO, FLP_BF16, 0, 0 },
    { "backward, portable, V x D past 2^31", BACKWARD_ALONE, FLP_BF16, 300, 4096, 600000, FLP_BACKEND_PORTABLE, FLP_BF16, 0, 0 },
    { "backward with its forward, N x V saved exponentials past 2^31", WITH_FORWARD, FLP_BF16, 4096, 1024, 600000, FLP_BACKEND_AUTO, FLP_BF16, 0,
      INT64_C(6) << 30 },
    { "the same, portable", WITH_FORWARD, FLP_BF16, 4096, 1024, 600000, FLP_BACKEND_PORTABLE, FLP_BF16, 0, INT64_C(6) << 30 },
    { "cross-entropy, V x D past 2^31", CROSS_ENTROPY, FLP_BF16, 700, 4096, 600000, FLP_BACKEND_AUTO, FLP_BF16, 0, 0 },
    { "cross-entropy added to fp32, in chunks of rows", CROSS_ENTROPY, FLP_BF16, 1200, 4096, 600000, FLP_BACKEND_AUTO, FLP_F32, FLP_ACCUMULATE_WEIGHT,
      INT64_C(900) << 20 },
    { "cross-entropy of fp16 in the least workspace", CROSS_ENTROPY, FLP_F16, 8192, 4096, 131072, FLP_BACKEND_AUTO, FLP_F16, 0, LEAST_BUDGET },
    { "the same of bf16, portable", CROSS_ENTROPY, FLP_BF16, 8192, 4096, 131072, FLP_BACKEND_PORTABLE, FLP_BF16, 0, LEAST_BUDGET },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* A shape's inputs and outputs. */
typedef struct {
    const shape *of;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr target, g, logp, lse, loss, workspace;
    int64_t *targets;
    float *g_host, *lse_host;
    flp_backward_answer answer;
} setting;

static flp_gpu_matrix make_matrix(int64_t rows, int64_t columns, flp_dtype dtype, unsigned stream, double deviation)
{
    CUdeviceptr data;
    flp_gpu_matrix matrix;

    assert_succeeds(flp_gpu_allocate(gpu, (size_t)(rows * columns) * (size_t)flp_dtype_bytes(dtype), &data));
    matrix = flp_gpu_matrix_rows(data, dtype, rows, columns);
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &matrix, stream, deviation));
    return matrix;
}

/* Targets are at both ends of the vocabulary and at the entry with element number 2^31 of the weight. The cross-entropy is a sum, so its g is -1. */
static void make_rows(setting *s)
{
    const int64_t rows = s->of->rows, vocab = s->of->vocab, past = (INT64_C(1) << 31) / s->of->hidden % vocab;
    const int64_t middle = past > 0 ? past : vocab / 2, ends[] = { vocab - 1, 0, middle, middle - 1 };

    s->targets = malloc((size_t)rows * sizeof(*s->targets));
    s->g_host = malloc((size_t)rows * sizeof(*s->g_host));
    s->lse_host = malloc((size_t)rows * sizeof(*s->lse_host));
    assert_true(s->targets && s->g_host && s->lse_host);
    for (int64_t i = 0; i < rows; i++) {
        s->targets[i] = i < 4 ? ends[i] : (i * 7919 + 13) % vocab;
        s->g_host[i] = s->of->operation == CROSS_ENTROPY ? -1 : (float)flp_case_random_normal(G_STREAM, (uint64_t)i);
    }
    assert_succeeds(flp_gpu_copy_in(gpu, s->targets, (size_t)rows * sizeof(*s->targets), &s->target));
    assert_succeeds(flp_gpu_copy_in(gpu, s->g_host, (size_t)rows * sizeof(float), &s->g));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)rows * sizeof(float), &s->logp));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)rows * sizeof(float), &s->lse));
    assert_succeeds(flp_gpu_allocate(gpu, sizeof(float), &s->loss));
}

/* Poisons the gradients; one that is accumulated begins with 0. */
static void make_outputs(setting *s)
{
    const shape *of = s->of;
    const size_t hidden_bytes = (size_t)(of->rows * of->hidden) * 2;
    const size_t weight_bytes = (size_t)(of->vocab * of->hidden) * (size_t)flp_dtype_bytes(of->grad_weight);

    s->answer = (flp_backward_answer){ .gpu = gpu,
                                       .kernels = &flp_device_test.kernels,
                                       .hidden = s->hidden,
                                       .weight = s->weight,
                                       .hidden_dtype = of->dtype,
                                       .weight_dtype = of->grad_weight,
                                       .targets = s->targets,
                                       .g = s->g_host,
                                       .lse = s->lse_host };
    assert_succeeds(flp_gpu_allocate(gpu, hidden_bytes, &s->answer.grad_hidden));
    assert_succeeds(flp_gpu_allocate(gpu, weight_bytes, &s->answer.grad_weight));
    assert_succeeds(flp_gpu_set(gpu, s->answer.grad_hidden, 0xff, hidden_bytes));
    assert_succeeds(flp_gpu_set(gpu, s->answer.grad_weight, of->accumulate ? 0 : 0xff, weight_bytes));
}

static void set_up(const shape *of, setting *s)
{
    flp_device_test_need_kernels();
    *s = (setting){ .of = of };
    s->hidden = make_matrix(of->rows, of->hidden, of->dtype, HIDDEN_STREAM, 1);
    s->weight = make_matrix(of->vocab, of->hidden, of->dtype, WEIGHT_STREAM, 2 / sqrt((double)of->hidden));
    make_rows(s);
    make_outputs(s);
}

static flp_linear_logp_backward_problem problem_of(const shape *of)
{
    return (flp_linear_logp_backward_problem){
        .forward = { .dtype = of->dtype, .rows = of->rows, .hidden = of->hidden, .vocab = of->vocab, .backend = of->backend },
        .grad_hidden = of->dtype,
        .grad_weight = of->grad_weight,
        .accumulate = of->accumulate,
        .memory_budget = of->memory_budget,
        .with_forward = of->operation == WITH_FORWARD,
    };
}

/* Makes a workspace of exactly the bytes that the plan says. */
static size_t make_workspace(setting *s, const flp_plan *plan, int64_t budget)
{
    const int64_t bytes = flp_plan_workspace_bytes(plan, s->of->rows);

    assert_true(bytes > 0 && (budget == 0 || bytes <= budget));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)bytes, &s->workspace));
    assert_succeeds(flp_gpu_set(gpu, s->workspace, 0xff, (size_t)bytes));
    return (size_t)bytes;
}

static flp_linear_logp_args forward_args(const setting *s)
{
    return (flp_linear_logp_args){ .rows = s->of->rows,
                                   .hidden = flp_gpu_pointer(s->hidden.data),
                                   .weight = flp_gpu_pointer(s->weight.data),
                                   .target = flp_gpu_pointer(s->target),
                                   .logp = flp_gpu_pointer(s->logp),
                                   .lse = flp_gpu_pointer(s->lse) };
}

/* Runs the forward, by itself or by the plan, and then the backward. */
static void run_backward(setting *s)
{
    const flp_linear_logp_backward_problem problem = problem_of(s->of);
    flp_linear_logp_args forward = forward_args(s);
    flp_linear_logp_backward_args args = {
        .rows = s->of->rows,
        .hidden = forward.hidden,
        .weight = forward.weight,
        .target = forward.target,
        .lse = forward.lse,
        .g_logp = flp_gpu_pointer(s->g),
        .grad_hidden = flp_gpu_pointer(s->answer.grad_hidden),
        .grad_weight = flp_gpu_pointer(s->answer.grad_weight),
    };
    flp_plan *plan;

    assert_succeeds(flp_linear_logp_backward_plan_create(flp_device_test.context, &problem, &plan));
    args.workspace_bytes = forward.workspace_bytes = make_workspace(s, plan, problem.memory_budget);
    args.workspace = forward.workspace = flp_gpu_pointer(s->workspace);
    if (problem.with_forward) {
        assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    } else {
        forward.workspace = NULL;
        assert_succeeds(flp_linear_logp(flp_device_test.context, &problem.forward, &forward));
    }
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    flp_plan_destroy(plan);
}

/* The least budget, which the message names that refuses one byte. */
static int64_t least_budget(const flp_linear_cross_entropy_problem *problem)
{
    const char *named;
    flp_plan *plan;

    assert_int_equal(flp_linear_cross_entropy_plan_create(flp_device_test.context, problem, &plan), FLP_BAD_ARGUMENT);
    named = strstr(flp_error_message(), "at least ");
    assert_non_null(named);
    return strtoll(named + strlen("at least "), NULL, 10);
}

static void run_cross_entropy(setting *s)
{
    flp_linear_cross_entropy_problem problem = { .backward = problem_of(s->of), .reduction = FLP_REDUCE_SUM };
    flp_linear_cross_entropy_args args = {
        .rows = s->of->rows,
        .hidden = flp_gpu_pointer(s->hidden.data),
        .weight = flp_gpu_pointer(s->weight.data),
        .target = flp_gpu_pointer(s->target),
        .loss = flp_gpu_pointer(s->loss),
        .logp = flp_gpu_pointer(s->logp),
        .lse = flp_gpu_pointer(s->lse),
        .grad_hidden = flp_gpu_pointer(s->answer.grad_hidden),
        .grad_weight = flp_gpu_pointer(s->answer.grad_weight),
    };
    flp_plan *plan;

    if (s->of->memory_budget == LEAST_BUDGET)
        problem.backward.memory_budget = least_budget(&problem);
    assert_succeeds(flp_linear_cross_entropy_plan_create(flp_device_test.context, &problem, &plan));
    args.workspace_bytes = make_workspace(s, plan, problem.backward.memory_budget);
    args.workspace = flp_gpu_pointer(s->workspace);
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    flp_plan_destroy(plan);
}

/* The check is for the gradient of sum g logp; the loss's gradient is that with g = -1. */
static void large_gradients_are_right(void **state)
{
    flp_backward_errors errors;
    setting s;

    if (flp_device_test.quick)
        skip();
    set_up(*state, &s);
    if (s.of->operation == CROSS_ENTROPY)
        run_cross_entropy(&s);
    else
        run_backward(&s);
    assert_succeeds(flp_gpu_download(gpu, s.lse_host, s.lse, (size_t)s.of->rows * sizeof(float)));
    assert_succeeds(flp_backward_check(&s.answer, &errors));
    free(s.targets);
    free(s.g_host);
    free(s.lse_host);
}

/* ---- logits ---- */

typedef struct {
    flp_gpu_matrix logits;
    CUdeviceptr target, g, logp, lse, gradients;
    int64_t targets[LOGITS_ROWS];
    float g_host[LOGITS_ROWS];
} logits_setting;

static void set_up_logits(logits_setting *s)
{
    flp_device_test_need_kernels();
    s->logits = make_matrix(LOGITS_ROWS, LOGITS_VOCAB, FLP_BF16, LOGITS_STREAM, 2);
    for (int64_t i = 0; i < LOGITS_ROWS; i++) {
        s->targets[i] = i % 3 == 0 ? LOGITS_VOCAB - 1 : (i * 7919 + 13) % LOGITS_VOCAB;
        s->g_host[i] = (float)flp_case_random_normal(G_STREAM, (uint64_t)i);
    }
    assert_succeeds(flp_gpu_copy_in(gpu, s->targets, sizeof(s->targets), &s->target));
    assert_succeeds(flp_gpu_copy_in(gpu, s->g_host, sizeof(s->g_host), &s->g));
    assert_succeeds(flp_gpu_allocate(gpu, LOGITS_ROWS * sizeof(float), &s->logp));
    assert_succeeds(flp_gpu_allocate(gpu, LOGITS_ROWS * sizeof(float), &s->lse));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)LOGITS_ROWS * LOGITS_VOCAB * 2, &s->gradients));
}

/* Copies one row of a matrix [N, V] on the device to values. */
static void fetch_row(CUdeviceptr matrix, int64_t row, double *values)
{
    static uint16_t words[LOGITS_VOCAB];

    assert_succeeds(flp_gpu_download(gpu, words, matrix + (uint64_t)row * sizeof(words), sizeof(words)));
    for (int64_t v = 0; v < LOGITS_VOCAB; v++)
        values[v] = flp_reference_decode(FLP_BF16, words, v);
}

/* Allowed: for lse 2^-20 of it, far more than its error in fp32; for a derivative its rounding to bf16, and the error of lse in p. */
static void check_logits_row(const logits_setting *s, int64_t row, int with_gradients)
{
    static double logits[LOGITS_VOCAB], gradients[LOGITS_VOCAB];
    double sum = 0, lse;
    float got[2];

    fetch_row(s->logits.data, row, logits);
    for (int64_t v = 0; v < LOGITS_VOCAB; v++)
        sum += exp(logits[v]);
    lse = log(sum);
    assert_succeeds(flp_gpu_download(gpu, &got[0], s->logp + (uint64_t)row * sizeof(float), sizeof(float)));
    assert_succeeds(flp_gpu_download(gpu, &got[1], s->lse + (uint64_t)row * sizeof(float), sizeof(float)));
    if (!(fabs(got[1] - lse) <= 0x1p-20 * lse) || !(fabs(got[0] - (logits[s->targets[row]] - lse)) <= 0x1p-20 * 2 * lse))
        fail_msg("row %lld: logp %.9g, lse %.9g; wanted %.9g, %.9g", (long long)row, got[0], got[1], logits[s->targets[row]] - lse, lse);
    if (!with_gradients)
        return;
    fetch_row(s->gradients, row, gradients);
    for (int64_t v = 0; v < LOGITS_VOCAB; v++) {
        const double want = s->g_host[row] * ((v == s->targets[row]) - exp(logits[v] - lse));
        if (!(fabs(gradients[v] - want) <= fabs(want) * (0x1p-8 + 0x1p-14) + 0x1p-120))
            fail_msg("row %lld, column %lld: gradient %.9g, wanted %.9g", (long long)row, (long long)v, gradients[v], want);
    }
}

static void check_logits(const logits_setting *s, int with_gradients)
{
    for (int i = 0; i < LOGITS_CHECKED; i++)
        check_logits_row(s, (int64_t)i * (LOGITS_ROWS - 1) / (LOGITS_CHECKED - 1), with_gradients);
}

static void logits_past_two_to_the_31_are_read_right(void **state)
{
    static logits_setting s;
    const flp_logits_logp_problem problem = { .dtype = FLP_BF16, .rows = LOGITS_ROWS, .vocab = LOGITS_VOCAB };
    flp_logits_logp_args args;

    (void)state;
    if (flp_device_test.quick)
        skip();
    set_up_logits(&s);
    args = (flp_logits_logp_args){ .rows = LOGITS_ROWS,
                                   .logits = flp_gpu_pointer(s.logits.data),
                                   .target = flp_gpu_pointer(s.target),
                                   .logp = flp_gpu_pointer(s.logp),
                                   .lse = flp_gpu_pointer(s.lse) };
    assert_succeeds(flp_logits_logp(flp_device_test.context, &problem, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    check_logits(&s, 0);
}

static void run_logits_backward(logits_setting *s, int fused)
{
    const flp_logits_logp_problem forward = { .dtype = FLP_BF16, .rows = LOGITS_ROWS, .vocab = LOGITS_VOCAB };
    const flp_logits_logp_backward_problem problem = { .dtype = FLP_BF16, .rows = LOGITS_ROWS, .vocab = LOGITS_VOCAB, .fused = fused };
    const flp_logits_logp_args forward_args = {
        .rows = LOGITS_ROWS,
        .logits = flp_gpu_pointer(s->logits.data),
        .target = flp_gpu_pointer(s->target),
        .logp = flp_gpu_pointer(s->logp),
        .lse = flp_gpu_pointer(s->lse),
    };
    const flp_logits_logp_backward_args args = {
        .rows = LOGITS_ROWS,
        .logits = forward_args.logits,
        .target = forward_args.target,
        .g_logp = flp_gpu_pointer(s->g),
        .lse = forward_args.lse,
        .logp = fused ? forward_args.logp : NULL,
        .grad_logits = flp_gpu_pointer(s->gradients),
    };

    assert_succeeds(flp_gpu_set(gpu, s->gradients, 0xff, (size_t)LOGITS_ROWS * LOGITS_VOCAB * 2));
    if (!fused)
        assert_succeeds(flp_logits_logp(flp_device_test.context, &forward, &forward_args));
    assert_succeeds(flp_logits_logp_backward(flp_device_test.context, &problem, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
}

static void gradients_of_logits_past_two_to_the_31_are_right(void **state)
{
    static logits_setting s;

    (void)state;
    if (flp_device_test.quick)
        skip();
    set_up_logits(&s);
    run_logits_backward(&s, 0);
    check_logits(&s, 1);
    run_logits_backward(&s, 1);
    check_logits(&s, 1);
}

/* ---- main ---- */

static struct CMUnitTest test_at(int index)
{
    if (index == SHAPES)
        return flp_device_test_case("logits, N x V past 2^31", logits_past_two_to_the_31_are_read_right, NULL);
    if (index == SHAPES + 1)
        return flp_device_test_case("gradients of logits, N x V past 2^31", gradients_of_logits_past_two_to_the_31_are_right, NULL);
    return flp_device_test_case(shapes[index].name, large_gradients_are_right, &shapes[index]);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = flp_device_test_run_cases("large gradients", SHAPES + 2, test_at);
    flp_device_test_finish();
    return code;
}
