/* linear_logp over the ranks of an NCCL communicator: what is exchanged, when, and what ranks that disagree are told. Nothing here computes. */
#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_nccl.h"

enum { N = FAKE_CALL_ROWS, D = FAKE_CALL_HIDDEN, V = FAKE_CALL_VOCAB, TERMS = 8, FIRST_OF_TERMS = 6 };
typedef enum { CALL, ROWS, HIDDEN, VOCAB_TOTAL, DTYPE, OPTIONS, VOCAB_FIRST, VOCAB } term;

static flp_context *context;
static flp_ranks *ranks;
static flp_linear_logp_problem problem;
static flp_linear_logp_args args;
static float partials[2 * N * FLP_PARTIAL_FLOATS], logp[N], lse[N];
static float grad_hidden[N * D];

/* What rank 1 brings beside its own shard: another value of one of the terms. */
static int changed;
static uint32_t changed_by, own_call;

static void bring(int rank, void *slot, size_t bytes)
{
    uint32_t *terms = slot;

    if (bytes != TERMS * sizeof(uint32_t))
        return;
    own_call = terms[CALL];
    terms[VOCAB_FIRST] += (uint32_t)rank * V;
    if (changed >= 0)
        terms[changed] += changed_by;
}

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    fake_library.nccl = 1;
    fake_nccl.bring = bring;
    changed = -1;
    problem = fake_call_problem();
    problem.vocab_total = 2 * V;
    args = fake_call_args(N);
    args.partials = partials;
    args.logp = logp;
    args.lse = lse;
    args.stream = fake_call_memory();
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_ranks_destroy(ranks);
    flp_context_destroy(context);
    return fake_driver.live_blocks || fake_driver.live_modules || fake_driver.live_events ||
           fake_driver.calls[FAKE_stream_create] != fake_driver.calls[FAKE_stream_destroy];
}

static void assert_collective(int number, const char *function, const void *from, const void *to, size_t count, int launches)
{
    const fake_nccl_call *call = &fake_nccl.call[number];

    assert_true(number < fake_nccl.calls);
    assert_string_equal(function, call->function);
    assert_ptr_equal(from, call->from);
    assert_ptr_equal(to, call->to);
    assert_int_equal(count, call->count);
    assert_ptr_equal(args.stream, call->stream);
    assert_int_equal(launches, call->launches);
}

static void partials_are_gathered_in_their_place_between_the_shard_and_the_merge(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
    assert_int_equal(2, fake_nccl.calls);
    assert_int_equal(TERMS, fake_nccl.call[0].count);
    assert_collective(1, "ncclAllGather", partials, partials, (size_t)N * FLP_PARTIAL_FLOATS, 3);
    assert_int_equal(4, fake_driver.launches);
    assert_contains(fake_driver.launch[0].kernel, "linear_logp_shard_targets");
    assert_contains(fake_driver.launch[2].kernel, "linear_logp_partials");
    assert_contains(fake_driver.launch[3].kernel, "linear_logp_merge");
    for (int i = 0; i < 4; i++)
        assert_ptr_equal(args.stream, fake_driver.launch[i].stream);
}

static int live_things(void)
{
    return (int)(fake_driver.live_blocks + fake_driver.live_events + fake_driver.calls[FAKE_stream_create] - fake_driver.calls[FAKE_stream_destroy]);
}

/* As from the finalizer of a thread that has no CUDA context, or another one. */
static void ranks_are_freed_in_the_cuda_context_that_they_were_made_in(void **state)
{
    const int others = live_things() - 4; /* all but the terms' memory, a stream and two events */

    (void)state;
    fake_driver.current = NULL;
    fake_driver.calls[FAKE_context_set_current] = 0;
    flp_ranks_destroy(ranks);
    assert_int_equal(others, live_things());
    assert_int_equal(2, fake_driver.calls[FAKE_context_set_current]);
    assert_null(fake_driver.current);
    fake_driver.current = fake_driver_context(0);
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
}

