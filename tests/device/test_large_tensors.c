/* Matrices whose element counts and byte offsets exceed 2^31 and 2^32. A few rows are compared with fp64. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "device/device_test.h"
#include "device/gpu_reference.h"
#include "base/dtype.h"

enum { CHECKED = 16, HIDDEN_STREAM = 21, WEIGHT_STREAM = 22 };

typedef struct {
    const char *name;
    const char *path; /* on compute capability 9.0 */
    flp_linear_logp_problem problem;
} shape;

/* V x D is 2.46e9 elements, 4.9e9 bytes; N x V is 2.46e9 if N is 4096. */
static const shape shapes[] = {
    { "V x D past 2^31, few rows", "sm_90a", { .dtype = FLP_BF16, .rows = 70, .hidden = 4096, .vocab = 600000, .argmax = 1 } },
    { "V x D and N x V past 2^31", "sm_90a", { .dtype = FLP_BF16, .rows = 4096, .hidden = 4096, .vocab = 600000, .argmax = 1 } },
    { "[D, V] past 2^31", "sm_90a", { .dtype = FLP_BF16, .rows = 200, .hidden = 4096, .vocab = 600000, .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1 } },
    { "portable, V x D past 2^31",
      "portable",
      { .dtype = FLP_BF16, .rows = 200, .hidden = 4096, .vocab = 600000, .backend = FLP_BACKEND_PORTABLE, .argmax = 1 } },
    { "portable, [D, V] past 2^31",
      "portable",
      { .dtype = FLP_BF16, .rows = 70, .hidden = 4096, .vocab = 600001, .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1 } },
    { "f32, bytes past 2^32", "sm_90a", { .dtype = FLP_F32, .rows = 70, .hidden = 2048, .vocab = 600000, .argmax = 1 } },
    { "portable f32, bytes past 2^32",
      "portable",
      { .dtype = FLP_F32, .rows = 70, .hidden = 2048, .vocab = 600000, .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1 } },
    { "hidden rows far apart", "sm_90a", { .dtype = FLP_BF16, .rows = 2200, .hidden = 512, .hidden_stride = 1 << 20, .vocab = 5003 } },
    { "portable, hidden rows far apart",
      "portable",
      { .dtype = FLP_BF16, .rows = 2200, .hidden = 512, .hidden_stride = 1 << 20, .vocab = 5003, .backend = FLP_BACKEND_PORTABLE } },
    { "weight rows far apart", "sm_90a", { .dtype = FLP_BF16, .rows = 300, .hidden = 512, .weight_stride = 1 << 19, .vocab = 5003 } },
    { "larger than every tile", "sm_90a", { .dtype = FLP_BF16, .rows = 1000, .hidden = 4168, .vocab = 50257, .argmax = 1 } },
    { "larger than every tile, odd rows", "portable", { .dtype = FLP_BF16, .rows = 1000, .hidden = 4161, .vocab = 50257, .argmax = 1 } },
    { "larger than every tile, f32", "sm_90a", { .dtype = FLP_F32, .rows = 500, .hidden = 3000, .vocab = 32003, .argmax = 1 } },
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static flp_gpu *gpu(void)
{
    return &flp_device_test.gpu;
}

static int64_t element_bytes(const flp_linear_logp_problem *p)
{
    return flp_dtype_bytes(p->dtype);
}

static flp_gpu_matrix make_matrix(const flp_linear_logp_problem *p, int64_t rows, int64_t stride, int turned, unsigned stream, double deviation)
{
    int64_t elements = turned ? p->hidden * rows : (rows - 1) * (stride ? stride : p->hidden) + p->hidden;
    flp_gpu_matrix matrix;
    CUdeviceptr data;

    assert_succeeds(flp_gpu_allocate(gpu(), (size_t)(elements * element_bytes(p)), &data));
    matrix = (turned ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(data, p->dtype, rows, p->hidden);
    if (stride)
        matrix.row_stride = stride;
    assert_succeeds(flp_gpu_kernels_fill(gpu(), &flp_device_test.kernels, &matrix, stream, deviation));
    return matrix;
}

/* Targets at both ends of the vocabulary, where v x D and n x V pass 2^31, and elsewhere. */
static int64_t choose_target(const flp_linear_logp_problem *p, int64_t row)
{
    const int64_t wanted[] = { p->vocab - 1,
                               0,
                               p->vocab - 2,
                               (INT64_C(1) << 31) / p->hidden,
                               (INT64_C(1) << 31) / p->hidden - 1,
                               p->vocab * 9 / 10,
                               p->vocab / 2,
                               (row * 7919 + 13) % p->vocab };

    return wanted[row % 8] % p->vocab;
}

static void choose_rows(int64_t rows, int64_t *chosen)
{
    for (int i = 0; i < CHECKED; i++)
        chosen[i] = i * (rows - 1) / (CHECKED - 1);
}

typedef struct {
    float *logp, *lse;
    int32_t *argmax;
} results;

/* Poisons the outputs, executes, and downloads all of the outputs. */
static void execute(const shape *s, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, const int64_t *targets, results *out)
{
    const flp_linear_logp_problem *p = &s->problem;
    const size_t bytes = (size_t)p->rows * 4;
    CUdeviceptr target, outputs[3];
    flp_plan *plan;
    flp_linear_logp_args args;

    assert_succeeds(flp_gpu_copy_in(gpu(), targets, (size_t)p->rows * sizeof(*targets), &target));
    for (int i = 0; i < 3; i++) {
        assert_succeeds(flp_gpu_allocate(gpu(), bytes, &outputs[i]));
        assert_succeeds(flp_gpu_set(gpu(), outputs[i], 0xff, bytes));
    }
    args = (flp_linear_logp_args){ .rows = p->rows,
                                   .hidden = flp_gpu_pointer(hidden->data),
                                   .weight = flp_gpu_pointer(weight->data),
                                   .target = flp_gpu_pointer(target),
                                   .ignore_index = -100,
                                   .flags = FLP_IGNORE_INDEX,
                                   .logp = flp_gpu_pointer(outputs[0]),
                                   .lse = flp_gpu_pointer(outputs[1]),
                                   .argmax = p->argmax ? flp_gpu_pointer(outputs[2]) : NULL };
    assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, p, &plan));
    if (gpu()->facts.compute_capability == 90)
        assert_string_equal(s->path, flp_backend_name(flp_plan_backend(plan)));
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_succeeds(flp_gpu_synchronize(gpu()));
    flp_plan_destroy(plan);
    *out = (results){ malloc(bytes), malloc(bytes), malloc(bytes) };
    assert_true(out->logp && out->lse && out->argmax);
    assert_succeeds(flp_gpu_download(gpu(), out->logp, outputs[0], bytes));
    assert_succeeds(flp_gpu_download(gpu(), out->lse, outputs[1], bytes));
    assert_succeeds(flp_gpu_download(gpu(), out->argmax, outputs[2], bytes));
}

