/* A row's bits depend on the row, the weight and the options alone: not on N, the row's place, its neighbours, the stream or the run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device_test.h"
#include "reference.h"
#include "base/dtype.h"

enum { MOST_ROWS = 4096, REPETITIONS = 20 };
enum { HIDDEN_STREAM = 11, WEIGHT_STREAM = 12, OUTPUTS = 4 };

/* Each setting has an arithmetic of its own. Where a vocabulary is large, its splits have several tiles. It ends within a tile. */
typedef struct {
    const char *name, *path;
    flp_linear_logp_problem problem;
} setting;

static const setting settings[] = {
    { "bf16", "sm_90a", { .dtype = FLP_BF16, .hidden = 128, .vocab = 50257, .argmax = 1, .entropy = 1 } },
    { "bf16 [D, V]", "sm_90a", { .dtype = FLP_BF16, .hidden = 128, .vocab = 50264, .weight_layout = FLP_HIDDEN_VOCAB, .argmax = 1, .entropy = 1 } },
    { "bf16, small vocabulary", "sm_90a", { .dtype = FLP_BF16, .hidden = 200, .vocab = 1003, .softcap = 30, .argmax = 1, .entropy = 1 } },
    { "bf16 portable", "portable", { .dtype = FLP_BF16, .hidden = 128, .vocab = 50257, .argmax = 1, .entropy = 1, .backend = FLP_BACKEND_PORTABLE } },
    { "bf16 odd rows", "portable", { .dtype = FLP_BF16, .hidden = 77, .vocab = 3001, .argmax = 1, .entropy = 1 } },
    { "f32", "sm_90a", { .dtype = FLP_F32, .hidden = 96, .vocab = 25001, .argmax = 1, .entropy = 1 } },
    { "f32 portable", "portable", { .dtype = FLP_F32, .hidden = 96, .vocab = 12001, .argmax = 1, .entropy = 1, .backend = FLP_BACKEND_PORTABLE } },
    { "f32 exact", "portable", { .dtype = FLP_F32, .hidden = 96, .vocab = 12001, .argmax = 1, .entropy = 1, .precision = FLP_PRECISION_EXACT } },
};
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

/* The results of one row, as words, so that a NaN equals itself. */
typedef struct {
    uint32_t logp, lse, argmax, entropy;
} row_bits;

/* A setting's inputs on the device (the pool), and the bits of all rows: whole, in one batch of all; part, in the last batch. */
typedef struct {
    const setting *of;
    int64_t rows; /* of the pool */
    CUdeviceptr hidden, weight, target, outputs[OUTPUTS];
    row_bits *whole, *part;
} bench;

static flp_gpu *gpu(void)
{
    return &flp_device_test.gpu;
}

static size_t row_bytes(const bench *b)
{
    return (size_t)b->of->problem.hidden * flp_dtype_bytes(b->of->problem.dtype);
}

/* Scores `rows` rows of hidden (device memory), with the targets of the pool from row `first` on. */
static void run(const bench *b, CUdeviceptr hidden, int64_t first, int64_t rows, CUstream stream, row_bits *bits)
{
    const flp_linear_logp_args args = {
        .rows = rows,
        .hidden = flp_gpu_pointer(hidden),
        .weight = flp_gpu_pointer(b->weight),
        .target = flp_gpu_pointer(b->target + (size_t)first * 8),
        .ignore_index = -100,
        .flags = FLP_IGNORE_INDEX,
        .logp = flp_gpu_pointer(b->outputs[0]),
        .lse = flp_gpu_pointer(b->outputs[1]),
        .argmax = flp_gpu_pointer(b->outputs[2]),
        .entropy = b->of->problem.entropy ? flp_gpu_pointer(b->outputs[3]) : NULL,
        .stream = stream,
    };
    const size_t bytes = (size_t)rows * 4;
    uint32_t *words = malloc(OUTPUTS * bytes);

    assert_non_null(words);
    for (int i = 0; i < OUTPUTS; i++)
        assert_succeeds(flp_gpu_set(gpu(), b->outputs[i], 0xff, bytes));
    assert_succeeds(flp_linear_logp(flp_device_test.context, &b->of->problem, &args));
    assert_succeeds(flp_gpu_synchronize(gpu()));
    for (int i = 0; i < OUTPUTS; i++)
        assert_succeeds(flp_gpu_download(gpu(), words + i * rows, b->outputs[i], bytes));
    for (int64_t i = 0; i < rows; i++)
        bits[i] = (row_bits){ words[i], words[rows + i], words[2 * rows + i], words[3 * rows + i] };
    free(words);
}