static void another_rank_has_another_place(void **state)
{
    (void)state;
    flp_ranks_destroy(ranks);
    fake_nccl.rank = 1;
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    problem.vocab_first = V;
    fake_nccl.bring = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "vocab_first: ranks 0 and 1 both have entry 70000");
    fake_nccl.bring = bring;
    problem.vocab_first = 0; /* rank 0, too, brings what stands behind this one's: see bring */
    problem.vocab = V;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "both have entry 0");
}

static void what_the_ranks_have_agreed_on_is_not_compared_again(void **state)
{
    int waits;

    (void)state;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
    waits = fake_driver.calls[FAKE_stream_synchronize];
    args.rows = N - 1;
    fake_driver.capture = 1;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
    assert_int_equal(3, fake_nccl.calls);
    assert_collective(2, "ncclAllGather", partials, partials, (size_t)(N - 1) * FLP_PARTIAL_FLOATS, 7);
    assert_int_equal(waits, fake_driver.calls[FAKE_stream_synchronize]);
}

static void a_call_that_is_new_cannot_be_captured(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_prepare(context, &problem, args.stream));
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_linear_logp_sharded(ranks, &problem, &args), "the ranks have not agreed on this call yet");
    assert_int_equal(0, fake_nccl.calls);
}

static void ranks_that_disagree_are_told_and_exchange_nothing_more(void **state)
{
    static const struct {
        term changed;
        const char *message;
    } cases[] = {
        { CALL, "ranks disagree: rank 1 has another call or version of the library" },
        { ROWS, "ranks disagree: rank 1 has rows 301, rank 0 (this one) 300" },
        { HIDDEN, "rank 1 has hidden 65, rank 0 (this one) 64" },
        { VOCAB_TOTAL, "rank 1 has vocab_total 140001, rank 0 (this one) 140000" },
        { DTYPE, "rank 1 has dtype 2, rank 0 (this one) 1" },
        { OPTIONS, "rank 1 has other options" },
        { VOCAB, "vocab: the ranks have 140001 entries in all, wanted the vocab_total 140000" },
    };

    (void)state;
    changed_by = 1;
    for (int i = 0; i < (int)(sizeof(cases) / sizeof(*cases)); i++) {
        changed = cases[i].changed;
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), cases[i].message);
        assert_int_equal(i + 1, fake_nccl.calls);
    }
    changed = -1;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
}

/* So that the others do not wait for its data. */
static void a_rank_that_is_refused_tells_the_others(void **state)
{
    const void *hidden = args.hidden;

    (void)state;
    args.hidden = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "hidden: got NULL");
    assert_int_equal(1, fake_nccl.calls);
    assert_int_equal(1, own_call);
    args.hidden = hidden;
    changed = CALL;
    changed_by = 0;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
    assert_true(own_call > 1);
}

static void bring_a_refusal(int rank, void *slot, size_t bytes)
{
    bring(rank, slot, bytes);
    if (bytes == TERMS * sizeof(uint32_t))
        ((uint32_t *)slot)[CALL] = 1;
}

static void the_others_are_told_of_a_rank_that_is_refused(void **state)
{
    (void)state;
    fake_nccl.bring = bring_a_refusal;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "rank 1 was refused its own part of the call");
    assert_int_equal(1, fake_nccl.calls);
}

/* An option of this rank's own shows in what the others see. */
static void options_are_part_of_what_is_compared(void **state)
{
    flp_linear_logp_args warmer = args;
    flp_linear_logp_problem capped = problem;

    (void)state;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &args));
    warmer.temperature = 2;
    capped.softcap = 30;
    assert_succeeds(flp_linear_logp_sharded(ranks, &problem, &warmer));
    assert_succeeds(flp_linear_logp_sharded(ranks, &capped, &args));
    assert_int_equal(6, fake_nccl.calls); /* each was compared */
}

