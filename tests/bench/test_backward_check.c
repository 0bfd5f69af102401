/* The benchmark's check of gradients, with host memory and plain loops in the device's place: what it lets pass and what not. */
#include "backward_check.h"

#include <math.h>
#include <stdlib.h>

#include "cases.h"
#include "cpu/convert.h"
#include "reference.h"
#include "runtime/assertions.h"

enum { ROWS = 200, HIDDEN = 24, VOCAB = 300, BLOCK = 64 };

static const double eps = 1e-2;
static uint16_t hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], grad_hidden[ROWS * HIDDEN], grad_weight[VOCAB * HIDDEN];
static float g[ROWS], lse[ROWS];
static int64_t target[ROWS];
static const double *temperatures; /* [ROWS], or NULL: 1 */
static double dlogit[ROWS][VOCAB];
static void *allocated[64];
static int allocations;

/* ---- the device */

static CUdeviceptr address_of(const void *memory)
{
    return (CUdeviceptr)(uintptr_t)memory;
}

static void *memory_at(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

flp_status flp_gpu_allocate(flp_gpu *gpu, size_t bytes, CUdeviceptr *pointer)
{
    (void)gpu;
    assert_true(allocations < (int)(sizeof(allocated) / sizeof(allocated[0])));
    allocated[allocations] = malloc(bytes);
    *pointer = address_of(allocated[allocations++]);
    return FLP_OK;
}

flp_status flp_gpu_upload(const flp_gpu *gpu, CUdeviceptr to, const void *from, size_t bytes)
{
    (void)gpu;
    memcpy(memory_at(to), from, bytes);
    return FLP_OK;
}

flp_status flp_gpu_download(const flp_gpu *gpu, void *to, CUdeviceptr from, size_t bytes)
{
    (void)gpu;
    memcpy(to, memory_at(from), bytes);
    return FLP_OK;
}

flp_status flp_gpu_copy_in(flp_gpu *gpu, const void *from, size_t bytes, CUdeviceptr *pointer)
{
    flp_status status = flp_gpu_allocate(gpu, bytes, pointer);

    return status == FLP_OK ? flp_gpu_upload(gpu, *pointer, from, bytes) : status;
}

static double element(const flp_gpu_matrix *matrix, int64_t row, int64_t column)
{
    return flp_reference_decode(matrix->dtype, memory_at(matrix->data), row * matrix->row_stride + column * matrix->column_stride);
}

flp_status flp_gpu_kernels_logits(const flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *from, const flp_gpu_matrix *with,
                                  CUdeviceptr row_index, int64_t count, CUdeviceptr logits)
{
    const int64_t *rows = memory_at(row_index);

    (void)gpu, (void)kernels;
    for (int64_t i = 0; i < count; i++)
        for (int64_t v = 0; v < with->rows; v++) {
            double sum = 0;
            for (int64_t d = 0; d < from->columns; d++)
                sum += element(from, rows[i], d) * element(with, v, d);
            ((double *)memory_at(logits))[i * with->rows + v] = sum;
        }
    return FLP_OK;
}

flp_status flp_gpu_kernels_product(const flp_gpu *gpu, const flp_gpu_kernels *kernels, CUdeviceptr left, const flp_gpu_matrix *right, int64_t count,
                                   const flp_gpu_product *product)
{
    double *sums = memory_at(product->sums), *squares = memory_at(product->squares), *magnitudes = memory_at(product->magnitudes);

    (void)gpu, (void)kernels;
    for (int64_t i = 0; i < count * right->columns; i++) {
        sums[i] = squares[i] = magnitudes[i] = 0;
        for (int64_t k = 0; k < right->rows; k++) {
            const double term = ((double *)memory_at(left))[i / right->columns * right->rows + k] * element(right, k, i % right->columns);
            sums[i] += term;
            squares[i] += term * term;
            magnitudes[i] += fabs(term);
        }
    }
    return FLP_OK;
}

/* ---- a problem and its gradients */

static double logit(int64_t row, int64_t v)
{
    double sum = 0;

    for (int64_t d = 0; d < HIDDEN; d++)
        sum += flp_reference_decode(FLP_BF16, hidden, row * HIDDEN + d) * flp_reference_decode(FLP_BF16, weight, v * HIDDEN + d);
    return sum;
}

static void differentiate(int64_t row)
{
    const double temperature = temperatures ? temperatures[row] : 1;
    double sum = 0;

    for (int64_t v = 0; v < VOCAB; v++)
        sum += exp(logit(row, v) / temperature);
    lse[row] = (float)log(sum);
    for (int64_t v = 0; v < VOCAB; v++)
        dlogit[row][v] = (double)g[row] / temperature * ((v == target[row]) - exp(logit(row, v) / temperature - (double)lse[row]));
}

/* Logits of deviation 4: most derivatives are small, and in the blocks of the second half all but the targets'. */
static int make_problem(void **state)
{
    (void)state;
    for (int64_t i = 0; i < ROWS * HIDDEN; i++)
        flp_reference_encode(FLP_BF16, flp_case_random_normal(50, (uint64_t)i), hidden, i);
    for (int64_t i = 0; i < VOCAB * HIDDEN; i++)
        flp_reference_encode(FLP_BF16, (i < VOCAB * HIDDEN / 2 ? 4 : 0.5) / sqrt(HIDDEN) * flp_case_random_normal(51, (uint64_t)i), weight, i);
    for (int64_t row = 0; row < ROWS; row++) {
        g[row] = (float)flp_case_random_normal(52, (uint64_t)row);
        target[row] = row * 7 % (VOCAB / 2);
        differentiate(row);
    }
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    while (allocations > 0)
        free(allocated[--allocations]);
    return 0;
}

static int is_passed_over(int64_t row, int64_t v)
{
    for (int64_t i = row / BLOCK * BLOCK; i < ROWS && i < (row / BLOCK + 1) * BLOCK; i++)
        for (int64_t j = v / BLOCK * BLOCK; j < VOCAB && j < (v / BLOCK + 1) * BLOCK; j++)
            if (fabs(dlogit[i][j]) >= eps)
                return 0;
    return 1;
}

/* Sums in fp32, rounded to bf16, of derivatives in fp64. Returns how many of these were passed over. */
static int compute_gradients(int filters)
{
    static float of_hidden[ROWS * HIDDEN], of_weight[VOCAB * HIDDEN];
    int passed = 0;

    memset(of_hidden, 0, sizeof(of_hidden));
    memset(of_weight, 0, sizeof(of_weight));
    for (int64_t row = 0; row < ROWS; row++)
        for (int64_t v = 0; v < VOCAB; v++) {
            const int passes = filters && is_passed_over(row, v);
            passed += passes;
            for (int64_t d = 0; d < HIDDEN && !passes; d++) {
                of_hidden[row * HIDDEN + d] += (float)(dlogit[row][v] * flp_reference_decode(FLP_BF16, weight, v * HIDDEN + d));
                of_weight[v * HIDDEN + d] += (float)(dlogit[row][v] * flp_reference_decode(FLP_BF16, hidden, row * HIDDEN + d));
            }
        }
    flp_convert_from_f32(FLP_BF16, of_hidden, grad_hidden, ROWS * HIDDEN);
    flp_convert_from_f32(FLP_BF16, of_weight, grad_weight, VOCAB * HIDDEN);
    return passed;
}

/* of_weight, its gradient: weight and grad_weight, lying as strides say. */
static flp_status check_lying(const uint16_t *of_weight, const uint16_t *its_gradient, int64_t row_stride, int64_t column_stride, double filter_eps,
                              flp_backward_errors *errors)
{
    const flp_backward_answer answer = {
        .hidden = { address_of(hidden), FLP_BF16, ROWS, HIDDEN, HIDDEN, 1 },
        .weight = { address_of(of_weight), FLP_BF16, VOCAB, HIDDEN, row_stride, column_stride },
        .grad_hidden = address_of(grad_hidden),
        .grad_weight = address_of(its_gradient),
        .hidden_dtype = FLP_BF16,
        .weight_dtype = FLP_BF16,
        .targets = target,
        .g = g,
        .lse = lse,
        .filter_eps = filter_eps,
        .temperatures = temperatures,
    };

    memset(errors, 0, sizeof(*errors));
    return flp_backward_check(&answer, errors);
}

static flp_status check(double filter_eps, flp_backward_errors *errors)
{
    return check_lying(weight, grad_weight, HIDDEN, 1, filter_eps, errors);
}

/* [V, D] as [D, V]. */
static void turn(const uint16_t *from, uint16_t *to)
{
    for (int64_t i = 0; i < VOCAB * HIDDEN; i++)
        to[i % HIDDEN * VOCAB + i / HIDDEN] = from[i];
}

/* fp32's sums add 1 % of bf16's rounding at most. */
static void right_gradients_pass(void **state)
{
    flp_backward_errors errors;

    (void)state;
    compute_gradients(0);
    assert_succeeds(check(0, &errors));
    assert_true(errors.hidden.rounding > 0 && fabs(errors.hidden.relative / errors.hidden.rounding - 1) <= 0.01);
    assert_true(errors.weight.rounding > 0 && fabs(errors.weight.relative / errors.weight.rounding - 1) <= 0.01);
    assert_true(fabs(errors.hidden.of_all / errors.hidden.rounding - 1) <= 0.1 && fabs(errors.weight.of_all / errors.weight.rounding - 1) <= 0.1);
    assert_true(errors.hidden.bound == 0 && errors.weight.bound == 0);
}

static void filtered_gradients_pass_with_a_filter_alone(void **state)
{
    flp_backward_errors errors;
    const int passed = compute_gradients(1);

    (void)state;
    assert_in_range(passed, 1, ROWS * VOCAB - 1);
    assert_succeeds(check(eps, &errors));
    assert_true(errors.hidden.bound > errors.hidden.relative && errors.weight.bound > errors.weight.relative);
    assert_fails(FLP_INTERNAL, check(0, &errors), "relative error");
}

static void a_gradient_that_lacks_a_large_term_is_refused(void **state)
{
    flp_backward_errors errors;

    (void)state;
    for (int64_t row = 0; row < ROWS; row++)
        dlogit[row][target[row]] = 0;
    compute_gradients(1);
    assert_fails(FLP_INTERNAL, check(eps, &errors), "grad_hidden: relative error");
}

static void grad_weight_is_looked_at_too(void **state)
{
    flp_backward_errors errors;

    (void)state;
    compute_gradients(1);
    for (int64_t i = 0; i < VOCAB * HIDDEN; i++)
        grad_weight[i] ^= 0x8000;
    assert_fails(FLP_INTERNAL, check(eps, &errors), "grad_weight: relative error");
}

static void gradients_of_a_weight_by_hidden_are_the_same(void **state)
{
    static uint16_t turned[VOCAB * HIDDEN], gradient_turned[VOCAB * HIDDEN];
    flp_backward_errors of_rows, of_columns;

    (void)state;
    compute_gradients(0);
    turn(weight, turned), turn(grad_weight, gradient_turned);
    assert_succeeds(check(0, &of_rows));
    assert_succeeds(check_lying(turned, gradient_turned, 1, VOCAB, 0, &of_columns));
    assert_memory_equal(&of_columns, &of_rows, sizeof(of_rows));
    for (int64_t i = 0; i < VOCAB * HIDDEN; i++)
        gradient_turned[i] ^= 0x8000;
    assert_fails(FLP_INTERNAL, check_lying(turned, gradient_turned, 1, VOCAB, 0, &of_columns), "grad_weight: relative error");
}

static void gradients_of_rows_with_temperatures_pass_with_these_alone(void **state)
{
    static double given[ROWS], others[ROWS];
    flp_backward_errors errors;

    (void)state;
    for (int64_t row = 0; row < ROWS; row++) {
        given[row] = 0.5 + (double)row / ROWS;
        others[row] = 1.25 * given[row];
    }
    temperatures = given;
    for (int64_t row = 0; row < ROWS; row++)
        differentiate(row);
    compute_gradients(0);
    assert_succeeds(check(0, &errors));
    temperatures = others;
    assert_fails(FLP_INTERNAL, check(0, &errors), "relative error");
    temperatures = NULL;
    assert_fails(FLP_INTERNAL, check(0, &errors), "relative error");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_problem, free_all)
    const struct CMUnitTest tests[] = {
        TEST(right_gradients_pass),         TEST(filtered_gradients_pass_with_a_filter_alone),  TEST(a_gradient_that_lacks_a_large_term_is_refused),
        TEST(grad_weight_is_looked_at_too), TEST(gradients_of_a_weight_by_hidden_are_the_same), TEST(gradients_of_rows_with_temperatures_pass_with_these_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
