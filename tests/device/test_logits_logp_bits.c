/* logits_logp on the GPU: a row's bits depend neither on other rows nor on the form nor on the alignment; and plans run in graphs on several streams. */
#include <stdlib.h>
#include <string.h>

#include "device/logits_on_device.h"

static void run(flp_logits_on_device *on, flp_logits_form form)
{
    flp_logits_on_device_prepare(on, form);
    flp_logits_on_device_execute(on, form, FLP_BACKEND_AUTO);
}

enum { COMPARED = 8 };
typedef struct {
    uint32_t logp[COMPARED], lse[COMPARED], entropy[COMPARED];
} first_bits;

static void keep_bits(const flp_logits_on_device *on, int count, first_bits *bits)
{
    memcpy(bits->logp, flp_logits_on_device_bits(on, FLP_LOGITS_LOGP), (size_t)count * sizeof(uint32_t));
    memcpy(bits->lse, flp_logits_on_device_bits(on, FLP_LOGITS_LSE), (size_t)count * sizeof(uint32_t));
    memcpy(bits->entropy, flp_logits_on_device_bits(on, FLP_LOGITS_ENTROPY), (size_t)count * sizeof(uint32_t));
}

/* Runs the forward of `rows` rows of a bf16 case, from `first` on. */
static void run_some(flp_logits_on_device *on, int first, int rows)
{
    flp_logits_logp_args args;

    flp_logits_on_device_prepare(on, FLP_LOGITS_FORWARD);
    flp_logits_case_forward(&on->c, &on->data, on->bases, &args);
    args.rows = rows;
    args.logits = (const char *)args.logits + first * on->c.problem.logits_stride * 2;
    args.target = (const int64_t *)args.target + first;
    assert_succeeds(flp_logits_logp(flp_device_test.context, &on->c.problem, &args));
    flp_logits_on_device_fetch(on);
}

/* Each of 900 rows is computed by one block; each of 100 by many blocks, whose sums are merged from scratch memory; a single row by a cluster. */
static void a_rows_bits_do_not_follow_its_neighbours(void **state)
{
    flp_logits_on_device on = { .c = { .name = "bits", .problem = { .dtype = FLP_BF16, .rows = 900, .vocab = 16401, .entropy = 1 } } };
    first_bits together, other = { 0 };

    (void)state;
    flp_logits_case_complete(0, &on.c);
    flp_logits_on_device_set_up(&on);
    run(&on, FLP_LOGITS_FORWARD);
    keep_bits(&on, COMPARED, &together);
    run_some(&on, 0, 100);
    keep_bits(&on, COMPARED, &other);
    assert_memory_equal(&together, &other, sizeof(other));
    for (int i = 0; i < COMPARED; i++) {
        first_bits alone;
        run_some(&on, i, 1);
        keep_bits(&on, 1, &alone);
        other.logp[i] = alone.logp[0];
        other.lse[i] = alone.lse[0];
        other.entropy[i] = alone.entropy[0];
    }
    assert_memory_equal(&together, &other, sizeof(other));
    flp_logits_on_device_tear_down(&on);
}

/* Fused in clusters, and in separate launches: the results are the forward's, and the gradients the same. */
static void the_fused_form_has_the_forwards_bits(void **state)
{
    flp_logits_on_device on = { .c = { .name = "bits", .problem = { .dtype = FLP_F32, .rows = 120, .vocab = 40004, .entropy = 1 } } };
    const size_t bytes = 120 * sizeof(float), row_bytes = 40004 * sizeof(float);
    float *lse = malloc(bytes), *gradients = malloc(row_bytes);
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args args;

    (void)state;
    flp_logits_case_complete(0, &on.c);
    flp_logits_on_device_set_up(&on);
    run(&on, FLP_LOGITS_FORWARD);
    memcpy(lse, flp_logits_on_device_bits(&on, FLP_LOGITS_LSE), bytes);
    run(&on, FLP_LOGITS_FUSED);
    assert_memory_equal(lse, flp_logits_on_device_bits(&on, FLP_LOGITS_LSE), bytes);
    memcpy(gradients, flp_logits_on_device_bits(&on, FLP_LOGITS_GRAD), row_bytes);
    flp_logits_on_device_prepare(&on, FLP_LOGITS_FUSED);
    flp_logits_case_backward(&on.c, &on.data, on.bases, FLP_LOGITS_FUSED, &problem, &args);
    args.rows = 1; /* too few for the fused kernel */
    assert_succeeds(flp_logits_logp_backward(flp_device_test.context, &problem, &args));
    flp_logits_on_device_fetch(&on);
    assert_memory_equal(lse, flp_logits_on_device_bits(&on, FLP_LOGITS_LSE), sizeof(float));
    assert_memory_equal(gradients, flp_logits_on_device_bits(&on, FLP_LOGITS_GRAD), row_bytes);
    free(lse);
    free(gradients);
    flp_logits_on_device_tear_down(&on);
}