static void failures_of_nccl_name_its_call(void **state)
{
    (void)state;
    fake_nccl.failing_call = 0;
    assert_fails(FLP_NCCL_FAILED, flp_linear_logp_sharded(ranks, &problem, &args), "ncclAllGather of the terms: remote process exited");
    fake_nccl.failing_call = 2;
    assert_fails(FLP_NCCL_FAILED, flp_linear_logp_sharded(ranks, &problem, &args), "ncclAllGather of the partials: remote process exited");
    fake_nccl.async_error = 6;
    assert_fails(FLP_NCCL_FAILED, flp_linear_logp_sharded(ranks, &problem, &args), "the communicator: remote process exited");
}

static void without_nccl_there_are_no_ranks(void **state)
{
    flp_ranks *none;

    (void)state;
    flp_ranks_destroy(ranks);
    flp_context_destroy(context);
    context = fake_call_start(0);
    ranks = NULL;
    assert_fails(FLP_NCCL_FAILED, flp_ranks_create(context, fake_nccl_communicator(), &none), "libnccl.so.2 cannot be loaded");
    assert_null(none);
    fake_library.nccl = 1;
    fake_library.missing = "ncclAllReduce";
    assert_fails(FLP_NCCL_FAILED, flp_ranks_create(context, fake_nccl_communicator(), &none), "libnccl.so.2 has no ncclAllReduce");
    fake_library.missing = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_create(context, NULL, &none), "communicator: got NULL");
    assert_fails(FLP_NCCL_FAILED, flp_ranks_create(context, &none, &none), "ncclCommCount");
}

static void memory_is_registered_until_it_is_taken_back(void **state)
{
    (void)state;
    assert_succeeds(flp_ranks_register(ranks, partials, sizeof(partials)));
    assert_succeeds(flp_ranks_register(ranks, grad_hidden, sizeof(grad_hidden)));
    assert_succeeds(flp_ranks_register(ranks, logp, sizeof(logp)));
    assert_int_equal(3, fake_nccl.registered);
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_register(ranks, grad_hidden, 1), "which is registered already");
    assert_succeeds(flp_ranks_unregister(ranks, grad_hidden));
    assert_int_equal(2, fake_nccl.registered);
    assert_succeeds(flp_ranks_unregister(ranks, grad_hidden));
    assert_int_equal(2, fake_nccl.registered);
    assert_succeeds(flp_ranks_register(ranks, grad_hidden, sizeof(grad_hidden)));
    flp_ranks_destroy(ranks);
    assert_int_equal(0, fake_nccl.registered);
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
}

static void memory_that_cannot_be_registered_is_refused(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_register(NULL, partials, 4), "ranks: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_register(ranks, NULL, 4), "memory: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_register(ranks, partials, 0), "bytes: got 0");
    assert_fails(FLP_BAD_ARGUMENT, flp_ranks_unregister(NULL, partials), "ranks: got NULL");
    fake_nccl.refuses_memory = 1;
    assert_fails(FLP_NCCL_FAILED, flp_ranks_register(ranks, partials, sizeof(partials)), "ncclCommRegister");
    fake_nccl.refuses_memory = 0;
    assert_succeeds(flp_ranks_register(ranks, partials, sizeof(partials)));
}

static void an_nccl_that_registers_nothing_does_without(void **state)
{
    (void)state;
    flp_ranks_destroy(ranks);
    flp_context_destroy(context);
    context = fake_call_start(0);
    fake_library.nccl = 1;
    fake_library.missing = "ncclCommRegister";
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    assert_succeeds(flp_ranks_register(ranks, partials, sizeof(partials)));
    assert_succeeds(flp_ranks_unregister(ranks, partials));
    assert_int_equal(0, fake_nccl.registered);
}

static void what_is_no_shard_of_a_gpu_is_refused(void **state)
{
    (void)state;
    problem.backend = FLP_BACKEND_CPU;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "problem.backend: got FLP_BACKEND_CPU");
    problem.backend = FLP_BACKEND_AUTO;
    problem.vocab_total = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_sharded(ranks, &problem, &args), "problem.vocab_total: got 0");
    fake_driver.current = fake_driver_context(1);
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_sharded(ranks, &problem, &args), "number 1001, the ranks were made in number 1000");
    fake_driver.current = fake_driver_context(0);
}

/* ---- the backward ---- */

