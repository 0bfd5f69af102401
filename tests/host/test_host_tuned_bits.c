/* Tunings that decide on a row's bits hold for any number of rows: with the host machine as the device, rows of two buckets, whose kernels differ, have the
 * same bits. Also checks each kind of candidate of a tuning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan.h"
#include "core/tune_target.h"
#include "core/tuned.h"
#include "cpu/convert.h"
#include "host/host_device.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/logits/logits_logp_plan.h"
#include "operators/weighted_sum/weighted_sum_plan.h"
#include "runtime/assertions.h"
#include "runtime/fake_directory.h"
#include "runtime/fake_driver.h"
#include "runtime/fake_record.h"

enum { FEW = 3, MANY = 200, HIDDEN = 64, VOCAB = 700 };

static const char *root;
static flp_context *context;
static uint16_t *hidden, *weight;
static int64_t *target;
static float *logp, *entropy;

/* Device pointers are host pointers. */
static void *allocate(size_t bytes)
{
    CUdeviceptr made;

    assert_succeeds(flp_device_memory_allocate((int64_t)bytes, "a test's array", &made));
    return (void *)(uintptr_t)made;
}

static void release(void *memory)
{
    flp_device device;

    assert_succeeds(flp_device_current(&device));
    flp_device_memory_free(&device, (CUdeviceptr)(uintptr_t)memory);
}

static uint16_t *make_values(size_t count, uint32_t seed)
{
    float *values = malloc(count * sizeof(*values));
    uint16_t *made = allocate(count * sizeof(*made));

    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int)(seed >> 24) / 128 - 1;
    }
    flp_convert_from_f32(FLP_BF16, values, made, count);
    free(values);
    return made;
}

static int start(void **state)
{
    (void)state;
    root = fake_directory_make();
    flp_host_device_install(90);
    hidden = make_values((size_t)MANY * HIDDEN, 1);
    weight = make_values((size_t)VOCAB * HIDDEN, 2);
    target = allocate(MANY * sizeof(*target));
    logp = allocate(MANY * sizeof(*logp));
    entropy = allocate(MANY * sizeof(*entropy));
    for (int i = 0; i < MANY; i++)
        target[i] = i * 37 % VOCAB;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_context_destroy(context);
    context = NULL;
    release(hidden);
    release(weight);
    release(target);
    release(logp);
    release(entropy);
    fake_directory_remove(root);
    return 0;
}

static void make_context(unsigned flags)
{
    const flp_context_options options = { .cache_directory = "", .flags = flags, .records_directory = root, .system_records_directories = "" };

    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
}

/* Publishes a record of this machine with a tuning of a problem. A problem text without rows makes a record that decides on a row's bits. hint: the
 * operator's. */
static void publish(const char *problem, const char *hint, const char *tuning)
{
    char with_rows[FLP_PROBLEM_TEXT_BYTES], kernels[FLP_PLAN_KERNELS_BYTES];
    const int decides = flp_tuned_with_rows(problem, with_rows);
    const flp_wanted_kernels wanted = { kernels, 90, "sm_90a", decides ? "" : tuning };
    flp_record record = fake_record();
    flp_device device;

    snprintf(kernels, sizeof(kernels), "%s%s", decides ? with_rows : problem, hint);
    assert_succeeds(flp_tuned_identify(context, &wanted, &record.identity));
    assert_succeeds(flp_device_current(&device));
    flp_environment_describe(&device, &record.environment);
    snprintf(record.identity.problem, sizeof(record.identity.problem), "%s", problem);
    snprintf(record.tuning, sizeof(record.tuning), "%s", tuning);
    assert_succeeds(flp_record_files_publish(root, &record));
}

typedef struct {
    float logp[MANY], entropy[MANY];
} scores;

/* Scores so many rows by a plan for so many. wanted: a part of the name of the variant that it must use. */
static void score(int64_t rows, const char *wanted, scores *result)
{
    const flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = rows, .hidden = HIDDEN, .vocab = VOCAB, .entropy = 1 };
    flp_plan *plan;
    void *workspace;

    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
    assert_contains(plan->kernels[FLP_ROLE_TILE]->manifest.variant, wanted);
    workspace = allocate((size_t)flp_plan_workspace_bytes(plan, rows));
    assert_succeeds(flp_linear_logp_execute(plan, &(flp_linear_logp_args){ .rows = rows,
                                                                           .hidden = hidden,
                                                                           .weight = weight,
                                                                           .target = target,
                                                                           .logp = logp,
                                                                           .entropy = entropy,
                                                                           .workspace = workspace,
                                                                           .workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, rows) }));
    assert_string_equal("", flp_host_device.failure);
    memcpy(result->logp, logp, (size_t)rows * sizeof(*logp));
    memcpy(result->entropy, entropy, (size_t)rows * sizeof(*entropy));
    release(workspace);
    flp_plan_destroy(plan);
}

