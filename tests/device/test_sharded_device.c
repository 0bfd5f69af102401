/* linear_logp, its backward and losses over the ranks of an NCCL communicator, with a GPU and a thread for each rank. The values must be those of one process
 * without a GPU. The bits must be the same on every rank, and the same in a first call, which overlaps nothing, in a second one and from a CUDA graph. If ranks
 * disagree about the call, every rank must get an error. Skipped with fewer than two GPUs or without NCCL. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "cpu/convert.h"
#include "cuda/library.h"
#include "cuda/nccl_abi.h"
#include "device/device_test.h"

enum { N = 200, D = 128, V = 5000, MOST_RANKS = 8, ALIGNMENT = 256 };
enum { CROSS_ENTROPY, POLICY, LOSSES };
enum { FIRST, AGAIN, REPLAYED, RUNS };

/* The inputs and results of the calls, on the host or on a device. */
typedef struct {
    _Alignas(ALIGNMENT) uint16_t hidden[N * D];
    _Alignas(ALIGNMENT) uint16_t weight[V * D];
    _Alignas(ALIGNMENT) int64_t target[N];
    _Alignas(ALIGNMENT) float ones[N], advantages[N], old_logp[N];
} tensors;
typedef struct {
    _Alignas(ALIGNMENT) float logp[N];
    _Alignas(ALIGNMENT) float lse[N];
    _Alignas(ALIGNMENT) float grad_hidden[N * D];
    _Alignas(ALIGNMENT) uint16_t grad_weight[V * D]; /* a rank has only the rows of its shard */
    struct {
        _Alignas(ALIGNMENT) float loss;
        _Alignas(ALIGNMENT) float grad_hidden[N * D];
        _Alignas(ALIGNMENT) uint16_t grad_weight[V * D];
    } of[LOSSES];
} results;

/* One rank: its inputs and its results. */
typedef struct {
    int rank, ranks, rows; /* rows: those of its calls */
    ncclComm_t communicator;
    const tensors *inputs;
    flp_status status;
    char message[256];
    int has_met; /* 1: it has waited for the other ranks, between making its graph and launching it */
    results run[RUNS];
} rank_job;

static const flp_linear_logp_problem whole = { .dtype = FLP_BF16, .rows = N, .hidden = D, .vocab = V };
static ncclComm_t communicators[MOST_RANKS];
static int ranks_here;
static pthread_barrier_t graphs_are_made;

/* 1: there are two GPUs, and an NCCL that makes communicators for them. */
static int make_communicators(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    void *library = loader->open("libnccl.so.2");
    ncclResult_t (*init_all)(ncclComm_t *, int, const int *) =
        library ? (ncclResult_t(*)(ncclComm_t *, int, const int *))loader->symbol(library, "ncclCommInitAll") : NULL;
    int devices = 0;

    if (!init_all || flp_device_count(&devices) != FLP_OK || devices < 2)
        return 0;
    ranks_here = devices < MOST_RANKS ? devices : MOST_RANKS;
    assert_int_equal(NCCL_SUCCESS, init_all(communicators, ranks_here, NULL));
    return 1;
}

static void need_ranks(void)
{
    if (ranks_here == 0 && !make_communicators()) {
        printf("# fewer than two GPUs, or no NCCL\n");
        ranks_here = 1;
    }
    if (ranks_here < 2)
        skip();
}

static tensors *make_tensors(void)
{
    tensors *made = aligned_alloc(ALIGNMENT, sizeof(*made));
    float value;

    assert_non_null(made);
    for (int i = 0; i < N * D; i++) {
        value = (float)flp_case_random_normal(1, (uint64_t)i);
        flp_convert_from_f32(FLP_BF16, &value, &made->hidden[i], 1);
    }
    for (int i = 0; i < V * D; i++) {
        value = (float)(flp_case_random_normal(2, (uint64_t)i) * 2 / sqrt(D));
        flp_convert_from_f32(FLP_BF16, &value, &made->weight[i], 1);
    }
    for (int i = 0; i < N; i++) {
        made->target[i] = i * 7919 % V;
        made->ones[i] = 1;
        made->advantages[i] = (float)flp_case_random_normal(3, (uint64_t)i);
        made->old_logp[i] = (float)(flp_case_random_normal(4, (uint64_t)i) / 4 - 10); /* near logp, so that some ratios are clipped and some are not */
    }
    return made;
}