static flp_linear_logp_backward_problem backward_problem(void)
{
    return (flp_linear_logp_backward_problem){ .forward = problem, .grad_hidden = FLP_F32 };
}

static flp_linear_logp_backward_args backward_args(void)
{
    return (flp_linear_logp_backward_args){ .rows = N,
                                            .hidden = args.hidden,
                                            .weight = args.weight,
                                            .target = args.target,
                                            .ignore_index = args.ignore_index,
                                            .flags = args.flags,
                                            .lse = lse,
                                            .g_logp = logp,
                                            .grad_hidden = grad_hidden,
                                            .stream = args.stream };
}

static void grad_hidden_is_summed_up_in_its_place_behind_the_shards_kernels(void **state)
{
    const flp_linear_logp_backward_problem backward = backward_problem();
    const flp_linear_logp_backward_args given = backward_args();
    int launches;

    (void)state;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    launches = fake_driver.launches;
    assert_true(launches > 3);
    assert_int_equal(2, fake_nccl.calls);
    assert_string_equal("ncclAllReduce", fake_nccl.call[1].function);
    assert_ptr_equal(grad_hidden, fake_nccl.call[1].from);
    assert_ptr_equal(grad_hidden, fake_nccl.call[1].to);
    assert_int_equal(N * D, fake_nccl.call[1].count);
    assert_int_equal(launches, fake_nccl.call[1].launches);
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    assert_int_equal(3, fake_nccl.calls);
}

/* ---- its sum beside grad_weight's product ---- */

/* A call of ranks that have agreed: what it puts on streams is kept. */
static flp_status run_again(const flp_linear_logp_backward_problem *backward, const flp_linear_logp_backward_args *given)
{
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, backward, given));
    fake_driver.keeps_works = 1;
    fake_driver.works = 0;
    return flp_linear_logp_backward_sharded(ranks, backward, given);
}

static flp_linear_logp_backward_problem with_grad_weight(void)
{
    flp_linear_logp_backward_problem backward = backward_problem();

    backward.grad_weight = FLP_BF16;
    return backward;
}

static flp_linear_logp_backward_args with_grad_weight_args(void)
{
    flp_linear_logp_backward_args given = backward_args();

    given.grad_weight = fake_call_memory();
    return given;
}

static int last_exchange(void)
{
    for (int i = fake_driver.works - 1; i >= 0; i--)
        if (fake_driver.work[i].kind == FAKE_EXCHANGED)
            return i;
    fail_msg("nothing was exchanged");
    return -1;
}

/* The sum comes behind grad_hidden, and what follows the call on its stream behind the sum. beside: the launches that need not be over when it begins. */
static void assert_order(int beside)
{
    const int sum = last_exchange(), finish = fake_driver_last_work("finish");
    const uint64_t behind = fake_driver_behind(sum, fake_driver.work[sum].stream);
    int others = 0;

    assert_true(fake_driver.works <= FAKE_WORKS);
    assert_true(finish >= 0);
    assert_true(behind >> finish & 1);
    assert_true(fake_driver_behind(fake_driver.works, args.stream) >> sum & 1);
    for (int i = 0; i < fake_driver.works; i++) {
        if (fake_driver.work[i].kind != FAKE_LAUNCHED)
            continue;
        assert_ptr_equal(args.stream, fake_driver.work[i].stream);
        others += !(behind >> i & 1);
    }
    assert_int_equal(beside, others);
    for (int i = 0; i < beside; i++)
        assert_true(finish < sum && !(behind >> (finish + 2 + i) & 1)); /* behind the event */
}

/* The products of one kind that the call put on its stream. */
static int products_of(int are_grad_weight)
{
    int products = 0;

    for (int i = 0; i < fake_driver.works; i++) {
        const char *kernel = fake_driver.work[i].kind == FAKE_LAUNCHED ? fake_driver.work[i].kernel : "";

        products += strstr(kernel, "matrix_product") && are_grad_weight == (strstr(kernel, "targets_in_rows") != NULL);
    }
    return products;
}