/* Each of two results is off by 2e-6 at most, relative to the larger of itself and 1, as fusedlogp.h promises. */
static int is_near(float a, float b)
{
    return fabsf(a - b) <= 2 * 2e-6f * fmaxf(1, fabsf(b));
}

static void rows_of_two_numbers_of_rows_have_the_same_bits(void **state)
{
    scores few, many, before;

    (void)state;
    make_context(0);
    publish("linear_logp:bf16:d64:v700:entropy", "", "tile.bv=64");
    publish("linear_logp:bf16:n1024:d64:v700:entropy", "", "tile.bv=64,tile.stages=3");
    make_context(0);
    score(MANY, ".bv168.", &before);
    make_context(FLP_CONTEXT_TUNED_BITS);
    score(FEW, ".bv64.", &few);
    score(MANY, ".bv64.", &many);
    assert_memory_equal(few.logp, many.logp, FEW * sizeof(float));
    assert_memory_equal(few.entropy, many.entropy, FEW * sizeof(float));
    assert_memory_not_equal(before.entropy, many.entropy, MANY * sizeof(float)); /* the tuning changes bits */
    for (int i = 0; i < MANY; i++)
        if (!(before.logp[i] < 0 && is_near(many.logp[i], before.logp[i]) && is_near(many.entropy[i], before.entropy[i])))
            fail_msg("row %d: %.9g, and %.9g with other bits", i, (double)before.logp[i], (double)many.logp[i]);
}

static const char *tuning_of(const flp_tune_target *target, int candidate)
{
    return flp_tune_target_candidate(target, candidate)->tuning;
}

/* A candidate's kernel runs, with few rows and with all, and agrees with the reference and the base. Timing repeats the calls with all rows, so only the base
 * is timed. */
static void assert_sound(flp_tune_target *target, int candidate)
{
    double seconds;

    assert_succeeds(flp_tune_target_prepare(target, candidate));
    assert_succeeds(flp_tune_target_check(target, candidate));
    if (!candidate)
        assert_succeeds(flp_tune_target_time(target, candidate, &seconds));
    assert_string_equal("", flp_host_device.failure);
}

static void a_target_begins_with_what_was_decided(void **state)
{
    const flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = FEW, .hidden = HIDDEN, .vocab = VOCAB };
    const flp_tune_target_options options = { .base = "tile.bv=64", .limit = 3 };
    flp_record_identity identity;
    flp_tune_target *made;
    int joined, without;

    (void)state;
    make_context(0);
    assert_succeeds(flp_tune_target_create(context, &flp_linear_logp_calls, &problem, &options, &made));
    assert_int_equal(4, flp_tune_target_count(made));
    assert_string_equal("tile.bv=64", tuning_of(made, 0));
    for (int i = 1; i < 4; i++)
        assert_contains(tuning_of(made, i), "tile.bv=64");
    assert_contains(flp_tune_target_identity(made)->numerics, ".bv64.");
    assert_sound(made, 0);
    assert_sound(made, 1);
    assert_succeeds(flp_tune_target_join(made, (const int[]){ 1 }, 1, &joined));
    assert_string_equal(tuning_of(made, 1), tuning_of(made, joined));
    assert_succeeds(flp_tune_target_add(made, "", &without)); /* has other bits, but agrees with the reference */
    assert_sound(made, without);
    assert_succeeds(flp_tune_target_identify(made, without, &identity));
    assert_contains(identity.numerics, ".bv168.");
    flp_tune_target_destroy(made);
}