static flp_linear_logp_problem shard_of(int rank, int ranks)
{
    flp_linear_logp_problem shard = whole;

    shard.vocab_total = V;
    shard.vocab_first = (int64_t)rank * V / ranks / 8 * 8;
    shard.vocab = (rank + 1 == ranks ? V : (int64_t)(rank + 1) * V / ranks / 8 * 8) - shard.vocab_first;
    return shard;
}

/* ---- the calls ---- */

static flp_linear_logp_backward_problem backward_of(const flp_linear_logp_problem *forward)
{
    return (flp_linear_logp_backward_problem){ .forward = *forward, .grad_hidden = FLP_F32, .grad_weight = FLP_BF16 };
}

static flp_linear_cross_entropy_problem loss_of(const flp_linear_logp_problem *forward, int loss)
{
    flp_linear_cross_entropy_problem problem = { .backward = backward_of(forward), .reduction = FLP_REDUCE_SUM };

    if (loss == POLICY)
        strcpy(problem.token_loss, "policy_gradient");
    return problem;
}

/* inputs, to: what the call reads and writes; a shard reads its part of the weight. */
static flp_linear_logp_args forward_args(const flp_linear_logp_problem *problem, const tensors *inputs, results *to)
{
    return (flp_linear_logp_args){
        .rows = N, .hidden = inputs->hidden, .weight = inputs->weight + problem->vocab_first * D, .target = inputs->target, .logp = to->logp, .lse = to->lse
    };
}

static flp_linear_logp_backward_args backward_args(const flp_linear_logp_problem *problem, const tensors *inputs, results *to)
{
    return (flp_linear_logp_backward_args){ .rows = N,
                                            .hidden = inputs->hidden,
                                            .weight = inputs->weight + problem->vocab_first * D,
                                            .target = inputs->target,
                                            .lse = to->lse,
                                            .logp = to->logp,
                                            .g_logp = inputs->ones,
                                            .grad_hidden = to->grad_hidden,
                                            .grad_weight = to->grad_weight + problem->vocab_first * D };
}

static flp_linear_cross_entropy_args loss_args(const flp_linear_logp_problem *problem, const tensors *inputs, results *to, int loss, flp_token_input arrays[2])
{
    arrays[0] = (flp_token_input){ "advantages", inputs->advantages };
    arrays[1] = (flp_token_input){ "old_logp", inputs->old_logp };
    return (flp_linear_cross_entropy_args){ .rows = N,
                                            .hidden = inputs->hidden,
                                            .weight = inputs->weight + problem->vocab_first * D,
                                            .target = inputs->target,
                                            .token_inputs = loss == POLICY ? arrays : NULL,
                                            .token_input_count = loss == POLICY ? 2 : 0,
                                            .loss = &to->of[loss].loss,
                                            .grad_hidden = to->of[loss].grad_hidden,
                                            .grad_weight = to->of[loss].grad_weight + problem->vocab_first * D };
}

/* ---- on one rank ---- */

/* A rank's context, stream and device memory. */
typedef struct {
    const flp_driver *driver;
    flp_context *context;
    flp_ranks *ranks;
    CUstream stream;
    tensors *inputs;
    results *to;
    float *partials;
} place;

static flp_status allocate(const flp_driver *driver, size_t bytes, void **to)
{
    CUdeviceptr made = 0;
    flp_status status = flp_driver_check(driver, driver->memory_allocate(&made, bytes), "cuMemAlloc");

    *to = flp_gpu_pointer(made);
    return status;
}