/* Of so few rows chunks share a product of grad_weight, and there are two such products. The sum runs beside the second one, behind grad_hidden's products of all
 * of its chunks. */
static void grad_hidden_is_summed_up_beside_the_last_product_of_grad_weight(void **state)
{
    flp_linear_logp_backward_problem backward = with_grad_weight();
    flp_linear_logp_backward_args given = with_grad_weight_args();

    (void)state;
    assert_succeeds(run_again(&backward, &given));
    assert_order(1);
    assert_contains(fake_driver.work[fake_driver_last_work("matrix_product")].kernel, "targets_in_rows");
    assert_in_range(products_of(0), 4, 16);
    assert_int_equal(2, products_of(1));
    backward.forward.bias_dtype = backward.grad_bias = FLP_F32;
    given.bias = given.grad_bias = fake_call_memory();
    assert_succeeds(run_again(&backward, &given));
    assert_order(2);
}

/* In fp32 grad_hidden holds the rows that the product reads; the filter counts behind all of a chunk; and alone there is nothing to run beside. */
static void where_grad_hidden_is_not_finished_first_its_sum_is_behind_all(void **state)
{
    flp_linear_logp_backward_problem backward = with_grad_weight();
    flp_linear_logp_backward_args given = with_grad_weight_args();

    (void)state;
    backward.forward.dtype = FLP_F32;
    backward.grad_weight = FLP_F32;
    assert_succeeds(run_again(&backward, &given));
    assert_order(0);
    backward = with_grad_weight();
    backward.grad_filter_eps = 1e-6;
    assert_succeeds(run_again(&backward, &given));
    assert_order(0);
    backward = backward_problem();
    given = backward_args();
    assert_succeeds(run_again(&backward, &given));
    assert_order(0);
}

static void the_stream_waits_for_a_sum_that_fails(void **state)
{
    const flp_linear_logp_backward_problem backward = with_grad_weight();
    const flp_linear_logp_backward_args given = with_grad_weight_args();

    (void)state;
    fake_nccl.failing_call = 2; /* behind the comparison and the first sum */
    assert_fails(FLP_NCCL_FAILED, run_again(&backward, &given), "ncclAllReduce of grad_hidden: remote process exited");
    assert_order(1);
}

/* The others wait for the exchange: where it cannot be had beside, it comes behind. */
static void without_another_stream_the_sum_is_serial(void **state)
{
    const flp_linear_logp_backward_problem backward = with_grad_weight();
    const flp_linear_logp_backward_args given = with_grad_weight_args();

    (void)state;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    fake_driver_fail(FAKE_stream_wait_event, CUDA_ERROR_OUT_OF_MEMORY, 1);
    fake_driver.keeps_works = 1;
    fake_driver.works = 0;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    assert_order(0);
    assert_ptr_equal(args.stream, fake_driver.work[last_exchange()].stream);
}

static void a_known_backward_is_captured_with_its_sum(void **state)
{
    const flp_linear_logp_backward_problem backward = with_grad_weight();
    const flp_linear_logp_backward_args given = with_grad_weight_args();
    int waits, streams, events;

    (void)state;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    waits = fake_driver.calls[FAKE_stream_synchronize] + fake_driver.calls[FAKE_event_synchronize];
    streams = fake_driver.calls[FAKE_stream_create];
    events = fake_driver.calls[FAKE_event_create];
    fake_driver.capture = fake_driver.keeps_works = 1;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, &backward, &given));
    assert_order(1);
    assert_int_equal(waits, fake_driver.calls[FAKE_stream_synchronize] + fake_driver.calls[FAKE_event_synchronize]);
    assert_int_equal(streams, fake_driver.calls[FAKE_stream_create]);
    assert_int_equal(events, fake_driver.calls[FAKE_event_create]);
}