/* Allowed, in norm over the checked rows: the promised 1e-6, or the error of accumulating in fp32 if that is larger. */
static void check_norm(const char *what, double error, double size, double rounding)
{
    double allowed = fmax(1e-6 * size, rounding);

    if (!(error <= allowed))
        fail_msg("%s: error %.3g in norm (%.3g relative), allowed %.3g", what, error, error / size, allowed);
}

static void check_rows(const shape *s, const int64_t *rows, const flp_gpu_reference_row *reference, const results *got)
{
    double logp_error = 0, lse_error = 0, logp_size = 0, lse_size = 0, rounding = 0;

    for (int i = 0; i < CHECKED; i++) {
        const flp_gpu_reference_row *want = &reference[i];
        logp_error = hypot(logp_error, got->logp[rows[i]] - want->logp);
        lse_error = hypot(lse_error, got->lse[rows[i]] - want->lse);
        logp_size = hypot(logp_size, want->logp);
        lse_size = hypot(lse_size, want->lse);
        rounding = hypot(rounding, want->rounding);
        /* Exactly the same: two largest logits that rounding could exchange are rare, and these inputs, which are always the same, have none. */
        if (s->problem.argmax)
            assert_int_equal(want->argmax, got->argmax[rows[i]]);
    }
    check_norm("logp", logp_error, logp_size, rounding);
    check_norm("lse", lse_error, lse_size, rounding);
}

/* The rows that are not compared with fp64 must at least have plausible numbers. */
static void check_all_written(const flp_linear_logp_problem *p, const results *got)
{
    for (int64_t i = 0; i < p->rows; i++)
        if (!(got->logp[i] < 0 && got->logp[i] > -60 && got->lse[i] > 0 && got->lse[i] < 60))
            fail_msg("row %" PRId64 ": logp %g, lse %g", i, got->logp[i], got->lse[i]);
}

static void a_large_shape_is_right(void **state)
{
    const shape *s = *state;
    const flp_linear_logp_problem *p = &s->problem;
    flp_gpu_reference_row reference[CHECKED];
    int64_t rows[CHECKED], chosen_targets[CHECKED], *targets = malloc((size_t)p->rows * sizeof(*targets));
    flp_gpu_matrix hidden, weight;
    results got;

    if (flp_device_test.quick)
        skip();
    flp_device_test_need_kernels();
    assert_non_null(targets);
    for (int64_t i = 0; i < p->rows; i++)
        targets[i] = choose_target(p, i);
    choose_rows(p->rows, rows);
    for (int i = 0; i < CHECKED; i++)
        chosen_targets[i] = targets[rows[i]];
    hidden = make_matrix(p, p->rows, p->hidden_stride, 0, HIDDEN_STREAM, 1);
    weight = make_matrix(p, p->vocab, p->weight_stride, p->weight_layout == FLP_HIDDEN_VOCAB, WEIGHT_STREAM, 2 / sqrt((double)p->hidden));
    execute(s, &hidden, &weight, targets, &got);
    check_all_written(p, &got);
    assert_succeeds(flp_gpu_reference_compute(gpu(), &flp_device_test.kernels, &hidden, &weight, &(flp_gpu_reference_options){ 0 }, CHECKED, rows,
                                              chosen_targets, reference));
    check_rows(s, rows, reference, &got);
    free(got.logp);
    free(got.lse);
    free(got.argmax);
    free(targets);
}

static struct CMUnitTest test_at(int index)
{
    return flp_device_test_case(shapes[index].name, a_large_shape_is_right, &shapes[index]);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = flp_device_test_run_cases("large tensors", SHAPES, test_at);
    flp_device_test_finish();
    return code;
}
