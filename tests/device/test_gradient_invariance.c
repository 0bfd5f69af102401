/* The bits of the gradients: those of a row of grad_hidden depend neither on the other rows nor on their number, and all are the same in every run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_test.h"
#include "gradient_cases.h"

/* The sizes of the largest way. */
enum { MOST_HIDDEN = 1536, MOST_VOCAB = 56000, MOST_ROWS = 2304, REPEATS = 20, HIDDEN_STREAM = 41, WEIGHT_STREAM, G_STREAM };

static flp_gpu *const gpu = &flp_device_test.gpu;

typedef struct {
    const char *name;
    flp_backend backend;
    int with_forward; /* the first chunk's derivatives come from saved exponentials */
    int entropy;      /* there are upstream gradients of the entropy, too */
    int loss;         /* the gradients are those of the summed cross-entropy */
    int lends;        /* 1: the unwritten part of grad_weight holds saved exponentials; all of them, except for a whole batch of more than D rows */
    int spare;        /* 1, with lends: the whole batch's are in the workspace, which has room for more of them */
    int frozen;       /* 1: grad_hidden alone, whose product is in parts of the vocabulary */
    int slabs;        /* > 0, with lends: the whole batch has so many rows, no more than D, whose product for grad_hidden takes all slabs at once */
} way;

static const way ways[] = {
    { .name = "the backward" },
    { .name = "the backward, portable", .backend = FLP_BACKEND_PORTABLE },
    { .name = "with its forward", .with_forward = 1 },
    { .name = "with its forward, portable", .backend = FLP_BACKEND_PORTABLE, .with_forward = 1 },
    { .name = "by the entropy", .entropy = 1 },
    { .name = "by the entropy, portable", .backend = FLP_BACKEND_PORTABLE, .entropy = 1 },
    { .name = "linear_cross_entropy", .loss = 1 },
    { .name = "linear_cross_entropy, portable", .backend = FLP_BACKEND_PORTABLE, .loss = 1 },
    { .name = "linear_cross_entropy, exponentials in grad_weight", .loss = 1, .lends = 1 },
    { .name = "linear_cross_entropy, exponentials in grad_weight, portable", .backend = FLP_BACKEND_PORTABLE, .loss = 1, .lends = 1 },
    { .name = "linear_cross_entropy, exponentials in grad_weight or in the workspace", .loss = 1, .lends = 1, .spare = 1 },
    { .name = "linear_cross_entropy, several slabs at once, by warpgroups in turn", .loss = 1, .lends = 1, .slabs = 1024 },
    { .name = "linear_cross_entropy, several slabs at once", .loss = 1, .lends = 1, .slabs = 1500 },
    { .name = "a frozen head, with its forward", .with_forward = 1, .frozen = 1 },
    { .name = "a frozen head, linear_cross_entropy", .loss = 1, .frozen = 1 },
    { .name = "a frozen head, linear_cross_entropy, portable", .backend = FLP_BACKEND_PORTABLE, .loss = 1, .frozen = 1 },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static int hidden_of(const way *how)
{
    if (how->slabs > 0)
        return how->slabs > 1024 ? MOST_HIDDEN : 1152;
    return how->spare ? 512 : how->lends || how->frozen ? 1024 : 256;
}

static int vocab_of(const way *how)
{
    return how->lends || how->frozen ? MOST_VOCAB : 11000;
}

static int rows_of(const way *how)
{
    if (how->slabs > 0)
        return how->slabs;
    return how->lends || how->frozen ? MOST_ROWS : 1000; /* with a frozen head, more than a chunk of rows */
}

/* The inputs and outputs on the device, in bf16, for the rows of the whole batch. */
typedef struct {
    flp_gpu_matrix hidden, weight;
    CUdeviceptr target, lse, g, grad_hidden, grad_weight;
} batch;

static batch make_batch(const way *how)
{
    const int rows = rows_of(how), hidden_size = hidden_of(how), vocab = vocab_of(how);
    static int64_t target[MOST_ROWS];
    static float g[MOST_ROWS], lse[MOST_ROWS];
    CUdeviceptr hidden, weight;
    batch b;

    for (int i = 0; i < rows; i++) {
        target[i] = i % 5 == 3 ? -100 : (i * 7919 + 13) % vocab;
        g[i] = (float)flp_case_random_normal(G_STREAM, (uint64_t)i);
        lse[i] = 11.3f; /* near the lse of logits ~ N(0, 4); any number would do, since only bits are compared */
    }
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)rows * (size_t)hidden_size * 2, &hidden));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)vocab * (size_t)hidden_size * 2, &weight));
    b.hidden = flp_gpu_matrix_rows(hidden, FLP_BF16, rows, hidden_size);
    b.weight = flp_gpu_matrix_rows(weight, FLP_BF16, vocab, hidden_size);
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &b.hidden, HIDDEN_STREAM, 1));
    assert_succeeds(flp_gpu_kernels_fill(gpu, &flp_device_test.kernels, &b.weight, WEIGHT_STREAM, 0.125));
    assert_succeeds(flp_gpu_copy_in(gpu, target, sizeof(target), &b.target));
    assert_succeeds(flp_gpu_copy_in(gpu, lse, sizeof(lse), &b.lse));
    assert_succeeds(flp_gpu_copy_in(gpu, g, sizeof(g), &b.g));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)rows * (size_t)hidden_size * 2, &b.grad_hidden));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)vocab * (size_t)hidden_size * 2, &b.grad_weight));
    return b;
}

