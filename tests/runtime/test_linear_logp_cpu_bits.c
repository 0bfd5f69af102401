/* linear_logp on the host: a row has the same bits wherever it stands, whatever stands beside it, on any number of threads. */
#include "cases.h"
#include "operators/linear/linear_logp_cpu.h"
#include "base/dtype.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
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

enum { MOST_ROWS = 300, RESULTS = 4 };

/* Results of one row: logp, lse, argmax and entropy as they lie in memory. */
typedef struct {
    uint32_t bits[RESULTS];
} row_result;

typedef struct {
    flp_case c;
    flp_case_data data;
    flp_linear_logp_args args; /* of all rows */
    row_result alone[MOST_ROWS];
} invariance;

/* Executes rows from[0 .. rows - 1] of the case as one batch. */
static void execute(const invariance *test, flp_thread_pool *pool, const int *from, int rows, row_result *results)
{
    flp_linear_logp_problem problem = test->c.problem;
    flp_linear_logp_args args = test->args;
    size_t bytes = (size_t)problem.hidden * flp_dtype_bytes(problem.dtype);
    unsigned char *hidden = malloc((size_t)rows * bytes);
    int64_t *target = malloc((size_t)rows * sizeof *target);
    float *logp = malloc((size_t)rows * sizeof *logp), *lse = malloc((size_t)rows * sizeof *lse), *entropy = malloc((size_t)rows * sizeof *entropy),
          *temperature = malloc((size_t)rows * sizeof(float));
    int32_t *argmax = malloc((size_t)rows * sizeof *argmax);
    for (int i = 0; i < rows; i++) {
        memcpy(hidden + (size_t)i * bytes, (const unsigned char *)test->args.hidden + (size_t)from[i] * bytes, bytes);
        target[i] = ((const int64_t *)test->args.target)[from[i]];
        temperature[i] = test->args.row_temperature[from[i]];
    }
    problem.rows = args.rows = rows;
    args.hidden = hidden;
    args.target = target;
    args.row_temperature = temperature;
    args.logp = logp;
    args.lse = lse;
    args.argmax = argmax;
    args.entropy = entropy;
    assert_int_equal(flp_linear_logp_cpu(pool, &problem, &args, NULL, NULL, NULL), FLP_OK);
    for (int i = 0; i < rows; i++) {
        memcpy(&results[i].bits[0], &logp[i], 4);
        memcpy(&results[i].bits[1], &lse[i], 4);
        memcpy(&results[i].bits[2], &argmax[i], 4);
        memcpy(&results[i].bits[3], &entropy[i], 4);
    }
    free(hidden);
    free(target);
    free(logp);
    free(lse);
    free(entropy);
    free(temperature);
    free(argmax);
}

static int same_bits(const row_result *a, const row_result *b)
{
    return memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

/* Rows in a batch of `rows`, the one at place p being (first + p * step) mod MOST_ROWS, must have the bits they have alone. */
static void expect_same_bits(const invariance *test, int threads, int rows, int first, int step)
{
    int from[MOST_ROWS] = { 0 };
    row_result results[MOST_ROWS];
    for (int p = 0; p < rows; p++)
        from[p] = (first + p * step) % MOST_ROWS;
    execute(test, pools[threads], from, rows, results);
    for (int p = 0; p < rows; p++)
        if (!same_bits(&results[p], &test->alone[from[p]]))
            fail_msg("%s: row %d at place %d of %d rows, %d threads: %08x %08x %d %08x, alone %08x %08x %d %08x", test->c.name, from[p], p, rows, threads,
                     results[p].bits[0], results[p].bits[1], (int)results[p].bits[2], results[p].bits[3], test->alone[from[p]].bits[0],
                     test->alone[from[p]].bits[1], (int)test->alone[from[p]].bits[2], test->alone[from[p]].bits[3]);
}

static void expect_invariance(flp_dtype dtype, flp_weight_layout layout, int hidden, int vocab, double softcap)
{
    static const int batches[] = { 1, 63, 64, 65, MOST_ROWS };
    invariance *test = calloc(1, sizeof *test);
    assert_non_null(test);
    test->c = (flp_case){ .name = "invariance",
                          .rows = FLP_CASE_ROW_TEMPERATURES | FLP_CASE_NAN_ROWS,
                          .bias = FLP_CASE_PLAIN_BIAS,
                          .ignore_index = -100,
                          .problem = { .dtype = dtype,
                                       .rows = MOST_ROWS,
                                       .hidden = hidden,
                                       .vocab = vocab,
                                       .weight_layout = layout,
                                       .hidden_stride = hidden,
                                       .weight_stride = layout == FLP_VOCAB_HIDDEN ? hidden : vocab,
                                       .bias_dtype = FLP_BF16,
                                       .target_dtype = FLP_I64,
                                       .argmax = 1,
                                       .softcap = softcap } };
    snprintf(test->c.name, sizeof test->c.name, "d%d v%d layout %d", hidden, vocab, (int)layout);
    assert_true(flp_case_make_data(&test->c, &test->data));
    flp_case_args(&test->c, &test->data, NULL, &test->args);
    for (int row = 0; row < MOST_ROWS; row++)
        execute(test, pools[1], &row, 1, &test->alone[row]);
    for (int threads = 1; threads < 4; threads++) {
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            expect_same_bits(test, threads, batches[b], 0, 1);
            expect_same_bits(test, threads, batches[b], 37, 1);
            expect_same_bits(test, threads, batches[b], 299, 7); /* 7 and 300 have no divisor in common: other neighbours */
        }
    }
    flp_case_free_data(&test->data);
    free(test);
}