/* The device memory is freed with the primary context. */
static flp_status open_place(rank_job *job, flp_context *context, const flp_driver *driver, place *at)
{
    flp_status status;
    void *inputs, *to, *partials;

    *at = (place){ .driver = driver, .context = context };
    status = flp_driver_check(driver, driver->stream_create(&at->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (status == FLP_OK)
        status = allocate(driver, sizeof(tensors), &inputs);
    if (status == FLP_OK)
        status = allocate(driver, sizeof(results), &to);
    if (status == FLP_OK)
        status = allocate(driver, (size_t)job->ranks * N * FLP_PARTIAL_FLOATS * sizeof(float), &partials);
    if (status != FLP_OK)
        return status;
    at->inputs = inputs;
    at->to = to;
    at->partials = partials;
    status = flp_driver_check(driver, driver->copy_to_device((CUdeviceptr)(uintptr_t)inputs, job->inputs, sizeof(tensors), at->stream), "copy to the device");
    return status == FLP_OK ? flp_ranks_create(context, job->communicator, &at->ranks) : status;
}

static flp_status run_loss(const rank_job *job, const place *at, int loss)
{
    const flp_linear_logp_problem shard = shard_of(job->rank, job->ranks);
    const flp_linear_cross_entropy_problem problem = loss_of(&shard, loss);
    flp_token_input arrays[2];
    flp_linear_cross_entropy_args args = loss_args(&shard, at->inputs, at->to, loss, arrays);

    args.rows = job->rows;
    args.partials = at->partials;
    args.multiprocessors_left = 8;
    args.stream = at->stream;
    return flp_linear_cross_entropy_sharded(at->ranks, &problem, &args);
}

static flp_status run_calls(const rank_job *job, const place *at)
{
    const flp_linear_logp_problem shard = shard_of(job->rank, job->ranks);
    const flp_linear_logp_backward_problem backward = backward_of(&shard);
    flp_linear_logp_args args = forward_args(&shard, at->inputs, at->to);
    flp_linear_logp_backward_args gradients = backward_args(&shard, at->inputs, at->to);
    flp_status status;

    args.rows = gradients.rows = job->rows;
    args.partials = at->partials;
    args.stream = gradients.stream = at->stream;
    gradients.multiprocessors_left = 8;
    status = flp_linear_logp_sharded(at->ranks, &shard, &args);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_sharded(at->ranks, &backward, &gradients);
    for (int loss = 0; status == FLP_OK && loss < LOSSES; loss++)
        status = run_loss(job, at, loss);
    return status;
}

/* Fills the results with 0xff, which shows where the calls write nothing. */
static flp_status blank(const place *at)
{
    return flp_driver_check(at->driver, at->driver->memory_set((CUdeviceptr)(uintptr_t)at->to, 0xff, sizeof(results), at->stream), "cuMemsetD8Async");
}

static flp_status copy_out(const place *at, results *to)
{
    flp_status status = flp_driver_check(at->driver, at->driver->copy_to_host(to, (CUdeviceptr)(uintptr_t)at->to, sizeof(*to), at->stream), "copy to the host");

    return status == FLP_OK ? flp_driver_check(at->driver, at->driver->stream_synchronize(at->stream), "cuStreamSynchronize") : status;
}

static flp_status capture(const rank_job *job, const place *at, CUgraphExec *exec)
{
    enum { RELAXED = 2 }; /* the threads of other ranks may make any calls meanwhile */
    const flp_gpu *gpu = &flp_device_test.gpu;
    CUgraph graph = NULL;
    flp_status status = flp_gpu_check(gpu, gpu->capture_begin(at->stream, RELAXED), "cuStreamBeginCapture"), ended;

    if (status != FLP_OK)
        return status;
    status = run_calls(job, at);
    ended = flp_gpu_check(gpu, gpu->capture_end(at->stream, &graph), "cuStreamEndCapture");
    if (status == FLP_OK)
        status = ended;
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->graph_instantiate(exec, graph, 0), "cuGraphInstantiate");
    if (graph)
        gpu->graph_destroy(graph);
    return status;
}

/* Waits until all ranks have made their graphs, so that no graph is made while another rank's graph waits on a GPU. Each rank comes here once, even after a
 * failure. */
static void meet(rank_job *job)
{
    if (!job->has_met)
        pthread_barrier_wait(&graphs_are_made);
    job->has_met = 1;
}

static flp_status replay(rank_job *job, const place *at)
{
    const flp_gpu *gpu = &flp_device_test.gpu;
    CUgraphExec exec = NULL;
    flp_status status = capture(job, at, &exec);

    meet(job);
    for (int i = 0; status == FLP_OK && i < 2; i++) {
        status = blank(at);
        if (status == FLP_OK)
            status = flp_gpu_check(gpu, gpu->graph_launch(exec, at->stream), "cuGraphLaunch");
    }
    if (status == FLP_OK)
        status = flp_driver_check(at->driver, at->driver->stream_synchronize(at->stream), "cuStreamSynchronize");
    if (exec)
        gpu->graph_exec_destroy(exec);
    return status;
}

static flp_status run_all(rank_job *job, const place *at)
{
    flp_status status = FLP_OK;

    for (int run = 0; status == FLP_OK && run < RUNS; run++) {
        status = blank(at);
        if (status == FLP_OK)
            status = run == REPLAYED ? replay(job, at) : run_calls(job, at);
        if (status == FLP_OK)
            status = copy_out(at, &job->run[run]);
    }
    return status;
}

static flp_status run_here(rank_job *job, flp_context *context, const flp_driver *driver)
{
    place at;
    flp_status status = open_place(job, context, driver, &at);

    if (status == FLP_OK)
        status = run_all(job, &at);
    if (status != FLP_OK)
        snprintf(job->message, sizeof(job->message), "%s", flp_error_message());
    flp_ranks_destroy(at.ranks);
    if (at.stream)
        driver->stream_destroy(at.stream);
    return status;
}

static void *run_rank(void *data)
{
    rank_job *job = data;
    const flp_driver *driver;
    flp_context *context = NULL;
    CUdevice device;
    CUcontext primary;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->device_get(&device, job->rank), "cuDeviceGet");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->primary_retain(&primary, device), "cuDevicePrimaryCtxRetain");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->context_set_current(primary), "cuCtxSetCurrent");
    if (status == FLP_OK)
        status = flp_context_create(NULL, &context);
    if (status != FLP_OK)
        snprintf(job->message, sizeof(job->message), "%s", flp_error_message());
    job->status = status == FLP_OK ? run_here(job, context, driver) : status;
    meet(job);
    flp_context_destroy(context);
    return NULL;
}

