/* linear_logp over the ranks of an NCCL communicator, a GPU and a thread each: the values of one process without a GPU, the same bits on every rank, and an
 * error on every rank where they disagree. Skipped with fewer than two GPUs or without NCCL. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "cpu/convert.h"
#include "cuda/library.h"
#include "cuda/nccl_abi.h"
#include "device/device_test.h"

enum { N = 200, D = 128, V = 5000, MOST_RANKS = 8 };

typedef struct {
    uint16_t hidden[N * D], weight[V * D];
    int64_t target[N];
    float ones[N], logp[N], lse[N], grad_hidden[N * D];
} tensors;

/* One rank: what it is given, and what it got. */
typedef struct {
    int rank, ranks, rows; /* rows of its call */
    ncclComm_t communicator;
    const tensors *inputs;
    flp_status status;
    char message[256];
    float logp[N], lse[N], grad_hidden[N * D];
} rank_job;

static const flp_linear_logp_problem whole = { .dtype = FLP_BF16, .rows = N, .hidden = D, .vocab = V };
static ncclComm_t communicators[MOST_RANKS];
static int ranks_here;

/* 1 where there are two GPUs and an NCCL that makes communicators of them. */
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
    tensors *made = calloc(1, sizeof(*made));
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

static flp_status copy_in(const flp_driver *driver, const void *from, size_t bytes, void **to)
{
    CUdeviceptr made = 0;
    flp_status status = flp_driver_check(driver, driver->memory_allocate(&made, bytes), "cuMemAlloc");

    *to = flp_gpu_pointer(made);
    return status == FLP_OK && from ? flp_driver_check(driver, driver->copy_to_device(made, from, bytes, NULL), "copy to the device") : status;
}

static flp_status copy_out(const flp_driver *driver, const void *from, size_t bytes, void *to)
{
    flp_status status = flp_driver_check(driver, driver->copy_to_host(to, (CUdeviceptr)(uintptr_t)from, bytes, NULL), "copy to the host");

    return status == FLP_OK ? flp_driver_check(driver, driver->stream_synchronize(NULL), "cuStreamSynchronize") : status;
}

/* Forward twice (the second compares nothing), then backward. The device memory goes with the primary context. */
static flp_status run_calls(rank_job *job, flp_context *context, const flp_driver *driver)
{
    const flp_linear_logp_problem shard = shard_of(job->rank, job->ranks);
    const flp_linear_logp_backward_problem backward = { .forward = shard, .grad_hidden = FLP_F32 };
    flp_linear_logp_args args = { .rows = job->rows };
    flp_linear_logp_backward_args gradients = { .rows = job->rows };
    void *hidden, *weight, *target, *ones, *partials, *logp, *lse, *grad_hidden;
    flp_ranks *ranks = NULL;
    flp_status status = copy_in(driver, job->inputs->hidden, sizeof(job->inputs->hidden), &hidden);

    if (status == FLP_OK)
        status = copy_in(driver, job->inputs->weight + shard.vocab_first * D, (size_t)shard.vocab * D * sizeof(uint16_t), &weight);
    if (status == FLP_OK)
        status = copy_in(driver, job->inputs->target, sizeof(job->inputs->target), &target);
    if (status == FLP_OK)
        status = copy_in(driver, job->inputs->ones, sizeof(job->inputs->ones), &ones);
    if (status == FLP_OK)
        status = copy_in(driver, NULL, (size_t)job->ranks * N * FLP_PARTIAL_FLOATS * sizeof(float), &partials);
    if (status == FLP_OK)
        status = copy_in(driver, NULL, sizeof(job->logp), &logp);
    if (status == FLP_OK)
        status = copy_in(driver, NULL, sizeof(job->lse), &lse);
    if (status == FLP_OK)
        status = copy_in(driver, NULL, sizeof(job->grad_hidden), &grad_hidden);
    if (status == FLP_OK)
        status = flp_ranks_create(context, job->communicator, &ranks);
    if (status != FLP_OK)
        return status;
    args.hidden = gradients.hidden = hidden;
    args.weight = gradients.weight = weight;
    args.target = gradients.target = target;
    args.partials = partials;
    args.logp = logp;
    args.lse = lse;
    gradients.lse = lse;
    gradients.logp = logp;
    gradients.g_logp = ones;
    gradients.grad_hidden = grad_hidden;
    for (int i = 0; status == FLP_OK && i < 2; i++)
        status = flp_linear_logp_sharded(ranks, &shard, &args);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_sharded(ranks, &backward, &gradients);
    if (status == FLP_OK)
        status = copy_out(driver, logp, sizeof(job->logp), job->logp);
    if (status == FLP_OK)
        status = copy_out(driver, lse, sizeof(job->lse), job->lse);
    if (status == FLP_OK)
        status = copy_out(driver, grad_hidden, sizeof(job->grad_hidden), job->grad_hidden);
    if (status != FLP_OK)
        snprintf(job->message, sizeof(job->message), "%s", flp_error_message());
    flp_ranks_destroy(ranks);
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
    job->status = status == FLP_OK ? run_calls(job, context, driver) : status;
    if (status != FLP_OK)
        snprintf(job->message, sizeof(job->message), "%s", flp_error_message());
    flp_context_destroy(context);
    return NULL;
}