static void check_that_it_is_in_parts(const flp_plan *plan)
{
    assert_non_null(strstr(flp_plan_describe(plan), "grad_hidden product: in 4 parts of"));
}

/* Runs the forward, then the backward with the forward's lse. */
static void run_both(const way *how, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *given)
{
    flp_linear_logp_backward_args args = *given;
    CUdeviceptr workspace, outputs;
    flp_linear_logp_args forward;
    flp_plan *plan;

    assert_succeeds(flp_linear_logp_backward_plan_create(flp_device_test.context, problem, &plan));
    if (how->frozen)
        check_that_it_is_in_parts(plan);
    args.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, args.rows);
    assert_succeeds(flp_gpu_allocate(gpu, args.workspace_bytes, &workspace));
    assert_succeeds(flp_gpu_allocate(gpu, (size_t)(2 * args.rows) * sizeof(float), &outputs));
    args.workspace = flp_gpu_pointer(workspace);
    args.lse = (const float *)flp_gpu_pointer(outputs) + args.rows;
    forward = (flp_linear_logp_args){
        .rows = args.rows,
        .hidden = args.hidden,
        .weight = args.weight,
        .target = args.target,
        .ignore_index = args.ignore_index,
        .flags = args.flags,
        .logp = flp_gpu_pointer(outputs),
        .lse = (float *)flp_gpu_pointer(outputs) + args.rows,
        .workspace = args.workspace,
        .workspace_bytes = args.workspace_bytes,
    };
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    flp_plan_destroy(plan);
}

/* Asserts that grad_weight holds saved exponentials, and all of them unless the whole batch runs, whose spare ones are in the workspace. */
static void check_that_it_lends(const way *how, const flp_linear_cross_entropy_problem *problem)
{
    const int is_whole = problem->backward.forward.rows == rows_of(how);
    flp_plan *plan;

    assert_succeeds(flp_linear_cross_entropy_plan_create(flp_device_test.context, problem, &plan));
    assert_int_equal(!(how->spare && is_whole), strstr(flp_plan_describe(plan), "bytes of grad_weight's unwritten part") != NULL);
    if (is_whole)
        assert_int_equal(how->slabs > 0, strstr(flp_plan_describe(plan), "out_f32.adds.slabs") != NULL);
    if (is_whole || problem->backward.forward.rows <= 256)
        assert_int_equal(is_whole, strstr(flp_plan_describe(plan), "exponentials computed again: ") != NULL);
    flp_plan_destroy(plan);
}

static void run_loss(const way *how, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *given)
{
    const flp_linear_cross_entropy_problem loss = { .backward = *problem, .reduction = FLP_REDUCE_SUM };
    flp_linear_cross_entropy_args args = {
        .rows = given->rows,
        .hidden = given->hidden,
        .weight = given->weight,
        .target = given->target,
        .ignore_index = given->ignore_index,
        .flags = given->flags,
        .grad_hidden = given->grad_hidden,
        .grad_weight = given->grad_weight,
    };
    CUdeviceptr output;

    assert_succeeds(flp_gpu_allocate(gpu, sizeof(float), &output));
    args.loss = flp_gpu_pointer(output);
    if (how->lends)
        check_that_it_lends(how, &loss);
    if (how->frozen) {
        flp_plan *plan;

        assert_succeeds(flp_linear_cross_entropy_plan_create(flp_device_test.context, &loss, &plan));
        check_that_it_is_in_parts(plan);
        flp_plan_destroy(plan);
    }
    assert_succeeds(flp_linear_cross_entropy(flp_device_test.context, &loss, &args));
}