/* rows: of rank 1's calls; the others have N. */
static rank_job *run_ranks(const tensors *inputs, int rows)
{
    rank_job *jobs = aligned_alloc(ALIGNMENT, (size_t)ranks_here * sizeof(*jobs));
    pthread_t threads[MOST_RANKS];

    assert_non_null(jobs);
    assert_int_equal(0, pthread_barrier_init(&graphs_are_made, NULL, (unsigned)ranks_here));
    for (int rank = 0; rank < ranks_here; rank++) {
        memset(&jobs[rank], 0, sizeof(jobs[rank]));
        jobs[rank].rank = rank;
        jobs[rank].ranks = ranks_here;
        jobs[rank].rows = rank == 1 ? rows : N;
        jobs[rank].communicator = communicators[rank];
        jobs[rank].inputs = inputs;
        assert_int_equal(0, pthread_create(&threads[rank], NULL, run_rank, &jobs[rank]));
    }
    for (int rank = 0; rank < ranks_here; rank++)
        pthread_join(threads[rank], NULL);
    pthread_barrier_destroy(&graphs_are_made);
    return jobs;
}

/* ---- comparison with one process without a GPU ---- */

static results *compute_on_host(const tensors *t)
{
    const flp_context_options options = { .cache_directory = "", .flags = FLP_CONTEXT_NO_GPU };
    results *made = aligned_alloc(ALIGNMENT, sizeof(*made));
    const flp_linear_logp_args args = forward_args(&whole, t, made);
    const flp_linear_logp_backward_problem problem = backward_of(&whole);
    const flp_linear_logp_backward_args gradients = backward_args(&whole, t, made);
    flp_context *context;

    assert_non_null(made);
    assert_succeeds(flp_context_create(&options, &context));
    assert_succeeds(flp_linear_logp(context, &whole, &args));
    assert_succeeds(flp_linear_logp_backward(context, &problem, &gradients));
    for (int loss = 0; loss < LOSSES; loss++) {
        const flp_linear_cross_entropy_problem of = loss_of(&whole, loss);
        flp_token_input arrays[2];
        const flp_linear_cross_entropy_args of_args = loss_args(&whole, t, made, loss, arrays);
        assert_succeeds(flp_linear_cross_entropy(context, &of, &of_args));
    }
    flp_context_destroy(context);
    return made;
}

static float widen(uint16_t bits)
{
    float value;

    flp_convert_to_f32(FLP_BF16, &bits, &value, 1);
    return value;
}

/* off, size, unit: squares of norms: of the difference, of the wanted values, and the allowed ratio of both. */
static void assert_near(const char *what, int count, double off, double size, double unit)
{
    if (!(off <= unit * size))
        fail_msg("%s, %d numbers: off by %g of %g, allowed is %g of it", what, count, sqrt(off), sqrt(size), sqrt(unit));
}

/* dlogit and the results are rounded to bf16 on both sides, each by at most half a unit in the last place: in norm they differ by at most 4 x 2^-9. */
static const double allowed = 0x1p-7 * 0x1p-7;

