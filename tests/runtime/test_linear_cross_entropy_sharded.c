/* linear_cross_entropy over the ranks of an NCCL communicator: what is exchanged, when, and what ranks that disagree are told. Nothing here computes. */
#include "fake_call.h"
#include "assertions.h"
#include "fake_driver_functions.h"
#include "fake_library.h"
#include "fake_nccl.h"

enum { N = FAKE_CALL_ROWS, D = FAKE_CALL_HIDDEN, V = FAKE_CALL_VOCAB, TERMS = 8, CALL = 0, ROWS = 1, OPTIONS = 5, FIRST_OF_TERMS = 6 };

static flp_context *context;
static flp_ranks *ranks;
static flp_linear_cross_entropy_problem problem;
static flp_linear_cross_entropy_args args;
static float partials[2 * N * FLP_PARTIAL_FLOATS], loss, grad_hidden[N * D];

/* What rank 1 brings beside its own shard: another value of one of the terms, in the comparison of this number, from 0 on; and what this rank brought. */
static int changed, changed_comparison, comparisons;
static uint32_t own_call, own_options;

static void bring(int rank, void *slot, size_t bytes)
{
    uint32_t *terms = slot;

    if (bytes != TERMS * sizeof(uint32_t))
        return;
    own_call = terms[CALL];
    own_options = terms[OPTIONS];
    terms[FIRST_OF_TERMS] += (uint32_t)rank * V;
    if (changed >= 0 && comparisons == changed_comparison)
        terms[changed] += 1;
    comparisons++;
}