static void a_row_has_the_same_bits_in_any_batch(void **state)
{
    (void)state;
    /* V of one chunk, of several with a short last one, of several in a split; D of one block and of several. */
    expect_invariance(FLP_F32, FLP_VOCAB_HIDDEN, 64, 1000, 0);
    expect_invariance(FLP_F32, FLP_HIDDEN_VOCAB, 100, 1029, 0);
    expect_invariance(FLP_BF16, FLP_VOCAB_HIDDEN, 8, 7, 30);
    expect_invariance(FLP_BF16, FLP_HIDDEN_VOCAB, 700, 257, 0);
    expect_invariance(FLP_F16, FLP_VOCAB_HIDDEN, 769, 520, 30);
    expect_invariance(FLP_F32, FLP_VOCAB_HIDDEN, 4, 16500, 0);
}

static void asking_for_the_entropy_changes_no_other_bits(void **state)
{
    (void)state;
    enum { ROWS = 70, D = 24, V = 700 };
    for (int softcap = 0; softcap <= 30; softcap += 30) {
        flp_case c = { .ignore_index = -100,
                       .problem = { .dtype = FLP_BF16,
                                    .rows = ROWS,
                                    .hidden = D,
                                    .vocab = V,
                                    .hidden_stride = D,
                                    .weight_stride = D,
                                    .target_dtype = FLP_I64,
                                    .softcap = softcap } };
        flp_case_data data;
        flp_linear_logp_args args;
        float logp[ROWS], lse[ROWS], entropy[ROWS];
        assert_true(flp_case_make_data(&c, &data));
        flp_case_args(&c, &data, NULL, &args);
        assert_int_equal(flp_linear_logp_cpu(pools[2], &c.problem, &args, NULL, NULL, NULL), FLP_OK);
        memcpy(logp, args.logp, sizeof logp);
        memcpy(lse, args.lse, sizeof lse);
        args.entropy = entropy;
        assert_int_equal(flp_linear_logp_cpu(pools[2], &c.problem, &args, NULL, NULL, NULL), FLP_OK);
        assert_memory_equal(logp, args.logp, sizeof logp);
        assert_memory_equal(lse, args.lse, sizeof lse);
        flp_case_free_data(&data);
    }
}

/* More rows than one group holds; the last group is a part. Against the same rows in batches of another size. */
static void groups_of_rows_do_not_show(void **state)
{
    (void)state;
    enum { ROWS = 2100, D = 24, V = 700 };
    flp_case c = { .rows = FLP_CASE_IGNORED_ROWS | FLP_CASE_LOGP_ONLY,
                   .ignore_index = -100,
                   .problem = { .dtype = FLP_F16, .rows = ROWS, .hidden = D, .vocab = V, .hidden_stride = D, .weight_stride = D, .target_dtype = FLP_I64 } };
    flp_case_data data;
    flp_linear_logp_args args;
    float *whole = malloc(ROWS * sizeof *whole);
    assert_true(flp_case_make_data(&c, &data));
    flp_case_args(&c, &data, NULL, &args);
    assert_int_equal(flp_linear_logp_cpu(pools[3], &c.problem, &args, NULL, NULL, NULL), FLP_OK);
    memcpy(whole, args.logp, ROWS * sizeof *whole);
    flp_case_poison_outputs(&data);
    for (int64_t first = 0; first < ROWS; first += 199) {
        flp_linear_logp_args part = args;
        part.rows = first + 199 < ROWS ? 199 : ROWS - first;
        part.hidden = (const uint16_t *)args.hidden + first * D;
        part.target = (const int64_t *)args.target + first;
        part.logp = args.logp + first;
        assert_int_equal(flp_linear_logp_cpu(pools[2], &c.problem, &part, NULL, NULL, NULL), FLP_OK);
    }
    assert_memory_equal(whole, args.logp, ROWS * sizeof *whole);
    free(whole);
    flp_case_free_data(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_has_the_same_bits_in_any_batch),
        cmocka_unit_test(asking_for_the_entropy_changes_no_other_bits),
        cmocka_unit_test(groups_of_rows_do_not_show),
    };
    return cmocka_run_group_tests(tests, create_pools, destroy_pools);
}