/* rows of rank 1: of the others N. */
static rank_job *run_ranks(const tensors *inputs, int rows)
{
    rank_job *jobs = calloc((size_t)ranks_here, sizeof(*jobs));
    pthread_t threads[MOST_RANKS];

    assert_non_null(jobs);
    for (int rank = 0; rank < ranks_here; rank++) {
        jobs[rank] = (rank_job){ .rank = rank, .ranks = ranks_here, .rows = rank == 1 ? rows : N, .communicator = communicators[rank], .inputs = inputs };
        assert_int_equal(0, pthread_create(&threads[rank], NULL, run_rank, &jobs[rank]));
    }
    for (int rank = 0; rank < ranks_here; rank++)
        pthread_join(threads[rank], NULL);
    return jobs;
}

static void compute_on_host(tensors *t)
{
    const flp_context_options options = { .cache_directory = "", .flags = FLP_CONTEXT_NO_GPU };
    const flp_linear_logp_args args = { .rows = N, .hidden = t->hidden, .weight = t->weight, .target = t->target, .logp = t->logp, .lse = t->lse };
    const flp_linear_logp_backward_problem problem = { .forward = whole, .grad_hidden = FLP_F32 };
    const flp_linear_logp_backward_args gradients = { .rows = N,
                                                      .hidden = t->hidden,
                                                      .weight = t->weight,
                                                      .target = t->target,
                                                      .lse = t->lse,
                                                      .logp = t->logp,
                                                      .g_logp = t->ones,
                                                      .grad_hidden = t->grad_hidden };
    flp_context *context;

    assert_succeeds(flp_context_create(&options, &context));
    assert_succeeds(flp_linear_logp(context, &whole, &args));
    assert_succeeds(flp_linear_logp_backward(context, &problem, &gradients));
    flp_context_destroy(context);
}

/* logp: 2^-20, 16 roundings of fp32, of lse, which is about 10. grad_hidden: dlogit is rounded to bf16, 2^-8 of each term; the terms' norm is below 1. */
static void ranks_give_the_values_of_one_process_and_all_the_same(void **state)
{
    rank_job *jobs;
    tensors *t;

    (void)state;
    need_ranks();
    t = make_tensors();
    compute_on_host(t);
    jobs = run_ranks(t, N);
    for (int rank = 0; rank < ranks_here; rank++) {
        if (jobs[rank].status != FLP_OK)
            fail_msg("rank %d: %s", rank, jobs[rank].message);
        assert_memory_equal(jobs[0].logp, jobs[rank].logp, sizeof(jobs[0].logp));
        assert_memory_equal(jobs[0].grad_hidden, jobs[rank].grad_hidden, sizeof(jobs[0].grad_hidden));
    }
    for (int i = 0; i < N; i++)
        assert_true(fabsf(jobs[0].logp[i] - t->logp[i]) <= 0x1p-20f * 16);
    for (int i = 0; i < N * D; i++)
        assert_true(fabsf(jobs[0].grad_hidden[i] - t->grad_hidden[i]) <= 0x1p-8f);
    free(jobs);
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