static void the_alignment_changes_no_bit(void **state)
{
    flp_logits_on_device aligned = { .c = { .name = "bits", .problem = { .dtype = FLP_BF16, .rows = 21, .vocab = 16400, .entropy = 1 } } }, moved;
    const size_t bytes = 21 * sizeof(float);
    float lse[21];

    (void)state;
    flp_logits_case_complete(0, &aligned.c);
    moved = aligned;
    moved.c.misalignment = 2;
    flp_logits_case_complete(0, &moved.c);
    flp_logits_on_device_set_up(&aligned);
    run(&aligned, FLP_LOGITS_FORWARD);
    memcpy(lse, flp_logits_on_device_bits(&aligned, FLP_LOGITS_LSE), bytes);
    flp_logits_on_device_tear_down(&aligned);
    flp_logits_on_device_set_up(&moved);
    run(&moved, FLP_LOGITS_FORWARD);
    assert_memory_equal(lse, flp_logits_on_device_bits(&moved, FLP_LOGITS_LSE), bytes);
    flp_logits_on_device_tear_down(&moved);
}

/* ---- graphs */

/* Captures a graph that scores one row of the case. */
static CUgraphExec capture_row(const flp_logits_on_device *on, flp_plan *plan, int row, CUstream stream)
{
    const flp_gpu *gpu = &flp_device_test.gpu;
    flp_logits_logp_args args;
    CUgraph graph;
    CUgraphExec exec;

    flp_logits_case_forward(&on->c, &on->data, on->bases, &args);
    args.rows = 1;
    args.logits = (const char *)args.logits + row * on->c.problem.logits_stride * 2;
    args.target = (const int64_t *)args.target + row;
    args.logp += row;
    args.lse += row;
    args.entropy += row;
    args.argmax += row;
    args.stream = stream;
    assert_succeeds(flp_gpu_check(gpu, gpu->capture_begin(stream, 0), "cuStreamBeginCapture"));
    for (int i = 0; i < 16; i++)
        assert_succeeds(flp_logits_logp_execute(plan, &args));
    assert_succeeds(flp_gpu_check(gpu, gpu->capture_end(stream, &graph), "cuStreamEndCapture"));
    assert_succeeds(flp_gpu_check(gpu, gpu->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate"));
    gpu->graph_destroy(graph);
    return exec;
}

static void one_plan_replays_on_two_streams_at_once(void **state)
{
    enum { STREAMS = 2, NON_BLOCKING = 1 };
    const flp_gpu *gpu = &flp_device_test.gpu;
    flp_logits_on_device on = { .c = { .name = "graphs", .problem = { .dtype = FLP_BF16, .rows = STREAMS, .vocab = 262144, .argmax = 1, .entropy = 1 } } };
    CUstream streams[STREAMS];
    CUgraphExec graphs[STREAMS];
    char message[256];
    flp_plan *plan;

    (void)state;
    flp_logits_case_complete(0, &on.c);
    flp_logits_on_device_set_up(&on);
    flp_logits_on_device_prepare(&on, FLP_LOGITS_FORWARD);
    assert_succeeds(flp_logits_logp_plan_create(flp_device_test.context, &on.c.problem, &plan));
    for (int i = 0; i < STREAMS; i++) {
        assert_succeeds(flp_gpu_check(gpu, gpu->driver->stream_create(&streams[i], NON_BLOCKING), "cuStreamCreate"));
        graphs[i] = capture_row(&on, plan, i, streams[i]);
    }
    for (int i = 0; i < 8 * STREAMS; i++)
        assert_succeeds(flp_gpu_check(gpu, gpu->graph_launch(graphs[i % STREAMS], streams[i % STREAMS]), "cuGraphLaunch"));
    flp_logits_on_device_fetch(&on);
    if (!flp_logits_case_check(&on.c, &on.data, &on.wanted, FLP_LOGITS_FORWARD, message, sizeof(message)))
        fail_msg("%s", message);
    for (int i = 0; i < STREAMS; i++) {
        gpu->graph_exec_destroy(graphs[i]);
        gpu->driver->stream_destroy(streams[i]);
    }
    flp_plan_destroy(plan);
    flp_logits_on_device_tear_down(&on);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        flp_device_test_of(a_rows_bits_do_not_follow_its_neighbours),
        flp_device_test_of(the_fused_form_has_the_forwards_bits),
        flp_device_test_of(the_alignment_changes_no_bit),
        flp_device_test_of(one_plan_replays_on_two_streams_at_once),
    };

    return flp_device_test_main("bits and graphs of logits_logp", tests, argc, argv);
}
