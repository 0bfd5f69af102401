/* A vocabulary in shards on processes that share nothing but some memory and a barrier: statistics and gradients beside one process', and their bits. */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assertions.h"
#include "fusedlogp.h"
#include "shards.h"

enum { N = 37, D = 33, V = 1104, RUNS = 2 };

typedef struct {
    float logp[N], lse[N], entropy[N], grad_hidden[N * D];
    int32_t argmax[N];
} rank_results;

/* What the processes share. */
typedef struct {
    pthread_barrier_t barrier;
    float hidden[N * D], weight[V * D], g_logp[N], g_entropy[N];
    int64_t target[N];
    float partials[FLP_MOST_SHARDS][N][FLP_PARTIAL_FLOATS], parts[FLP_MOST_SHARDS][N * D], grad_weight[V * D];
    rank_results ranks[FLP_MOST_SHARDS];
} shared_memory;

static const flp_linear_logp_backward_problem whole = {
    .forward = { .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .hidden_stride = D, .weight_stride = D },
    .grad_hidden = FLP_F32,
    .grad_weight = FLP_F32,
    .grad_hidden_stride = D,
    .grad_weight_stride = D,
    .g_entropy = 1
};

static flp_linear_logp_problem with_outputs(flp_linear_logp_problem problem)
{
    problem.entropy = problem.argmax = 1;
    return problem;
}

static flp_linear_logp_args forward_args(const shared_memory *m, rank_results *out)
{
    return (flp_linear_logp_args){ .rows = N,
                                   .hidden = m->hidden,
                                   .weight = m->weight,
                                   .target = m->target,
                                   .logp = out->logp,
                                   .lse = out->lse,
                                   .entropy = out->entropy,
                                   .argmax = out->argmax };
}

static flp_linear_logp_backward_args backward_args(shared_memory *m, rank_results *out)
{
    return (flp_linear_logp_backward_args){ .rows = N,
                                            .hidden = m->hidden,
                                            .weight = m->weight,
                                            .target = m->target,
                                            .logp = out->logp,
                                            .lse = out->lse,
                                            .entropy = out->entropy,
                                            .g_logp = m->g_logp,
                                            .g_entropy = m->g_entropy,
                                            .grad_hidden = out->grad_hidden,
                                            .grad_weight = m->grad_weight };
}

static shared_memory *make_memory(void)
{
    shared_memory *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(m, MAP_FAILED);
    for (int i = 0; i < N * D; i++)
        m->hidden[i] = (float)flp_case_random_normal(1, (uint64_t)i);
    for (int i = 0; i < V * D; i++)
        m->weight[i] = (float)flp_case_random_normal(2, (uint64_t)i) / 4;
    for (int i = 0; i < N; i++) {
        m->target[i] = i * 7919 % V;
        m->g_logp[i] = (float)flp_case_random_normal(3, (uint64_t)i);
        m->g_entropy[i] = (float)flp_case_random_normal(4, (uint64_t)i);
    }
    return m;
}

static flp_context *make_context(void)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 1, .flags = FLP_CONTEXT_NO_GPU };
    flp_context *context = NULL;

    return flp_context_create(&options, &context) == FLP_OK ? context : NULL;
}

/* A rank's whole life, between the barriers nothing but its own parts: 0 where it succeeded. It comes to every barrier, whatever failed. */
static int run_rank(shared_memory *m, const flp_cutting *cuts, int rank)
{
    const flp_linear_logp_backward_problem backward = flp_shard_backward_of(&whole, cuts, rank);
    const flp_linear_logp_problem shard = with_outputs(backward.forward);
    rank_results *mine = &m->ranks[rank];
    const flp_linear_logp_args args = forward_args(m, mine), of_shard = flp_shard_args(&args, &shard, m->partials[rank][0]);
    const flp_linear_logp_merge_args merge = flp_shard_merge_args(&args, m->partials[0][0], cuts->ranks);
    const flp_linear_logp_backward_args gradients = backward_args(m, mine);
    const flp_linear_logp_backward_args gradients_of_shard = flp_shard_backward_args(&whole, &gradients, &backward, m->parts[rank]);
    flp_context *context = make_context();
    int failed = !context;

    failed = failed || flp_linear_logp(context, &shard, &of_shard) != FLP_OK;
    pthread_barrier_wait(&m->barrier);
    failed = failed || flp_linear_logp_merge(context, &shard, &merge) != FLP_OK;
    failed = failed || flp_linear_logp_backward(context, &backward, &gradients_of_shard) != FLP_OK;
    pthread_barrier_wait(&m->barrier);
    if (!failed)
        flp_shard_sum_hidden(&whole, &gradients, m->parts[0], cuts->ranks);
    else
        print_error("%s, rank %d: %s\n", cuts->name, rank, flp_error_message());
    flp_context_destroy(context);
    return failed;
}