static int start(void **state)
{
    const flp_linear_logp_args forward = fake_call_args(N);

    (void)state;
    context = fake_call_start(0);
    fake_library.nccl = 1;
    fake_nccl.bring = bring;
    changed = -1;
    changed_comparison = comparisons = 0;
    problem = (flp_linear_cross_entropy_problem){ .backward = { .forward = fake_call_problem(), .grad_hidden = FLP_F32 } };
    problem.backward.forward.vocab_total = 2 * V;
    args = (flp_linear_cross_entropy_args){ .rows = N,
                                            .hidden = forward.hidden,
                                            .weight = forward.weight,
                                            .target = forward.target,
                                            .ignore_index = forward.ignore_index,
                                            .flags = forward.flags,
                                            .loss = &loss,
                                            .grad_hidden = grad_hidden,
                                            .partials = partials,
                                            .stream = fake_call_memory() };
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_ranks_destroy(ranks);
    flp_context_destroy(context);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

static flp_status run(void)
{
    return flp_linear_cross_entropy_sharded(ranks, &problem, &args);
}

static void assert_collective(int number, const char *function, const void *at, size_t count, int launches)
{
    const fake_nccl_call *call = &fake_nccl.call[number];

    assert_true(number < fake_nccl.calls);
    assert_string_equal(function, call->function);
    assert_ptr_equal(at, call->from);
    assert_ptr_equal(at, call->to);
    assert_int_equal(count, call->count);
    assert_ptr_equal(args.stream, call->stream);
    assert_int_equal(launches, call->launches);
}

static void assert_sum(int number, int launches)
{
    const fake_nccl_call *call = &fake_nccl.call[number];

    assert_string_equal("ncclAllReduce", call->function);
    assert_ptr_equal(grad_hidden, call->from);
    assert_ptr_equal(grad_hidden, call->to);
    assert_int_equal(N * D, call->count);
    assert_int_equal(launches, call->launches);
}

static void partials_are_gathered_and_grad_hidden_summed_up(void **state)
{
    int launches;

    (void)state;
    assert_succeeds(run());
    launches = fake_driver.launches;
    assert_int_equal(4, fake_nccl.calls);
    assert_int_equal(TERMS, fake_nccl.call[0].count);
    assert_collective(1, "ncclAllGather", partials, (size_t)N * FLP_PARTIAL_FLOATS, 3);
    assert_int_equal(TERMS, fake_nccl.call[2].count);
    assert_sum(3, launches);
    assert_contains(fake_driver.launch[2].kernel, "linear_logp_partials");
    assert_contains(fake_driver.launch[5].kernel, "linear_logp_merge_");
    assert_contains(fake_driver.launch[6].kernel, "linear_logp_merge_sums");
    assert_contains(fake_driver.launch[7].kernel, "token_loss");
    for (int i = 0; i < launches; i++)
        assert_ptr_equal(args.stream, fake_driver.launch[i].stream);
    assert_succeeds(run());
    assert_int_equal(6, fake_nccl.calls);
    assert_int_equal(2, comparisons);
}

/* The number of the last exchange among what was put on streams. */
static int last_exchange(void)
{
    int i = fake_driver.works - 1;

    while (i > 0 && fake_driver.work[i].kind != FAKE_EXCHANGED)
        i--;
    return i;
}

static void grad_hidden_is_summed_up_beside_the_last_product_of_grad_weight(void **state)
{
    int sum, weight;
    uint64_t behind;

    (void)state;
    problem.backward.grad_weight = FLP_BF16;
    args.grad_weight = fake_call_memory();
    assert_succeeds(run());
    fake_driver.keeps_works = 1;
    assert_succeeds(run());
    assert_true(fake_driver.works <= FAKE_WORKS);
    sum = last_exchange();
    weight = fake_driver_last_work("matrix_product");
    behind = fake_driver_behind(sum, fake_driver.work[sum].stream);
    assert_contains(fake_driver.work[weight].kernel, "targets_in_rows");
    assert_true(behind >> fake_driver_last_work("finish") & 1);
    assert_false(behind >> weight & 1);
    assert_true(fake_driver_behind(fake_driver.works, args.stream) >> sum & 1);
    assert_int_equal(6, fake_nccl.calls);
    args.multiprocessors_left = -1;
    assert_fails(FLP_BAD_ARGUMENT, run(), "multiprocessors_left: got -1");
}

static int count_recorded(CUevent event)
{
    int count = 0;

    for (int i = 0; i < fake_driver.works; i++)
        count += fake_driver.work[i].kind == FAKE_RECORDED && fake_driver.work[i].event == event;
    return count;
}

/* The loss alone, too, records what it was given. */
static void a_merge_records_the_callers_event_in_any_case(void **state)
{
    CUevent event;

    (void)state;
    assert_int_equal(CUDA_SUCCESS, fake_cuda_event_create(&event, 0));
    args.ranks = 2;
    args.grad_hidden_event = event;
    fake_driver.keeps_works = 1;
    for (int rows = 0; rows <= N; rows += N) {
        args.rows = rows;
        for (int i = 0; i < 3; i++) { /* the loss alone, with grad_hidden, with grad_weight too */
            problem.backward.grad_hidden = i > 0 ? FLP_F32 : FLP_NONE;
            args.grad_hidden = i > 0 ? grad_hidden : NULL;
            problem.backward.grad_weight = i > 1 ? FLP_BF16 : FLP_NONE;
            args.grad_weight = i > 1 ? fake_call_memory() : NULL;
            fake_driver.works = 0;
            assert_succeeds(flp_linear_cross_entropy_merge(context, &problem, &args));
            assert_int_equal(1, count_recorded(event));
        }
    }
    assert_int_equal(CUDA_SUCCESS, fake_cuda_event_destroy(event));
}

static void bring_the_first_shard(int rank, void *slot, size_t bytes)
{
    (void)rank;
    if (bytes == TERMS * sizeof(uint32_t))
        ((uint32_t *)slot)[FIRST_OF_TERMS] = 0;
}

/* Gathered in place: each rank's own part lies behind those of the ranks before. */
static void the_second_ranks_partials_lie_behind_the_firsts(void **state)
{
    (void)state;
    flp_ranks_destroy(ranks);
    fake_nccl.rank = 1;
    fake_nccl.bring = bring_the_first_shard;
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    problem.backward.forward.vocab_first = V;
    assert_succeeds(run());
    assert_ptr_equal(partials + N * FLP_PARTIAL_FLOATS, fake_nccl.call[1].from);
    assert_ptr_equal(partials, fake_nccl.call[1].to);
}

static void a_call_without_grad_hidden_has_one_exchange(void **state)
{
    (void)state;
    problem.backward.grad_hidden = FLP_NONE;
    args.grad_hidden = NULL;
    assert_succeeds(run());
    assert_succeeds(run());
    assert_int_equal(3, fake_nccl.calls);
}

static void without_rows_nothing_but_terms_is_exchanged(void **state)
{
    (void)state;
    args.rows = 0;
    assert_succeeds(run());
    assert_int_equal(2, fake_nccl.calls);
    assert_int_equal(2, comparisons);
}

static void ranks_that_disagree_are_told(void **state)
{
    (void)state;
    changed = ROWS;
    assert_fails(FLP_BAD_ARGUMENT, run(), "ranks disagree: rank 1 has rows 301, rank 0 (this one) 300");
    assert_int_equal(1, fake_nccl.calls);
    changed = OPTIONS;
    changed_comparison = 1;
    assert_fails(FLP_BAD_ARGUMENT, run(), "rank 1 has other options");
    assert_int_equal(2, fake_nccl.calls);
}

/* In either half of the call. */
static void a_rank_that_is_refused_tells_the_others(void **state)
{
    const void *hidden = args.hidden;

    (void)state;
    args.hidden = NULL;
    assert_fails(FLP_BAD_ARGUMENT, run(), "hidden: got NULL");
    assert_int_equal(1, fake_nccl.calls);
    assert_int_equal(1, own_call);
    args.hidden = hidden;
    args.loss = NULL;
    assert_fails(FLP_BAD_ARGUMENT, run(), "loss: got NULL");
    assert_int_equal(4, fake_nccl.calls);
    assert_int_equal(1, own_call);
}

/* What the loss is shows in what the others see. */
static void the_loss_is_part_of_what_is_compared(void **state)
{
    static const flp_token_input inputs[] = { { "advantages", partials }, { "old_logp", partials } };
    static const flp_token_parameter low[] = { { "clip_low", 0.1 } }, high[] = { { "clip_low", 0.3 } };

    (void)state;
    assert_succeeds(run());
    problem.reduction = FLP_REDUCE_SUM;
    assert_succeeds(run());
    problem.label_smoothing = 1;
    assert_succeeds(run());
    args.label_smoothing = 0.25;
    assert_succeeds(run());
    args.label_smoothing = 0;
    args.lse_square_scale = 1;
    assert_succeeds(run());
    args.lse_square_scale = 0;
    problem.label_smoothing = 0;
    strcpy(problem.token_loss, "policy_gradient");
    args.token_inputs = inputs;
    args.token_input_count = 2;
    args.token_parameters = low;
    args.token_parameter_count = 1;
    assert_succeeds(run());
    args.token_parameters = high;
    assert_succeeds(run());
    assert_int_equal(14, comparisons);
    assert_succeeds(run());
    assert_int_equal(14, comparisons);
}

/* The loss of this name, of so many inputs, whatever was agreed on before. */
static uint32_t options_of(const char *name, int inputs)
{
    static const flp_token_input advantages[] = { { "advantages", partials } };

    strcpy(problem.token_loss, name);
    args.token_inputs = advantages;
    args.token_input_count = inputs;
    args.flags |= FLP_CHECK_TARGETS;
    assert_succeeds(run());
    return own_options;
}

/* What a rank brings for the token loss "mine" whose context was told this definition of it, between calls with another loss. */
static uint32_t options_with(const char *definition)
{
    const flp_context_options of_own = { .cache_directory = "", .cpu_threads = 1 };
    uint32_t other, mine;

    flp_ranks_destroy(ranks);
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&of_own, &context));
    assert_succeeds(flp_ranks_create(context, fake_nccl_communicator(), &ranks));
    assert_succeeds(flp_token_loss_define(context, "mine", definition));
    assert_succeeds(flp_token_loss_define(context, "other", "return { loss = function(t) return -2 * t.logp end }"));
    other = options_of("other", 0);
    mine = options_of("mine", 1);
    assert_int_equal(other, options_of("other", 0));
    assert_int_equal(mine, options_of("mine", 1));
    return mine;
}