/* Asserts that the batch of rows from `first` on has the bits of the whole. step: 2: only every other row has to agree; else 1. */
static void compare(const bench *b, const char *what, int64_t first, int64_t rows, int64_t step)
{
    for (int64_t i = 0; i < rows; i += step) {
        const row_bits *whole = &b->whole[first + i], *part = &b->part[i];
        if (memcmp(whole, part, sizeof(*whole)) != 0)
            fail_msg("%s, %s: row %lld of %lld from %lld on: logp %08x lse %08x argmax %u entropy %08x, in the whole batch %08x %08x %u %08x", b->of->name,
                     what, (long long)i, (long long)rows, (long long)first, part->logp, part->lse, part->argmax, part->entropy, whole->logp, whole->lse,
                     whole->argmax, whole->entropy);
    }
}

static void upload_targets(bench *b)
{
    int64_t *targets = malloc((size_t)b->rows * sizeof(*targets));

    assert_non_null(targets);
    for (int64_t i = 0; i < b->rows; i++)
        targets[i] = i % 7 == 3 ? -100 : (i * 7919 + 13) % b->of->problem.vocab;
    assert_succeeds(flp_gpu_copy_in(gpu(), targets, (size_t)b->rows * sizeof(*targets), &b->target));
    free(targets);
}

static void set_up(const setting *of, bench *b)
{
    const flp_linear_logp_problem *p = &of->problem;
    const int turned = p->weight_layout == FLP_HIDDEN_VOCAB;
    flp_gpu_matrix hidden, weight;

    flp_device_test_need_kernels();
    *b = (bench){ .of = of, .rows = flp_device_test.quick ? 300 : MOST_ROWS };
    b->whole = calloc((size_t)b->rows, sizeof(*b->whole));
    b->part = calloc((size_t)b->rows, sizeof(*b->part));
    assert_true(b->whole && b->part);
    assert_succeeds(flp_gpu_allocate(gpu(), (size_t)b->rows * row_bytes(b), &b->hidden));
    assert_succeeds(flp_gpu_allocate(gpu(), (size_t)p->vocab * row_bytes(b), &b->weight));
    for (int i = 0; i < OUTPUTS; i++)
        assert_succeeds(flp_gpu_allocate(gpu(), (size_t)b->rows * 4, &b->outputs[i]));
    hidden = flp_gpu_matrix_rows(b->hidden, p->dtype, b->rows, p->hidden);
    weight = (turned ? flp_gpu_matrix_turned : flp_gpu_matrix_rows)(b->weight, p->dtype, p->vocab, p->hidden);
    assert_succeeds(flp_gpu_kernels_fill(gpu(), &flp_device_test.kernels, &hidden, HIDDEN_STREAM, 1));
    assert_succeeds(flp_gpu_kernels_fill(gpu(), &flp_device_test.kernels, &weight, WEIGHT_STREAM, 2 / sqrt((double)p->hidden)));
    upload_targets(b);
    run(b, b->hidden, 0, b->rows, NULL, b->whole);
}

static void tear_down(bench *b)
{
    free(b->whole);
    free(b->part);
}

static void compare_batch(bench *b, const char *what, int64_t first, int64_t rows, CUstream stream)
{
    run(b, b->hidden + (size_t)first * row_bytes(b), first, rows, stream, b->part);
    compare(b, what, first, rows, 1);
}

/* ---- tests, each for every setting */

static void every_batch_has_the_same_numerics(void **state)
{
    static const int64_t rows[] = { 1, 64, 65, 128, 129, 4096, 65536 };
    const setting *of = *state;
    char first[512] = "";

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        flp_linear_logp_problem problem = of->problem;
        flp_plan *plan;
        problem.rows = rows[i];
        assert_succeeds(flp_linear_logp_plan_create(flp_device_test.context, &problem, &plan));
        if (gpu()->facts.compute_capability == 90)
            assert_string_equal(of->path, flp_backend_name(flp_plan_backend(plan)));
        if (i == 0)
            snprintf(first, sizeof(first), "%s", flp_plan_numerics(plan));
        assert_string_equal(first, flp_plan_numerics(plan));
        flp_plan_destroy(plan);
    }
}

static void rows_alone_and_in_batches_are_the_same(void **state)
{
    static const int64_t sizes[] = { 1, 2, 63, 64, 65, 127, 128, 129, 255, 257, 1000, 4095 };
    bench b;

    set_up(*state, &b);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] < b.rows; i++) {
        const int64_t last = b.rows - sizes[i];
        const int64_t places[] = { 0, 1, last / 3, last - 1 > 0 ? last - 1 : 0, last };
        for (int place = 0; place < 5; place++)
            compare_batch(&b, "in a batch", places[place], sizes[i], NULL);
    }
    for (int64_t row = 0; row < b.rows; row += b.rows / 61)
        compare_batch(&b, "alone", row, 1, NULL);
    tear_down(&b);
}

static void repetitions_are_the_same(void **state)
{
    bench b;

    set_up(*state, &b);
    for (int i = 0; i < REPETITIONS; i++) {
        compare_batch(&b, "again", 0, b.rows, NULL);
        compare_batch(&b, "again", 100, 65, NULL);
    }
    tear_down(&b);
}

