/* The device tests' own kernels: random matrices are those of the host, and logits in fp64 those of the host's reference. */
#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "device/device_test.h"
#include "device/gpu_reference.h"
#include "base/dtype.h"

enum { ROWS = 37, COLUMNS = 45, VOCAB = 203, STREAM = 5, BYTES = 4 * VOCAB * COLUMNS };

static flp_gpu *const gpu = &flp_device_test.gpu;

static void expect_fill(flp_dtype dtype, int turned)
{
    static unsigned char want[BYTES], got[BYTES];
    const int bytes = flp_dtype_bytes(dtype);
    flp_gpu_matrix matrix;
    CUdeviceptr data;

    flp_device_test_need_kernels();
    assert_succeeds(flp_gpu_allocate(gpu, ROWS * COLUMNS * 4, &data));
    matrix = (turned ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(data, dtype, ROWS, COLUMNS);
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &matrix, STREAM, 0.3));
    assert_succeeds(flp_gpu_download(gpu, got, data, (size_t)(ROWS * COLUMNS * bytes)));
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            double value = 0.3 * flp_case_random_normal(STREAM, (uint64_t)(r * COLUMNS + c));
            flp_reference_encode(dtype, value, want, turned ? c * ROWS + r : r * COLUMNS + c);
        }
    assert_memory_equal(want, got, ROWS * COLUMNS * bytes);
}

static void random_matrices_are_the_hosts(void **state)
{
    (void)state;
    expect_fill(FLP_BF16, 0);
    expect_fill(FLP_BF16, 1);
    expect_fill(FLP_F32, 0);
    expect_fill(FLP_F32, 1);
}

/* Computes the host's reference from the same data, which it downloads. */
static void compute_on_host(const flp_linear_logp_problem *problem, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight, const int64_t *targets,
                            flp_reference *reference)
{
    static unsigned char hidden_bytes[BYTES], weight_bytes[BYTES];
    const int bytes = flp_dtype_bytes(problem->dtype);
    const flp_linear_logp_args args = { .rows = ROWS, .hidden = hidden_bytes, .weight = weight_bytes, .target = targets };

    assert_succeeds(flp_gpu_download(gpu, hidden_bytes, hidden->data, (size_t)(ROWS * COLUMNS * bytes)));
    assert_succeeds(flp_gpu_download(gpu, weight_bytes, weight->data, (size_t)(VOCAB * COLUMNS * bytes)));
    assert_true(flp_reference_compute(problem, &args, reference));
}

static void expect_reference(flp_dtype dtype, int turned)
{
    const flp_linear_logp_problem problem = { .dtype = dtype,
                                              .rows = ROWS,
                                              .hidden = COLUMNS,
                                              .vocab = VOCAB,
                                              .target_dtype = FLP_I64,
                                              .hidden_stride = COLUMNS,
                                              .weight_stride = turned ? VOCAB : COLUMNS,
                                              .weight_layout = turned ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN };
    const int64_t rows[] = { 36, 0, 17 }, targets[] = { 202, 0, 100 };
    int64_t all_targets[ROWS] = { 0 };
    flp_gpu_reference_row got[3];
    flp_gpu_matrix hidden, weight;
    flp_reference want;
    CUdeviceptr data[2];

    for (int i = 0; i < 2; i++)
        assert_succeeds(flp_gpu_allocate(gpu, BYTES, &data[i]));
    hidden = flp_gpu_matrix_rows(data[0], dtype, ROWS, COLUMNS);
    weight = (turned ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(data[1], dtype, VOCAB, COLUMNS);
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &hidden, 6, 1));
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &weight, 7, 0.3));
    assert_succeeds(flp_gpu_reference_compute(gpu, &flp_device_test.kernels, &hidden, &weight, &(flp_gpu_reference_options){ 0 }, 3, rows, targets, got));
    for (int i = 0; i < 3; i++)
        all_targets[rows[i]] = targets[i];
    compute_on_host(&problem, &hidden, &weight, all_targets, &want);
    for (int i = 0; i < 3; i++) {
        /* Both are computed in fp64, but sum in different orders. */
        assert_true(fabs(got[i].logp - want.logp[rows[i]]) < 1e-12);
        assert_true(fabs(got[i].lse - want.lse[rows[i]]) < 1e-12);
        assert_int_equal(want.argmax[rows[i]], got[i].argmax);
    }
    flp_reference_free(&want);
}

static void the_reference_is_the_hosts(void **state)
{
    (void)state;
    flp_device_test_need_kernels();
    expect_reference(FLP_BF16, 0);
    expect_reference(FLP_BF16, 1);
    expect_reference(FLP_F32, 0);
    expect_reference(FLP_F32, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        flp_device_test_of(random_matrices_are_the_hosts),
        flp_device_test_of(the_reference_is_the_hosts),
    };

    return flp_device_test_main("the tests' own kernels", tests, argc, argv);
}