/* Two ranks may have been told two losses under one name. */
static void a_token_loss_is_compared_by_its_definition(void **state)
{
    static const char plain[] = "return { inputs = { 'advantages' }, loss = function(t) return -t.advantages * t.logp end }";
    static const char spaced[] = "return { inputs = { 'advantages' },  loss = function(t) return -t.advantages * t.logp end }";
    static const char doubled[] = "return { inputs = { 'advantages' }, loss = function(t) return -2 * t.advantages * t.logp end }";
    static const char one[] = "return { inputs = { 'advantages' }, parameters = { { 'scale', 1 } }, "
                              "loss = function(t) return -t.scale * t.advantages * t.logp end }";
    static const char half[] = "return { inputs = { 'advantages' }, parameters = { { 'scale', 0.5 } }, "
                               "loss = function(t) return -t.scale * t.advantages * t.logp end }";
    const uint32_t known = options_with(plain);

    (void)state;
    assert_int_equal(known, options_with(plain));
    assert_int_equal(known, options_with(spaced));
    assert_int_not_equal(known, options_with(doubled));
    assert_int_not_equal(options_with(one), options_with(half));
}

static void with_checked_targets_every_call_is_compared(void **state)
{
    (void)state;
    assert_succeeds(run());
    args.flags |= FLP_CHECK_TARGETS;
    changed = ROWS;
    changed_comparison = 2;
    assert_fails(FLP_BAD_ARGUMENT, run(), "rank 1 has rows 301");
    assert_int_equal(3, comparisons);
    changed = -1;
    assert_succeeds(run());
    assert_int_equal(5, comparisons);
}