static void check_hidden(const char *what, const float *got, const float *wanted)
{
    double off = 0, size = 0;

    for (int i = 0; i < N * D; i++) {
        off += pow((double)got[i] - (double)wanted[i], 2);
        size += pow((double)wanted[i], 2);
    }
    assert_near(what, N * D, off, size, allowed);
}

/* Checks the rows first .. first + count - 1, those of a rank. */
static void check_weight(const char *what, const uint16_t *got, const uint16_t *wanted, int64_t first, int64_t count)
{
    double off = 0, size = 0;

    for (int64_t i = first * D; i < (first + count) * D; i++) {
        off += pow((double)widen(got[i]) - (double)widen(wanted[i]), 2);
        size += pow((double)widen(wanted[i]), 2);
    }
    assert_near(what, (int)count * D, off, size, allowed);
}

/* Allowed for logp: 2^-20, 16 roundings of fp32, of an lse of about 10. A loss is a sum of N, each times its advantage and ratio, which are at most some 8. */
static void check_values(const rank_job *job, const results *wanted)
{
    const flp_linear_logp_problem shard = shard_of(job->rank, job->ranks);
    const results *got = &job->run[FIRST];

    for (int i = 0; i < N; i++)
        assert_true(fabsf(got->logp[i] - wanted->logp[i]) <= 0x1p-20f * 16);
    check_hidden("grad_hidden", got->grad_hidden, wanted->grad_hidden);
    check_weight("grad_weight", got->grad_weight, wanted->grad_weight, shard.vocab_first, shard.vocab);
    for (int loss = 0; loss < LOSSES; loss++) {
        const char *of = loss == POLICY ? "the policy loss" : "the cross-entropy";
        assert_true(fabsf(got->of[loss].loss - wanted->of[loss].loss) <= 0x1p-20f * 16 * N * 8);
        check_hidden(of, got->of[loss].grad_hidden, wanted->of[loss].grad_hidden);
        check_weight(of, got->of[loss].grad_weight, wanted->of[loss].grad_weight, shard.vocab_first, shard.vocab);
    }
}

static void assert_same_on_ranks(const results *one, const results *other)
{
    assert_memory_equal(one->logp, other->logp, sizeof(one->logp));
    assert_memory_equal(one->lse, other->lse, sizeof(one->lse));
    assert_memory_equal(one->grad_hidden, other->grad_hidden, sizeof(one->grad_hidden));
    for (int loss = 0; loss < LOSSES; loss++) {
        assert_memory_equal(&one->of[loss].loss, &other->of[loss].loss, sizeof(float));
        assert_memory_equal(one->of[loss].grad_hidden, other->of[loss].grad_hidden, sizeof(one->of[loss].grad_hidden));
    }
}

static void ranks_give_the_values_of_one_process_and_all_the_same(void **state)
{
    rank_job *jobs;
    results *wanted;
    tensors *t;

    (void)state;
    need_ranks();
    t = make_tensors();
    wanted = compute_on_host(t);
    jobs = run_ranks(t, N);
    for (int rank = 0; rank < ranks_here; rank++) {
        if (jobs[rank].status != FLP_OK)
            fail_msg("rank %d: %s", rank, jobs[rank].message);
        assert_same_on_ranks(&jobs[0].run[FIRST], &jobs[rank].run[FIRST]);
        for (int run = AGAIN; run < RUNS; run++)
            assert_memory_equal(&jobs[rank].run[FIRST], &jobs[rank].run[run], sizeof(results));
        check_values(&jobs[rank], wanted);
    }
    free(jobs);
    free(wanted);
    free(t);
}

static void ranks_that_disagree_are_told_on_every_rank(void **state)
{
    rank_job *jobs;
    tensors *t;

    (void)state;
    need_ranks();
    t = make_tensors();
    jobs = run_ranks(t, N - 1);
    for (int rank = 0; rank < ranks_here; rank++) {
        assert_int_equal(FLP_BAD_ARGUMENT, jobs[rank].status);
        assert_contains(jobs[rank].message, "ranks disagree");
    }
    free(jobs);
    free(t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        flp_device_test_of(ranks_give_the_values_of_one_process_and_all_the_same),
        flp_device_test_of(ranks_that_disagree_are_told_on_every_rank),
    };

    return flp_device_test_main("linear_logp over ranks", tests, argc, argv);
}