static void run_ranks(shared_memory *m, const flp_cutting *cuts)
{
    pthread_barrierattr_t attributes;
    pid_t children[FLP_MOST_SHARDS];

    assert_int_equal(pthread_barrierattr_init(&attributes), 0);
    assert_int_equal(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    assert_int_equal(pthread_barrier_init(&m->barrier, &attributes, (unsigned)cuts->ranks), 0);
    for (int rank = 0; rank < cuts->ranks; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0)
            _exit(run_rank(m, cuts, rank));
    }
    for (int rank = 0; rank < cuts->ranks; rank++) {
        int status = -1;
        assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
        assert_int_equal(status, 0);
    }
    pthread_barrierattr_destroy(&attributes);
    pthread_barrier_destroy(&m->barrier);
}

static void assert_near(const float *got, const float *wanted, int count, double bound)
{
    for (int i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)wanted[i]) <= bound + 4e-6 * fabs((double)wanted[i]))) /* logp's own error on each side, fusedlogp.h */
            fail_msg("%d: got %.9g, wanted %.9g within %.3g", i, (double)got[i], (double)wanted[i], bound);
}

/* Sums of D products of size up to 4 x 2 and of V terms in fp32, on both sides; a row's derivatives add up to at most 16 in size (g's of up to 4, and the
 * entropy's factor), times weights of up to 1. */
static void check_against_whole(const shared_memory *m, const rank_results *got, const rank_results *wanted, const float *grad_weight)
{
    const double sums = 2 * (D + 24) * (double)FLT_EPSILON / 2 * 8 * sqrt(D);

    assert_near(got->logp, wanted->logp, N, sums);
    assert_near(got->lse, wanted->lse, N, sums);
    assert_near(got->entropy, wanted->entropy, N, 8 * sums);
    assert_memory_equal(got->argmax, wanted->argmax, sizeof(got->argmax));
    assert_near(got->grad_hidden, wanted->grad_hidden, N * D, 16 * sums);
    assert_near(m->grad_weight, grad_weight, V * D, 16 * sums);
}

static void processes_merge_to_what_one_computes(void **state)
{
    shared_memory *m = make_memory();
    rank_results *one = calloc(1, sizeof(*one)), first[FLP_MOST_SHARDS];
    float *grad_weight = calloc(V * D, sizeof(*grad_weight));
    flp_context *context;

    (void)state;
    assert_true(one && grad_weight);
    /* Processes are made before this one has a context, whose threads they would not have. */
    for (int k = 0; k < FLP_CUTTINGS; k++)
        for (int run = 0; run < RUNS; run++) {
            const int ranks = flp_cuttings[k].ranks;
            memset(m->ranks, 0xff, sizeof(m->ranks));
            run_ranks(m, &flp_cuttings[k]);
            for (int rank = 1; rank < ranks; rank++)
                assert_memory_equal(&m->ranks[rank], &m->ranks[0], sizeof(m->ranks[0]));
            if (run > 0)
                assert_memory_equal(&m->ranks[0], &first[k], sizeof(first[k]));
            first[k] = m->ranks[0];
        }
    context = make_context();
    assert_non_null(context);
    for (int k = 0; k < FLP_CUTTINGS; k++) {
        const flp_linear_logp_problem problem = with_outputs(whole.forward);
        const flp_linear_logp_args args = forward_args(m, one);
        flp_linear_logp_backward_args gradients = backward_args(m, one);
        gradients.grad_weight = grad_weight;
        assert_succeeds(flp_linear_logp(context, &problem, &args));
        assert_succeeds(flp_linear_logp_backward(context, &whole, &gradients));
        check_against_whole(m, &first[k], one, grad_weight);
    }
    flp_context_destroy(context);
    free(grad_weight);
    free(one);
    munmap(m, sizeof(*m));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_merge_to_what_one_computes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