/* Computes the gradients of `rows` rows from `first` on. The entropy and its upstream gradients may be any numbers: they are lse and g again. */
static void run(const batch *b, const way *how, int first, int rows, uint16_t *grad_hidden, uint16_t *grad_weight)
{
    const int hidden_size = hidden_of(how), vocab = vocab_of(how);
    const flp_linear_logp_backward_problem problem = {
        .forward = { .dtype = FLP_BF16, .rows = rows, .hidden = hidden_size, .vocab = vocab, .target_dtype = FLP_I64, .backend = how->backend },
        .grad_hidden = FLP_BF16,
        .grad_weight = how->frozen ? FLP_NONE : FLP_BF16,
        .with_forward = how->with_forward,
        .g_entropy = how->entropy,
    };
    const flp_linear_logp_backward_args args = {
        .rows = rows,
        .hidden = flp_gpu_pointer(b->hidden.data + (CUdeviceptr)first * (CUdeviceptr)hidden_size * 2),
        .weight = flp_gpu_pointer(b->weight.data),
        .target = flp_gpu_pointer(b->target + (CUdeviceptr)first * 8),
        .ignore_index = -100,
        .flags = FLP_IGNORE_INDEX,
        .lse = flp_gpu_pointer(b->lse + (CUdeviceptr)first * 4),
        .g_logp = flp_gpu_pointer(b->g + (CUdeviceptr)first * 4),
        .grad_hidden = flp_gpu_pointer(b->grad_hidden),
        .grad_weight = how->frozen ? NULL : flp_gpu_pointer(b->grad_weight),
        .entropy = how->entropy ? flp_gpu_pointer(b->lse + (CUdeviceptr)first * 4) : NULL,
        .g_entropy = how->entropy ? flp_gpu_pointer(b->g + (CUdeviceptr)first * 4) : NULL,
    };

    assert_succeeds(flp_gpu_set(gpu, b->grad_hidden, 0xff, (size_t)rows_of(how) * (size_t)hidden_size * 2));
    assert_succeeds(flp_gpu_set(gpu, b->grad_weight, 0xff, (size_t)vocab * (size_t)hidden_size * 2));
    if (how->loss)
        run_loss(how, &problem, &args);
    else if (how->with_forward)
        run_both(how, &problem, &args);
    else
        assert_succeeds(flp_linear_logp_backward(flp_device_test.context, &problem, &args));
    assert_succeeds(flp_gpu_synchronize(gpu));
    assert_succeeds(flp_gpu_download(gpu, grad_hidden, b->grad_hidden, (size_t)rows * (size_t)hidden_size * 2));
    assert_succeeds(flp_gpu_download(gpu, grad_weight, b->grad_weight, (size_t)vocab * (size_t)hidden_size * 2));
}

static void a_row_of_grad_hidden_has_the_same_bits_in_every_batch(void **state)
{
    static const int counts[] = { 1, 63, 64, 65, 129, 300 };
    static uint16_t all[MOST_ROWS * MOST_HIDDEN], part[MOST_ROWS * MOST_HIDDEN], weight[MOST_VOCAB * MOST_HIDDEN];
    const way *how = *state;
    batch b;

    flp_device_test_need_kernels();
    b = make_batch(how);
    run(&b, how, 0, rows_of(how), all, weight);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        for (int first = 0; first <= 400; first += 200) {
            run(&b, how, first, counts[i], part, weight);
            assert_memory_equal(part, all + first * hidden_of(how), (size_t)counts[i] * (size_t)hidden_of(how) * 2);
        }
}

static void gradients_repeat_bit_for_bit(void **state)
{
    static uint16_t hidden[2][MOST_ROWS * MOST_HIDDEN], weight[2][MOST_VOCAB * MOST_HIDDEN];
    const way *how = *state;
    batch b;

    flp_device_test_need_kernels();
    b = make_batch(how);
    run(&b, how, 0, rows_of(how), hidden[0], weight[0]);
    for (int i = 1; i < REPEATS; i++) {
        run(&b, how, 0, rows_of(how), hidden[1], weight[1]);
        assert_memory_equal(hidden[0], hidden[1], sizeof(hidden[0]));
        assert_memory_equal(weight[0], weight[1], sizeof(weight[0]));
    }
}

static struct CMUnitTest test_at(int index)
{
    static char names[2 * WAYS][112];
    const way *how = &ways[index / 2];

    snprintf(names[index], sizeof(names[index]), "%s: %s", how->name,
             index % 2 ? "gradients repeat bit for bit" : "a row of grad_hidden has the same bits in every batch");
    return flp_device_test_case(names[index], index % 2 ? gradients_repeat_bit_for_bit : a_row_of_grad_hidden_has_the_same_bits_in_every_batch, how);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = flp_device_test_run_cases("gradients' bits", 2 * WAYS, test_at);
    flp_device_test_finish();
    return code;
}