static void other_streams_are_the_same(void **state)
{
    enum { NON_BLOCKING = 1 };
    CUstream streams[3];
    bench b;

    set_up(*state, &b);
    for (int i = 0; i < 3; i++) {
        assert_succeeds(flp_gpu_check(gpu(), gpu()->driver->stream_create(&streams[i], i ? NON_BLOCKING : 0), "cuStreamCreate"));
        compare_batch(&b, "on another stream", 0, b.rows, streams[i]);
        compare_batch(&b, "on another stream", 17, 64, streams[i]);
        gpu()->driver->stream_destroy(streams[i]);
    }
    tear_down(&b);
}

/* Fills every odd row with NaN, an infinity or a huge number. */
static void spoil_odd_rows(const bench *b, unsigned char *pool)
{
    const double values[] = { NAN, INFINITY, -INFINITY, 1e30 };
    const flp_linear_logp_problem *p = &b->of->problem;

    for (int64_t i = 1; i < b->rows; i += 2)
        for (int64_t d = 0; d < p->hidden; d++)
            flp_reference_encode(p->dtype, values[i / 2 % 4], pool, i * p->hidden + d);
}

static void neighbours_do_not_matter(void **state)
{
    bench b;
    unsigned char *pool;
    CUdeviceptr spoilt;
    size_t bytes;

    set_up(*state, &b);
    bytes = (size_t)b.rows * row_bytes(&b);
    pool = malloc(bytes);
    assert_non_null(pool);
    assert_succeeds(flp_gpu_download(gpu(), pool, b.hidden, bytes));
    spoil_odd_rows(&b, pool);
    assert_succeeds(flp_gpu_copy_in(gpu(), pool, bytes, &spoilt));
    run(&b, spoilt, 0, b.rows, NULL, b.part);
    compare(&b, "beside NaN and inf", 0, b.rows, 2);
    run(&b, spoilt, 0, 65, NULL, b.part);
    compare(&b, "beside NaN and inf", 0, 65, 2);
    free(pool);
    tear_down(&b);
}

/* Scores the pool's first rows in reverse order, with their targets. */
static void order_does_not_matter(void **state)
{
    bench b;
    unsigned char *pool, *turned;
    int64_t *targets;
    const int64_t rows = 257;
    CUdeviceptr hidden, target;

    set_up(*state, &b);
    pool = malloc(2 * (size_t)rows * row_bytes(&b));
    targets = malloc(2 * (size_t)rows * sizeof(*targets));
    assert_true(pool && targets);
    turned = pool + (size_t)rows * row_bytes(&b);
    assert_succeeds(flp_gpu_download(gpu(), pool, b.hidden, (size_t)rows * row_bytes(&b)));
    assert_succeeds(flp_gpu_download(gpu(), targets, b.target, (size_t)rows * sizeof(*targets)));
    for (int64_t i = 0; i < rows; i++) {
        memcpy(turned + (size_t)i * row_bytes(&b), pool + (size_t)(rows - 1 - i) * row_bytes(&b), row_bytes(&b));
        targets[rows + i] = targets[rows - 1 - i];
    }
    assert_succeeds(flp_gpu_copy_in(gpu(), turned, (size_t)rows * row_bytes(&b), &hidden));
    assert_succeeds(flp_gpu_copy_in(gpu(), targets + rows, (size_t)rows * sizeof(*targets), &target));
    b.target = target;
    run(&b, hidden, 0, rows, NULL, b.part);
    for (int64_t i = 0; i < rows / 2; i++) {
        row_bits swap = b.part[i];
        b.part[i] = b.part[rows - 1 - i];
        b.part[rows - 1 - i] = swap;
    }
    compare(&b, "in reverse order", 0, rows, 1);
    free(pool);
    free(targets);
    tear_down(&b);
}

static const struct {
    const char *name;
    CMUnitTestFunction function;
} properties[] = {
    { "every batch has the same numerics", every_batch_has_the_same_numerics },
    { "rows alone and in batches are the same", rows_alone_and_in_batches_are_the_same },
    { "repetitions are the same", repetitions_are_the_same },
    { "other streams are the same", other_streams_are_the_same },
    { "neighbours do not matter", neighbours_do_not_matter },
    { "order does not matter", order_does_not_matter },
};
enum { PROPERTIES = sizeof(properties) / sizeof(properties[0]) };

static struct CMUnitTest test_at(int index)
{
    static char names[SETTINGS * PROPERTIES][96];
    const setting *of = &settings[index / PROPERTIES];

    snprintf(names[index], sizeof(names[index]), "%s: %s", of->name, properties[index % PROPERTIES].name);
    return flp_device_test_case(names[index], properties[index % PROPERTIES].function, of);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = flp_device_test_run_cases("rows have the same bits in every batch", SETTINGS * PROPERTIES, test_at);
    flp_device_test_finish();
    return code;
}
