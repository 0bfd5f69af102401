/* linear_logp's backward on the host: a row of grad_hidden has the same bits in any batch, and every gradient on any number of threads. */
#include "operators/linear/linear_logp_cpu.h"
#include "gradient_cases.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static flp_thread_pool *pools[4]; /* [t]: of t threads */

static int create_pools(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++)
        if (flp_thread_pool_create(threads, &pools[threads]) != FLP_OK)
            return 1;
    return 0;
}

static int destroy_pools(void **state)
{
    (void)state;
    for (int threads = 1; threads < 4; threads++)
        flp_thread_pool_destroy(pools[threads]);
    return 0;
}

typedef struct {
    flp_gradient_case c;
    flp_gradient_case_data data;
    flp_gradient_reference reference;
    flp_linear_logp_backward_args args;
} invariance;

/* Every option that comes with a row. */
static void make(invariance *test, flp_dtype dtype, flp_weight_layout layout, int rows, int hidden, int vocab)
{
    const flp_linear_logp_problem forward = { .dtype = dtype,
                                              .rows = rows,
                                              .hidden = hidden,
                                              .vocab = vocab,
                                              .weight_layout = layout,
                                              .hidden_stride = hidden,
                                              .weight_stride = layout == FLP_VOCAB_HIDDEN ? hidden : vocab,
                                              .bias_dtype = FLP_F32,
                                              .target_dtype = FLP_I64,
                                              .softcap = 30 };
    test->c = (flp_gradient_case){
        .forward = { .problem = forward, .bias = FLP_CASE_PLAIN_BIAS, .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_IGNORED_ROWS, .ignore_index = -100 },
        .problem = { .forward = forward,
                     .grad_hidden = FLP_F32,
                     .grad_weight = FLP_F32,
                     .grad_bias = FLP_F32,
                     .grad_hidden_stride = hidden,
                     .grad_weight_stride = forward.weight_stride,
                     .g_lse = 1,
                     .g_entropy = 1 }
    };
    assert_true(flp_gradient_case_make_data(&test->c, &test->data, &test->reference));
    flp_gradient_case_args(&test->c, &test->data, NULL, NULL, &test->args);
}

static void drop(invariance *test)
{
    flp_gradient_reference_free(&test->reference);
    flp_gradient_case_free_data(&test->data);
}

static void execute(const invariance *test, flp_thread_pool *pool, const flp_linear_logp_backward_args *args)
{
    flp_linear_logp_backward_problem problem = test->c.problem;
    problem.forward.rows = args->rows;
    assert_int_equal(flp_linear_logp_backward_cpu(pool, &problem, args, NULL, NULL, NULL), FLP_OK);
}

/* ---- threads and repetition ---- */

static void expect_same_on_all_pools(flp_dtype dtype, flp_weight_layout layout, int rows, int hidden, int vocab)
{
    invariance test;
    make(&test, dtype, layout, rows, hidden, vocab);
    execute(&test, pools[1], &test.args);
    unsigned char *first[FLP_GRADIENT_BUFFERS];
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++) {
        first[role] = malloc(test.data.own[role].bytes);
        memcpy(first[role], test.data.own[role].base, test.data.own[role].bytes);
    }
    for (int run = 0; run < 20; run++) {
        flp_gradient_case_restore_outputs(&test.data);
        execute(&test, pools[1 + run % 3], &test.args);
        for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
            assert_memory_equal(first[role], test.data.own[role].base, test.data.own[role].bytes);
    }
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
        free(first[role]);
    drop(&test);
}

/* Fewer units than threads and more; several blocks of the vocabulary; several groups of rows. */
static void gradients_repeat_on_any_number_of_threads(void **state)
{
    (void)state;
    expect_same_on_all_pools(FLP_F32, FLP_VOCAB_HIDDEN, 65, 40, 300);
    expect_same_on_all_pools(FLP_BF16, FLP_HIDDEN_VOCAB, 5, 300, 700);
    expect_same_on_all_pools(FLP_F16, FLP_VOCAB_HIDDEN, 30, 4, 4300);
    expect_same_on_all_pools(FLP_BF16, FLP_VOCAB_HIDDEN, 1300, 20, 260);
}

/* ---- batches ---- */

/* Rows first, first + step ... of the case as a batch of their own: their grad_hidden must be that of the whole. */
static void expect_rows(const invariance *test, const float *whole, int threads, int rows, int first, int step)
{
    const flp_linear_logp_problem *p = &test->c.problem.forward;
    flp_linear_logp_backward_args args = test->args;
    size_t row_bytes = (size_t)p->hidden * 4;
    float *hidden = malloc((size_t)rows * row_bytes), *gradient = malloc((size_t)rows * row_bytes);
    float *numbers = malloc((size_t)rows * 6 * sizeof *numbers);
    int64_t *target = malloc((size_t)rows * sizeof *target);
    const float *from[6] = { args.row_temperature, args.lse, args.entropy, args.g_logp, args.g_lse, args.g_entropy };
    for (int i = 0; i < rows; i++) {
        int64_t row = (first + (int64_t)i * step) % p->rows;
        memcpy(hidden + i * p->hidden, (const float *)test->args.hidden + row * p->hidden, row_bytes);
        target[i] = ((const int64_t *)test->args.target)[row];
        for (int k = 0; k < 6; k++)
            numbers[k * rows + i] = from[k][row];
    }
    args.rows = rows;
    args.hidden = hidden;
    args.target = target;
    args.grad_hidden = gradient;
    args.row_temperature = numbers;
    args.lse = numbers + rows;
    args.entropy = numbers + 2 * rows;
    args.g_logp = numbers + 3 * rows;
    args.g_lse = numbers + 4 * rows;
    args.g_entropy = numbers + 5 * rows;
    execute(test, pools[threads], &args);
    for (int i = 0; i < rows; i++) {
        int64_t row = (first + (int64_t)i * step) % p->rows;
        assert_memory_equal(gradient + i * p->hidden, whole + row * p->hidden, row_bytes);
    }
    free(hidden);
    free(gradient);
    free(numbers);
    free(target);
}

static void expect_invariance(flp_weight_layout layout, int rows, int hidden, int vocab)
{
    invariance test;
    make(&test, FLP_F32, layout, rows, hidden, vocab);
    execute(&test, pools[2], &test.args);
    size_t bytes = (size_t)rows * (size_t)hidden * 4;
    float *whole = malloc(bytes);
    memcpy(whole, test.args.grad_hidden, bytes);
    static const int batches[] = { 1, 2, 16, 17, 63, 65 };
    for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
        expect_rows(&test, whole, 1, batches[b], 0, 1);
        expect_rows(&test, whole, 2, batches[b], 37, 1);
        expect_rows(&test, whole, 3, batches[b], rows - 1, 7); /* other neighbours */
    }
    free(whole);
    drop(&test);
}

static void a_row_of_grad_hidden_has_the_same_bits_in_any_batch(void **state)
{
    (void)state;
    expect_invariance(FLP_VOCAB_HIDDEN, 100, 64, 1000);
    expect_invariance(FLP_HIDDEN_VOCAB, 100, 300, 253);
    expect_invariance(FLP_VOCAB_HIDDEN, 1100, 8, 4100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_repeat_on_any_number_of_threads),
        cmocka_unit_test(a_row_of_grad_hidden_has_the_same_bits_in_any_batch),
    };
    return cmocka_run_group_tests(tests, create_pools, destroy_pools);
}