static void a_grad_hidden_that_cannot_be_summed_up_is_refused(void **state)
{
    (void)state;
    problem.backward.grad_hidden = FLP_BF16;
    assert_fails(FLP_BAD_ARGUMENT, run(), "grad_hidden: wanted FLP_F32 that is not added to");
    problem.backward.grad_hidden = FLP_F32;
    problem.backward.forward.vocab_total = 0;
    assert_fails(FLP_BAD_ARGUMENT, run(), "problem.vocab_total: got 0");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_sharded(NULL, &problem, &args), "ranks: got NULL");
}

static void a_call_that_is_known_can_be_captured(void **state)
{
    (void)state;
    assert_succeeds(run());
    fake_driver.capture = 1;
    assert_succeeds(run());
    problem.reduction = FLP_REDUCE_SUM;
    assert_fails(FLP_CAPTURING, run(), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(partials_are_gathered_and_grad_hidden_summed_up),
        TEST(grad_hidden_is_summed_up_beside_the_last_product_of_grad_weight),
        TEST(a_merge_records_the_callers_event_in_any_case),
        TEST(the_second_ranks_partials_lie_behind_the_firsts),
        TEST(a_call_without_grad_hidden_has_one_exchange),
        TEST(without_rows_nothing_but_terms_is_exchanged),
        TEST(ranks_that_disagree_are_told),
        TEST(a_rank_that_is_refused_tells_the_others),
        TEST(the_loss_is_part_of_what_is_compared),
        TEST(a_token_loss_is_compared_by_its_definition),
        TEST(with_checked_targets_every_call_is_compared),
        TEST(a_grad_hidden_that_cannot_be_summed_up_is_refused),
        TEST(a_call_that_is_known_can_be_captured),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