/* Blocks along x of the product of grad_weight in the last chunk of a call, and in the one before. */
static void weight_grids(const flp_linear_logp_backward_problem *backward, const flp_linear_logp_backward_args *given, unsigned grids[2])
{
    int found = 0;

    fake_driver.launches = 0;
    assert_succeeds(flp_linear_logp_backward_sharded(ranks, backward, given));
    for (int i = fake_driver.launches - 1; i >= 0 && found < 2; i--)
        if (strstr(fake_driver.launch[i].kernel, "targets_in_rows"))
            grids[found++] = fake_driver.launch[i].grid[0];
    assert_int_equal(2, found);
}

static void multiprocessors_are_left_by_the_product_beside_the_sum_alone(void **state)
{
    flp_linear_logp_backward_problem backward = with_grad_weight();
    flp_linear_logp_backward_args given = with_grad_weight_args();
    unsigned all[2], some[2];

    (void)state;
    weight_grids(&backward, &given, all);
    given.multiprocessors_left = 100;
    weight_grids(&backward, &given, some);
    assert_true(all[0] > 32);
    assert_int_equal(32, some[0]);
    assert_int_equal(all[1], some[1]);
    given.multiprocessors_left = 1000000;
    weight_grids(&backward, &given, some);
    assert_int_equal(2, some[0]); /* a cluster */
    given.multiprocessors_left = -1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_sharded(ranks, &backward, &given), "multiprocessors_left: got -1, wanted 0 or more");
}

static void an_event_of_the_callers_is_refused(void **state)
{
    const flp_linear_logp_backward_problem backward = with_grad_weight();
    flp_linear_logp_backward_args given = with_grad_weight_args();

    (void)state;
    given.grad_hidden_event = fake_call_memory();
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_sharded(ranks, &backward, &given), "wanted NULL: the call has its own");
    assert_int_equal(1, own_call);
}

static void a_grad_hidden_that_cannot_be_summed_up_in_its_place_is_refused(void **state)
{
    flp_linear_logp_backward_problem backward = backward_problem();
    const flp_linear_logp_backward_args given = backward_args();

    (void)state;
    backward.grad_hidden = FLP_BF16;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_sharded(ranks, &backward, &given), "grad_hidden: wanted FLP_F32 that is not added to");
    backward = backward_problem();
    backward.accumulate = FLP_ACCUMULATE_HIDDEN;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_sharded(ranks, &backward, &given), "grad_hidden: wanted FLP_F32 that is not added to");
    backward = backward_problem();
    backward.grad_hidden_stride = D + 8;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_sharded(ranks, &backward, &given), "grad_hidden_stride: got 72, wanted the row's 64");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(partials_are_gathered_in_their_place_between_the_shard_and_the_merge),
        TEST(ranks_are_freed_in_the_cuda_context_that_they_were_made_in),
        TEST(another_rank_has_another_place),
        TEST(what_the_ranks_have_agreed_on_is_not_compared_again),
        TEST(a_call_that_is_new_cannot_be_captured),
        TEST(ranks_that_disagree_are_told_and_exchange_nothing_more),
        TEST(a_rank_that_is_refused_tells_the_others),
        TEST(the_others_are_told_of_a_rank_that_is_refused),
        TEST(options_are_part_of_what_is_compared),
        TEST(failures_of_nccl_name_its_call),
        TEST(without_nccl_there_are_no_ranks),
        TEST(memory_is_registered_until_it_is_taken_back),
        TEST(memory_that_cannot_be_registered_is_refused),
        TEST(an_nccl_that_registers_nothing_does_without),
        TEST(what_is_no_shard_of_a_gpu_is_refused),
        TEST(grad_hidden_is_summed_up_in_its_place_behind_the_shards_kernels),
        TEST(grad_hidden_is_summed_up_beside_the_last_product_of_grad_weight),
        TEST(where_grad_hidden_is_not_finished_first_its_sum_is_behind_all),
        TEST(the_stream_waits_for_a_sum_that_fails),
        TEST(without_another_stream_the_sum_is_serial),
        TEST(a_known_backward_is_captured_with_its_sum),
        TEST(multiprocessors_are_left_by_the_product_beside_the_sum_alone),
        TEST(an_event_of_the_callers_is_refused),
        TEST(a_grad_hidden_that_cannot_be_summed_up_in_its_place_is_refused),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