static void a_target_alone_has_what_is_added(void **state)
{
    const flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = FEW, .hidden = HIDDEN, .vocab = VOCAB };
    flp_tune_target *made;
    int added;

    (void)state;
    make_context(0);
    assert_succeeds(flp_tune_target_create(context, &flp_linear_logp_calls, &problem, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_int_equal(1, flp_tune_target_count(made));
    assert_succeeds(flp_tune_target_add(made, "tile.bv=64,tile.s=264", &added)); /* more splits than the default, so a larger workspace */
    assert_int_equal(FLP_ROLE_TILE, flp_tune_target_candidate(made, added)->role);
    assert_sound(made, added);
    flp_tune_target_destroy(made);
}

/* Each tuning's kernel runs, agrees with the reference, and has the default's bits if its numeric identity is the default's. */
static void assert_all_sound(const flp_operator_calls *calls, const void *problem, const char *const *tunings)
{
    flp_tune_target *made;
    int added;

    make_context(0);
    assert_succeeds(flp_tune_target_create(context, calls, problem, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_sound(made, 0);
    for (int i = 0; tunings[i]; i++) {
        assert_succeeds(flp_tune_target_add(made, tunings[i], &added));
        assert_sound(made, added);
    }
    flp_tune_target_destroy(made);
}

static const flp_logits_logp_problem few_rows = { .dtype = FLP_BF16, .rows = FEW, .vocab = 20000 };

static void widths_and_blocks_of_the_forward_over_logits_are_sound(void **state)
{
    static const char *const few[] = { "rows.w=2", NULL };
    static const char *const many[] = { "rows.w=16", "rows.vec=2,rows.w=4", NULL };

    (void)state;
    assert_all_sound(&flp_logits_logp_calls, &few_rows, few);
    assert_all_sound(&flp_logits_logp_calls, &(flp_logits_logp_problem){ .dtype = FLP_BF16, .rows = 200, .vocab = 2056 }, many);
}

/* The bucket's number of rows is too large for a cluster each on this device, so that there is nothing to time. The fewer rows that are compared are not. */
static void what_is_not_launched_is_no_candidate(void **state)
{
    static const char *const tunings[] = { "few_rows.cluster=4,few_rows.w=2", "few_rows.vec=2" };
    flp_tune_target *made;
    int added;

    (void)state;
    make_context(0);
    assert_succeeds(flp_tune_target_create(context, &flp_logits_logp_calls, &few_rows, &(flp_tune_target_options){ .alone = 1 }, &made));
    for (size_t i = 0; i < sizeof(tunings) / sizeof(*tunings); i++) {
        assert_succeeds(flp_tune_target_add(made, tunings[i], &added));
        assert_fails(FLP_NO_VARIANT, flp_tune_target_prepare(made, added), "calls of 64 rows do not launch its kernel");
        assert_succeeds(flp_tune_target_check(made, added));
        assert_string_equal("", flp_host_device.failure);
    }
    flp_tune_target_destroy(made);
}

/* made: a target whose candidates are added one by one. */
static void assert_refused(flp_tune_target *made, const char *tuning, const char *why)
{
    int added;

    assert_succeeds(flp_tune_target_add(made, tuning, &added));
    for (int i = 0; i < 2; i++) /* the second time its plan exists already */
        assert_fails(FLP_NO_VARIANT, flp_tune_target_prepare(made, added), why);
}

/* If a cluster has room for a row, one launch computes everything, and the forward's kernels and the gradient kernel are not launched. */
static void kernels_that_a_fused_gradient_leaves_alone_are_no_candidates(void **state)
{
    flp_logits_logp_backward_problem problem = { .dtype = FLP_BF16, .rows = FEW, .vocab = 5000, .fused = 1 };
    flp_tune_target *made;
    int added;

    (void)state;
    make_context(0);
    assert_succeeds(flp_tune_target_create(context, &flp_logits_logp_backward_calls, &problem, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_succeeds(flp_tune_target_add(made, "fused.w=16", &added));
    assert_sound(made, added);
    assert_refused(made, "gradient.vec=2", "calls of 64 rows do not launch its kernel");
    assert_refused(made, "rows.vec=2", "calls of 64 rows do not launch its kernel");
    flp_tune_target_destroy(made);
    fake_driver.multiprocessors = fake_driver.clusters =
        132; /* so few rows would leave more than half of these idle, so forward and gradients are launched separately */
    problem.vocab = 50000;
    assert_succeeds(flp_tune_target_create(context, &flp_logits_logp_backward_calls, &problem, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_succeeds(flp_tune_target_add(made, "gradient.vec=2", &added));
    assert_sound(made, added);
    assert_refused(made, "fused.w=16", "calls of 64 rows do not launch its kernel");
    flp_tune_target_destroy(made);
}

static int spilled; /* bytes that kernels with loads of two bytes spill */

static int spills(const char *image)
{
    return strstr(image, ".vec2.") ? spilled : 8;
}

static int spills_with_default_columns(const char *image)
{
    return strstr(image, ".bv168.") ? 8 : 0;
}

/* A candidate may spill no more than the default, which is always a candidate. Threads that compile have no current CUDA context. */
static void a_kernel_that_spills_is_refused_before_it_is_timed(void **state)
{
    const flp_logits_logp_problem problem = { .dtype = FLP_BF16, .rows = 200, .vocab = 2056 };
    flp_tune_target *made;
    int added;

    (void)state;
    make_context(0);
    fake_driver.local_bytes = spills;
    spilled = 16;
    assert_succeeds(flp_tune_target_create(context, &flp_logits_logp_calls, &problem, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_sound(made, 0);
    fake_driver.current = NULL;
    assert_refused(made, "rows.vec=2", "16 bytes of registers in local memory, the default's 8");
    fake_driver.current = fake_driver_context(0);
    assert_succeeds(flp_tune_target_add(made, "rows.w=16", &added));
    assert_sound(made, added);
    spilled = 8;
    assert_succeeds(flp_tune_target_add(made, "rows.vec=2,rows.w=4", &added));
    assert_sound(made, added);
    flp_tune_target_destroy(made);
}

/* If the base is a tuning, the empty tuning may be added as a candidate. */
static void what_is_no_tuning_may_spill_more_than_a_base(void **state)
{
    const flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = FEW, .hidden = HIDDEN, .vocab = VOCAB };
    flp_tune_target *made;
    int added;

    (void)state;
    make_context(0);
    fake_driver.local_bytes = spills_with_default_columns;
    assert_succeeds(flp_tune_target_create(context, &flp_linear_logp_calls, &problem, &(flp_tune_target_options){ .base = "tile.bv=64", .alone = 1 }, &made));
    assert_succeeds(flp_tune_target_add(made, "", &added));
    assert_sound(made, added);
    flp_tune_target_destroy(made);
}

static void widths_of_gradients_of_logits_are_sound(void **state)
{
    static const char *const tunings[] = { "gradient.vec=2", "gradient.w=12", NULL };

    (void)state;
    assert_all_sound(&flp_logits_logp_backward_calls, &(flp_logits_logp_backward_problem){ .dtype = FLP_BF16, .rows = FEW, .vocab = 5000 }, tunings);
}

static void widths_and_teams_of_weighted_sums_are_sound(void **state)
{
    static const char *const forward[] = { "sum.vec=8", "sum.vec=2", "sum.team=4", "sum.team=64,sum.vec=4", NULL };
    static const char *const backward[] = { "outer.vec=8", "outer.vec=2", "outer.vec=4,tile.vec=2", NULL };
    const flp_weighted_sum_backward_problem problem = { .forward = { .dtype = FLP_BF16, .rows = FEW, .columns = 520 }, .grad_x = FLP_BF16, .grad_w = FLP_BF16 };

    (void)state;
    assert_all_sound(&flp_weighted_sum_calls, &problem.forward, forward);
    assert_all_sound(&flp_weighted_sum_backward_calls, &problem, backward);
}

/* Two blocks share B: each loads three boxes of columns with half the inner size. There are four steps and two tiles, the second of 64 columns. */
static void products_in_turns_are_sound(void **state)
{
    static const char *const tunings[] = { "hidden_product.bv=192,hidden_product.stages=4", "weight_product.bv=192,weight_product.stages=4", NULL };
    const flp_linear_logp_backward_problem problem = { .forward = { .dtype = FLP_BF16, .rows = MANY, .hidden = 256, .vocab = 400 },
                                                       .grad_hidden = FLP_BF16,
                                                       .grad_weight = FLP_BF16 };

    (void)state;
    assert_all_sound(&flp_linear_logp_backward_calls, &problem, tunings);
}

/* grad_hidden's product of up to 128 rows, with few enough stages that two blocks share a multiprocessor. A cluster's second block has rows that are not there;
 * chunks have more steps than stages, and add to the sums of the one before. */
static void blocks_that_share_a_multiprocessor_are_sound(void **state)
{
    static const char *const tunings[] = { "hidden_product.stages=4", NULL };
    const flp_linear_cross_entropy_problem problem = { .backward = { .forward = { .dtype = FLP_BF16, .rows = 100, .hidden = 256, .vocab = 1500 },
                                                                     .grad_hidden = FLP_BF16,
                                                                     .grad_weight = FLP_BF16,
                                                                     .memory_budget = 300000 } };

    (void)state;
    assert_all_sound(&flp_linear_cross_entropy_calls, &problem, tunings);
}

/* The plan also has the forward's kernels, which are timed with the others. The backward uses the results of its forward. */
static void a_backward_with_its_forward_is_sound(void **state)
{
    static const char *const tunings[] = { "save_exp_tile.stages=3", "weight_product.bv=128", NULL };
    static const char *const again[] = { "tile.stages=3", "grad_logits.stages=3", NULL };
    flp_linear_logp_backward_problem problem = { .forward = { .dtype = FLP_BF16, .rows = MANY, .hidden = 256, .vocab = 400 },
                                                 .grad_hidden = FLP_BF16,
                                                 .grad_weight = FLP_BF16,
                                                 .g_lse = 1,
                                                 .with_forward = 1,
                                                 .memory_budget = 64 << 20 };

    (void)state;
    assert_all_sound(&flp_linear_logp_backward_calls, &problem, tunings);
    problem.g_entropy = 1; /* no exponentials are saved */
    assert_all_sound(&flp_linear_logp_backward_calls, &problem, again);
}

/* gen/advice.lua: cooperative tiles, and saved exponentials from clusters, the last of which has a block without rows. */
static void what_is_advised_for_slow_memory_is_sound(void **state)
{
    static const char *const tunings[] = { "hidden_product.bv=256,hidden_product.stages=4,hidden_product.wg=64,save_exp_tile.cluster=2,save_exp_tile.group=1,"
                                           "weight_product.bv=256,weight_product.stages=4,weight_product.wg=64",
                                           "save_exp_tile.cluster=2", NULL };
    static const char *const across[] = { "save_exp_tile.bm=256,save_exp_tile.stages=3,weight_product.bv=192,weight_product.stages=4", NULL };
    flp_linear_cross_entropy_problem problem = { .backward = { .forward = { .dtype = FLP_BF16, .rows = 300, .hidden = 256, .vocab = 400 },
                                                               .grad_hidden = FLP_BF16,
                                                               .grad_weight = FLP_F32,
                                                               .accumulate = FLP_ACCUMULATE_WEIGHT } };

    (void)state;
    assert_all_sound(&flp_linear_cross_entropy_calls, &problem, tunings);
    problem.backward.forward.weight_layout = FLP_HIDDEN_VOCAB;
    problem.backward.grad_weight = FLP_BF16;
    problem.backward.accumulate = 0;
    assert_all_sound(&flp_linear_cross_entropy_calls, &problem, across);
}

/* A training step with a budget that has room for few columns at a time. */
static const flp_linear_cross_entropy_problem step = { .backward = { .forward = { .dtype = FLP_BF16, .rows = 64, .hidden = 256, .vocab = 3000 },
                                                                     .grad_hidden = FLP_BF16,
                                                                     .grad_weight = FLP_BF16,
                                                                     .memory_budget = 180000 } };
/* The same without saved exponentials, which fp16 does not have. With them, as much of grad_weight as possible would be used for them. */
static const flp_linear_cross_entropy_problem borrowing = { .backward = { .forward = { .dtype = FLP_F16, .rows = 64, .hidden = 256, .vocab = 3000 },
                                                                          .grad_hidden = FLP_F16,
                                                                          .grad_weight = FLP_F16,
                                                                          .memory_budget = 180000 } };
/* A step with a frozen head, in chunks of rows. */
static const flp_linear_cross_entropy_problem frozen = {
    .backward = { .forward = { .dtype = FLP_BF16, .rows = 2048, .hidden = HIDDEN, .vocab = 700 }, .grad_hidden = FLP_BF16, .memory_budget = 2400000 }
};

static void widths_of_chunks_are_sound(void **state)
{
    static const char *const tunings[] = { "chunks.columns=1", "chunks.columns=3", NULL };
    static const char *const of_borrowing[] = { "chunks.borrowed=3", "chunks.borrowed=2,chunks.columns=3", NULL };
    flp_tune_target *made;
    int added;

    (void)state;
    assert_all_sound(&flp_linear_cross_entropy_calls, &step, tunings);
    assert_all_sound(&flp_linear_cross_entropy_calls, &borrowing, of_borrowing);
    assert_succeeds(flp_tune_target_create(context, &flp_linear_cross_entropy_calls, &step, &(flp_tune_target_options){ .alone = 1 }, &made));
    assert_succeeds(flp_tune_target_add(made, "chunks.columns=11", &added));
    assert_fails(FLP_BAD_ARGUMENT, flp_tune_target_prepare(made, added), "the memory_budget is 180000");
    flp_tune_target_destroy(made);
}

/* Each keeps the base's bits: assert_sound compares them, since the numeric identities are equal. */
static void chunks_of_a_frozen_heads_rows_are_offered_and_keep_the_bits(void **state)
{
    flp_record_identity identity;
    flp_tune_target *made;
    int count, first;

    (void)state;
    make_context(0);
    assert_succeeds(flp_tune_target_create(context, &flp_linear_cross_entropy_calls, &frozen, &(flp_tune_target_options){ .limit = 1 }, &made));
    first = flp_tune_target_count(made);
    assert_succeeds(flp_tune_target_offer(made, 1, &count));
    assert_true(count > 0);
    assert_int_equal(flp_tune_target_count_offers(made), count);
    assert_int_equal(first + count, flp_tune_target_count(made));
    for (int i = first; i < first + count; i++) {
        assert_contains(tuning_of(made, i), "chunks.rows=");
        assert_contains(tuning_of(made, i), tuning_of(made, 1));
        assert_succeeds(flp_tune_target_identify(made, i, &identity));
        assert_string_equal(flp_tune_target_identity(made)->numerics, identity.numerics);
    }
    assert_sound(made, first);
    flp_tune_target_destroy(made);
}

/* A record with other widths changes the numeric identity, which names them. A context without FLP_CONTEXT_TUNED_BITS does not use the record. */
static void a_record_of_other_widths_names_them(void **state)
{
    flp_plan *plan;
    char *own;

    (void)state;
    make_context(0);
    publish("linear_cross_entropy:bf16:d256:v3000:gh_bf16:gw_bf16:budget180000", ":saved_exp", "chunks.columns=1");
    make_context(0);
    assert_succeeds(flp_linear_cross_entropy_plan_create(context, &step, &plan));
    assert_contains(flp_plan_describe(plan), "tuning: default");
    own = strdup(flp_plan_numerics(plan));
    flp_plan_destroy(plan);
    make_context(FLP_CONTEXT_TUNED_BITS);
    assert_succeeds(flp_linear_cross_entropy_plan_create(context, &step, &plan));
    assert_contains(flp_plan_describe(plan), "tuning: chunks.columns=1 ");
    assert_contains(flp_plan_describe(plan), " of 256 vocabulary entries");
    assert_contains(flp_plan_numerics(plan), ";chunk256.");
    assert_string_not_equal(own, flp_plan_numerics(plan));
    flp_plan_destroy(plan);
    free(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_of_two_numbers_of_rows_have_the_same_bits, start, stop),
        cmocka_unit_test_setup_teardown(a_target_begins_with_what_was_decided, start, stop),
        cmocka_unit_test_setup_teardown(a_target_alone_has_what_is_added, start, stop),
        cmocka_unit_test_setup_teardown(widths_and_blocks_of_the_forward_over_logits_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(what_is_not_launched_is_no_candidate, start, stop),
        cmocka_unit_test_setup_teardown(kernels_that_a_fused_gradient_leaves_alone_are_no_candidates, start, stop),
        cmocka_unit_test_setup_teardown(a_kernel_that_spills_is_refused_before_it_is_timed, start, stop),
        cmocka_unit_test_setup_teardown(what_is_no_tuning_may_spill_more_than_a_base, start, stop),
        cmocka_unit_test_setup_teardown(widths_of_gradients_of_logits_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(widths_and_teams_of_weighted_sums_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(products_in_turns_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(blocks_that_share_a_multiprocessor_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(a_backward_with_its_forward_is_sound, start, stop),
        cmocka_unit_test_setup_teardown(what_is_advised_for_slow_memory_is_sound, start, stop),
        cmocka_unit_test_setup_teardown(widths_of_chunks_are_sound, start, stop),
        cmocka_unit_test_setup_teardown(chunks_of_a_frozen_heads_rows_are_offered_and_keep_the_bits, start, stop),
        cmocka_unit_test_setup_teardown(a_record_of_other_widths_names_them, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
