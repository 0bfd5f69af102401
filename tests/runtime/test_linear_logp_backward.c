/* Plans and calls of linear_logp's backward: what is refused, where it runs, and what it leaves behind. The numbers are for
 * test_linear_logp_backward_cpu.c and the device tests. */
#include "operators/linear/linear_logp_backward_plan.h"

#include <math.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "operator_call.h"

enum { ROWS = 4, HIDDEN = 8, VOCAB = 16 };

static _Alignas(256) uint16_t hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], grad_hidden[ROWS * HIDDEN], grad_weight[VOCAB * HIDDEN];
static _Alignas(256) float bias[VOCAB], grad_bias[VOCAB], lse[ROWS], entropy[ROWS], g[ROWS];
static _Alignas(256) int64_t target[ROWS];
static flp_context *context;
static flp_linear_logp_backward_problem problem;
static flp_linear_logp_backward_args args;
static flp_plan *plan;
static void *workspace;

OPERATOR_CALL_FUNCTIONS(linear_logp_backward)
static const operator_call call = OPERATOR_CALL(linear_logp_backward, problem, args, problem.forward.rows, problem.forward.backend);

/* No weight, so that every p is 1 / VOCAB. */
static int start(void **state)
{
    (void)state;
    operator_call_current = &call;
    context = fake_call_start(0);
    problem = (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB, .bias_dtype = FLP_F32 },
                                                  .grad_hidden = FLP_BF16,
                                                  .grad_weight = FLP_BF16,
                                                  .grad_bias = FLP_F32,
                                                  .g_lse = 1,
                                                  .g_entropy = 1 };
    args = (flp_linear_logp_backward_args){ .rows = ROWS,
                                            .hidden = hidden,
                                            .weight = weight,
                                            .bias = bias,
                                            .target = target,
                                            .ignore_index = -100,
                                            .flags = FLP_IGNORE_INDEX,
                                            .lse = lse,
                                            .entropy = entropy,
                                            .g_logp = g,
                                            .g_lse = g,
                                            .g_entropy = g,
                                            .grad_hidden = grad_hidden,
                                            .grad_weight = grad_weight,
                                            .grad_bias = grad_bias };
    for (int i = 0; i < ROWS; i++) {
        lse[i] = entropy[i] = (float)log(VOCAB);
        g[i] = 1;
        target[i] = 0;
    }
    return 0;
}

static int start_on_gpu(void **state)
{
    return start(state) || operator_call_start_on_gpu();
}

static int start_on_cpu(void **state)
{
    return start(state) || operator_call_start_on_cpu();
}

/* ---- plans ---- */

static void plans_of_other_operators_are_told_apart(void **state)
{
    const flp_linear_logp_args forward = fake_call_args(1);

    (void)state;
    operator_call_make_plan();
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(plan, &forward), "plan: got one of linear_logp_backward, wanted one of linear_logp");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute(NULL, &args), "plan: got NULL, wanted one of linear_logp_backward");
}

/* The CPU path would read what the GPU holds. */
static void a_gpu_without_kernels_is_never_left_for_the_cpu(void **state)
{
    (void)state;
    fake_driver.major = 7;
    fake_driver.minor = 5;
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_backward_plan_create(context, &problem, &plan), "backend auto");
    assert_null(plan);
    assert_fails(FLP_NO_VARIANT, flp_linear_logp_backward(context, &problem, &args), "backend auto");
    problem.forward.backend = FLP_BACKEND_CPU;
    assert_succeeds(flp_linear_logp_backward(context, &problem, &args));
    assert_int_equal(0, fake_driver.launches);
}

static void a_plan_describes_itself(void **state)
{
    static const char *const parts[] = { "problem: linear_logp_backward:bf16:n4:d8:v16:bias_f32:gh_bf16:gw_bf16:gb_f32:g_lse:g_entropy\n", "path: sm_90a\n",
                                         "chunks: ", "workspace bytes: " };

    (void)state;
    operator_call_make_plan();
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        assert_contains(flp_plan_describe(plan), parts[i]);
    assert_contains(flp_plan_describe(plan), flp_plan_numerics(plan));
    problem.forward.backend = FLP_BACKEND_CPU;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "path: cpu\n");
    assert_contains(flp_plan_numerics(plan), "linear_logp_backward:cpu");
    assert_int_equal(0, flp_plan_workspace_bytes(plan, ROWS));
}

/* ---- arguments ---- */

static void every_argument_is_checked_and_named(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute(plan, NULL), "args: got NULL");
    REFUSED(args.rows = ROWS + 1, "rows: got 5, wanted 0 .. 4");
    REFUSED(args.hidden = NULL, "hidden: got NULL");
    REFUSED(args.hidden = hidden + 4, "hidden: got 0x");
    REFUSED(args.weight = NULL, "weight: got NULL");
    REFUSED(args.bias = NULL, "bias: got NULL");
    REFUSED(args.target = NULL, "target: got NULL");
    REFUSED(args.target = (char *)target + 4, "wanted a multiple of 8 bytes");
    REFUSED(args.temperature = -1, "temperature: got -1");
    REFUSED((args.temperature = 2, args.row_temperature = g), "temperature: got 2 beside row_temperature");
    REFUSED(args.row_temperature = (float *)((char *)g + 2), "row_temperature: got 0x");
    REFUSED(args.lse = NULL, "lse: got NULL");
    REFUSED(args.lse = (float *)((char *)g + 2), "lse: got 0x");
    REFUSED(args.logp = (float *)((char *)g + 2), "logp: got 0x");
    REFUSED(args.g_logp = NULL, "g_logp: got NULL");
    REFUSED(args.g_logp = (float *)((char *)g + 2), "wanted a multiple of 4 bytes");
    REFUSED(args.g_lse = NULL, "g_lse: got NULL");
    REFUSED(args.g_entropy = NULL, "g_entropy: got NULL");
    REFUSED(args.entropy = NULL, "entropy: got NULL");
    REFUSED(args.grad_hidden = NULL, "grad_hidden: got NULL");
    REFUSED(args.grad_hidden = grad_hidden + 4, "grad_hidden: got 0x");
    REFUSED(args.grad_weight = NULL, "grad_weight: got NULL");
    REFUSED(args.grad_weight = grad_weight + 4, "wanted a multiple of 16 bytes");
    REFUSED(args.grad_bias = NULL, "grad_bias: got NULL");
    REFUSED(args.grad_bias = (char *)grad_bias + 2, "wanted a multiple of 4 bytes");
    REFUSED(args.flags = 2, "flags: got 0x2, wanted no bits but 0x5");
    REFUSED(args.flags = 0, "ignore_index: got -100 without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none");
    assert_int_equal(0, fake_driver.launches);
}

static void what_was_not_asked_for_is_refused(void **state)
{
    (void)state;
    problem.forward.bias_dtype = problem.grad_bias = problem.grad_weight = FLP_NONE;
    problem.g_lse = problem.g_entropy = 0;
    operator_call_make_plan();
    args.bias = args.grad_bias = args.grad_weight = NULL;
    args.g_lse = args.g_entropy = args.entropy = NULL;
    UNASKED(args.bias = bias, "bias_dtype is FLP_NONE");
    UNASKED(args.g_lse = g, "g_lse is 0");
    UNASKED(args.g_entropy = g, "g_entropy is 0");
    UNASKED(args.entropy = g, "g_entropy is 0");
    UNASKED(args.grad_weight = grad_weight, "grad_weight is FLP_NONE");
    UNASKED(args.grad_bias = grad_bias, "grad_bias is FLP_NONE");
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
}

/* An fp32 gradient of bf16 inputs lies at multiples of 4 bytes at least. */
static void gradients_are_aligned_to_their_own_elements(void **state)
{
    static _Alignas(16) float wide[ROWS * HIDDEN + 1];

    (void)state;
    problem.forward.pointer_alignment = 2;
    problem.grad_hidden = FLP_F32;
    operator_call_make_plan();
    args.grad_hidden = wide;
    REFUSED(args.grad_hidden = (char *)wide + 2, "grad_hidden: got 0x");
    args.grad_hidden = (char *)wide + 4;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    args.grad_hidden = (char *)wide + 2;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward(context, &problem, &args), "grad_hidden: got 0x");
}

/* A bf16 gradient of fp32 inputs may lie between their elements, where nothing is promised but these. */
static void smaller_gradients_lie_between_elements(void **state)
{
    static _Alignas(16) float hidden32[ROWS * HIDDEN], weight32[VOCAB * HIDDEN];
    static _Alignas(16) uint16_t wide[VOCAB * HIDDEN + 1], rows[ROWS * HIDDEN + 1];

    (void)state;
    problem.forward.dtype = FLP_F32;
    args.hidden = hidden32;
    args.weight = weight32;
    args.grad_weight = wide + 1;
    args.grad_hidden = rows + 1;
    for (int alignment = 4; alignment <= 16; alignment *= 2) {
        problem.forward.pointer_alignment = alignment;
        operator_call_make_plan();
        if (alignment > 4) {
            REFUSED((args.grad_weight = wide + 1, args.grad_hidden = rows), "grad_weight: got 0x");
            REFUSED((args.grad_weight = wide, args.grad_hidden = rows + 1), "grad_hidden: got 0x");
            args.grad_weight = wide;
            args.grad_hidden = rows;
        }
        assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    }
    args.grad_weight = wide + 1;
    args.grad_hidden = rows + 1;
    fake_driver.launches = 0;
    assert_succeeds(flp_linear_logp_backward(context, &problem, &args));
    assert_true(fake_driver.launches > 0);
    for (int i = 0; i < fake_driver.launches; i++) /* a path that needs no more than an element of the inputs */
        assert_null(strstr(fake_driver.launch[i].kernel, "sm_90a"));
    args.grad_weight = (char *)wide + 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward(context, &problem, &args), "wanted a multiple of 2 bytes");
    args.grad_weight = wide;
    args.hidden = (const char *)hidden32 + 2;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward(context, &problem, &args), "wanted a multiple of 4 bytes");
}

static void checking_targets_names_the_first_bad_row(void **state)
{
    (void)state;
    args.flags |= FLP_CHECK_TARGETS;
    target[1] = -100;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    target[2] = VOCAB;
    grad_bias[3] = 77;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_backward_execute(plan, &args), "target: row 2 got 16");
    assert_true(grad_bias[3] == 77);
}

/* ---- on the CPU ---- */

/* g_logp, g_lse and g_entropy are 1: dlogit = [v = target] - 1 / V + 1 / V - 0. */
static void the_cpu_path_computes_at_once(void **state)
{
    int64_t count, first;

    (void)state;
    target[2] = VOCAB;
    target[3] = -100;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    /* Two rows count; log(16) is off by a rounding of fp32. */
    for (int v = 0; v < VOCAB; v++)
        assert_true(fabs(grad_bias[v] - (v == 0 ? 2 : 0)) <= 1e-6);
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(1, count);
    assert_int_equal(2, first);
    assert_int_equal(0, fake_driver.launches);
}

static void no_rows_write_zeros_and_need_no_inputs(void **state)
{
    const flp_linear_logp_backward_args empty = { .grad_weight = grad_weight, .grad_bias = grad_bias };

    (void)state;
    for (int call = 0; call < 2; call++) {
        memset(grad_weight, 0xff, sizeof(grad_weight));
        memset(grad_bias, 0xff, sizeof(grad_bias));
        assert_succeeds(call ? flp_linear_logp_backward(context, &problem, &empty) : flp_linear_logp_backward_execute(plan, &empty));
        for (int i = 0; i < VOCAB * HIDDEN; i++)
            assert_int_equal(0, grad_weight[i]);
        for (int v = 0; v < VOCAB; v++)
            assert_true(grad_bias[v] == 0);
    }
}

static void no_rows_leave_what_is_added_to(void **state)
{
    const flp_linear_logp_backward_args empty = { .grad_weight = grad_weight, .grad_bias = grad_bias };

    (void)state;
    problem.accumulate = FLP_ACCUMULATE_BIAS;
    operator_call_make_plan();
    for (int v = 0; v < VOCAB; v++)
        grad_bias[v] = (float)v;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &empty));
    for (int v = 0; v < VOCAB; v++)
        assert_true(grad_bias[v] == (float)v);
}

/* ---- on a GPU ---- */

static void the_workspace_is_checked(void **state)
{
    (void)state;
    REFUSED(args.workspace_bytes -= 1, "workspace_bytes: got");
    REFUSED(args.workspace = (char *)args.workspace + 128, "workspace: got 0x");
    assert_int_equal(0, fake_driver.launches);
    args.workspace = NULL;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args)); /* the context's shared scratch */
}

/* ---- with the forward, with a filter ---- */

static float logp[ROWS];

static flp_linear_logp_args forward_args(void)
{
    return (flp_linear_logp_args){ .rows = args.rows,
                                   .hidden = hidden,
                                   .weight = weight,
                                   .bias = bias,
                                   .target = target,
                                   .ignore_index = -100,
                                   .flags = FLP_IGNORE_INDEX,
                                   .logp = logp,
                                   .lse = lse,
                                   .entropy = problem.g_entropy ? entropy : NULL,
                                   .workspace = args.workspace,
                                   .workspace_bytes = args.workspace_bytes };
}

static void a_plan_without_a_forward_refuses_to_run_it(void **state)
{
    const flp_linear_logp_args forward = forward_args();

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute_forward(plan, &forward), "with_forward is 0, wanted 1");
    problem.with_forward = 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward(context, &problem, &args), "problem.with_forward: got 1, wanted 0: it takes a plan");
}

static void the_forward_and_the_backward_need_the_workspace_between_them(void **state)
{
    flp_linear_logp_args forward;

    (void)state;
    problem.with_forward = 1;
    operator_call_make_plan();
    forward = forward_args();
    forward.workspace = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute_forward(plan, &forward), "workspace: got NULL, wanted memory that is left alone");
    forward = forward_args();
    forward.lse = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute_forward(plan, &forward), "lse: got NULL");
    forward = forward_args();
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    args.workspace = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute(plan, &args), "workspace: got NULL, wanted that of the forward");
    args.workspace = workspace;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_int_equal(0, fake_driver.calls[FAKE_memory_allocate]);
}

/* Saved exponentials of the whole vocabulary, or where a loss of the entropy forbids one, the logits computed anew. */
static void a_plan_with_a_forward_describes_it(void **state)
{
    (void)state;
    problem.with_forward = 1;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "tile kernel: linear_logp.bf16.");
    assert_contains(flp_plan_describe(plan), ".entropy.packed.sm_90a\n");
    assert_contains(flp_plan_describe(plan), "flops: 6 N V D, the logits computed anew\n");
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, the entropy's derivative differs");
    problem.g_entropy = 0;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "tile kernel: linear_logp_save_exp.bf16.");
    assert_contains(flp_plan_describe(plan), "flops: 4.00 N V D");
    assert_contains(flp_plan_numerics(plan), ";saved");
    assert_null(strstr(flp_plan_describe(plan), "none"));
    problem.forward.softcap = 30;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, softcap's slope");
    problem.forward.softcap = 0;
    problem.grad_filter_eps = 1e-5;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "filter kernel: linear_logp_backward_filter.sm_90a\n");
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, grad_filter_eps");
    assert_contains(flp_plan_describe(plan), "flops: 6 N V D, the logits computed anew\n");
    problem.forward.backend = FLP_BACKEND_PORTABLE;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "filter: none, blocks are passed over on the path sm_90a alone\n");
}

/* What is laid out for rows has no room for the last rows of a taller one. */
static void a_cluster_taller_than_what_is_laid_out_for_it_is_refused(void **state)
{
    flp_linear_logp_backward_plan changed;
    flp_kernel tall;

    (void)state;
    problem.with_forward = 1;
    problem.g_entropy = 0;
    operator_call_make_plan();
    changed = *flp_linear_logp_backward_plan_of(plan);
    tall = *changed.forward.tile;
    changed.forward.tile = &tall;
    tall.manifest.cluster = FLP_BACKWARD_ROW_BLOCK / tall.manifest.block_rows;
    assert_succeeds(flp_linear_logp_backward_check_forward(&changed.forward, &changed.work));
    tall.manifest.cluster++;
    assert_fails(FLP_INTERNAL, flp_linear_logp_backward_check_forward(&changed.forward, &changed.work), "block_rows times cluster is");
}

static void a_frozen_head_has_its_product_in_the_forward(void **state)
{
    (void)state;
    problem.with_forward = 1;
    problem.g_entropy = 0;
    problem.grad_weight = problem.grad_bias = FLP_NONE;
    problem.grad_weight_stride = 0;
    problem.accumulate = 0;
    problem.forward.vocab = 20000;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "grad_hidden product: in the forward, of 7680 rows at a time\n");
    assert_contains(flp_plan_describe(plan), "flops: 2.00 N V D");
    assert_contains(flp_plan_numerics(plan), ";saved20224.in_forward");
    assert_null(strstr(flp_plan_numerics(plan), "parts"));
    problem.forward.vocab = 50000;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "grad_hidden product: in 3 parts of 16704 vocabulary entries\n");
    assert_contains(flp_plan_describe(plan), "sum of grad_hidden's parts kernel: linear_logp_backward_finish.out_f32.parts.");
    assert_contains(flp_plan_numerics(plan), ";saved50176.in_forward.parts16704");
}

static void fp16_leaves_no_saved_exp_and_says_so(void **state)
{
    (void)state;
    problem.with_forward = 1;
    problem.g_entropy = 0;
    problem.forward.dtype = FLP_F16;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "tile kernel: linear_logp.f16.");
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, it takes bf16's range of exponents\n");
}

/* Its kernels take no tensor maps. */
static void the_portable_path_leaves_saved_exponentials_too(void **state)
{
    flp_linear_logp_args forward;

    (void)state;
    problem.with_forward = 1;
    problem.g_entropy = 0;
    problem.forward.backend = FLP_BACKEND_PORTABLE;
    args.entropy = args.g_entropy = NULL;
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "tile kernel: linear_logp_save_exp.bf16.");
    assert_contains(flp_plan_describe(plan), ".b_transposed.out_bf16."); /* grad_hidden is one product */
    assert_contains(flp_plan_describe(plan), "saved exponentials: 16 vocabulary entries");
    assert_contains(flp_plan_describe(plan), "flops: 4.00 N V D");
    assert_contains(flp_plan_numerics(plan), "linear_logp_save_exp.r3.mma_m16n8k16.bf16.bv64x2.");
    forward = forward_args();
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    assert_int_equal(3, operator_call_launches_of("flp_linear_logp_save_exp_")); /* offsets, terms, and those of blocks that overflowed */
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_int_equal(0, operator_call_launches_of("flp_linear_logp_grad_logits_"));
    assert_int_equal(0, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
}

static void the_cpu_path_runs_both_too(void **state)
{
    flp_linear_logp_args forward;
    int64_t count, first;

    (void)state;
    problem.with_forward = 1;
    operator_call_make_plan();
    target[1] = -100;
    target[2] = VOCAB;
    forward = forward_args();
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    assert_float_equal(-log(VOCAB), logp[0], 1e-6);
    assert_float_equal(log(VOCAB), lse[0], 1e-6);
    assert_true(logp[1] == 0 && lse[1] == 0 && entropy[1] == 0);
    assert_true(isnan(logp[2]) && lse[2] == 0 && entropy[2] == 0);
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_succeeds(flp_plan_target_errors(plan, &count, &first)); /* counted once */
    assert_int_equal(1, count);
    assert_int_equal(2, first);
}

static void assert_no_forward(void)
{
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute(plan, &args), "workspace: got one without the mark of this plan's forward, of");
}

/* On a GPU path the device finds out: tests/host/host_forward_pair.c. */
static void on_the_cpu_each_backward_takes_one_forward(void **state)
{
    static _Alignas(256) char other[256];
    flp_linear_logp_args forward;
    flp_plan *first;
    int64_t count = 7;

    (void)state;
    problem.with_forward = 1;
    operator_call_make_plan();
    memset(workspace, 0xff, args.workspace_bytes);
    assert_no_forward();
    forward = forward_args();
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    args.workspace = other;
    assert_no_forward();
    args.workspace = workspace;
    args.temperature = 2;
    assert_no_forward();
    args.temperature = 1; /* which 0 stands for */
    args.rows--;
    assert_no_forward();
    args.rows++;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_no_forward();
    assert_succeeds(flp_linear_logp_backward_execute_forward(plan, &forward));
    first = plan;
    assert_succeeds(flp_linear_logp_backward_plan_create(context, &problem, &plan));
    assert_no_forward(); /* another plan's */
    flp_plan_destroy(plan);
    plan = first;
    assert_succeeds(flp_linear_logp_backward_execute(plan, &args));
    assert_succeeds(flp_plan_unmatched_backwards(plan, &count));
    assert_int_equal(0, count);
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_unmatched_backwards(NULL, &count), "plan: got NULL");
}

static void a_plan_counts_what_its_filter_passed_over(void **state)
{
    int64_t blocks = -1, passed_over = -1;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_filter_statistics(NULL, &blocks, NULL), "plan: got NULL");
    assert_succeeds(flp_plan_filter_statistics(plan, &blocks, &passed_over));
    assert_int_equal(0, blocks);
    assert_int_equal(0, passed_over);
    assert_succeeds(flp_plan_filter_statistics(plan, NULL, NULL));
}

#define TEST(name, where) cmocka_unit_test_setup_teardown(name, where, operator_call_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plans_of_other_operators_are_told_apart, start),
        TEST(a_gpu_without_kernels_is_never_left_for_the_cpu, start),
        TEST(a_plan_describes_itself, start),
        TEST(every_argument_is_checked_and_named, start_on_cpu),
        TEST(every_argument_is_checked_and_named, start_on_gpu),
        TEST(what_was_not_asked_for_is_refused, start_on_cpu),
        TEST(gradients_are_aligned_to_their_own_elements, start_on_cpu),
        TEST(smaller_gradients_lie_between_elements, start),
        TEST(checking_targets_names_the_first_bad_row, start_on_cpu),
        TEST(checking_targets_names_the_first_bad_row, start_on_gpu),
        TEST(the_cpu_path_computes_at_once, start_on_cpu),
        TEST(no_rows_write_zeros_and_need_no_inputs, start_on_cpu),
        TEST(no_rows_leave_what_is_added_to, start_on_cpu),
        OPERATOR_CASE(all_launches_are_on_the_stream, start_on_gpu),
        TEST(the_workspace_is_checked, start_on_gpu),
        OPERATOR_CASE(another_cuda_context_is_refused, start_on_gpu),
        OPERATOR_CASE(executing_in_a_workspace_allocates_nothing_and_can_be_captured, start_on_gpu),
        OPERATOR_CASE(a_failed_launch_names_the_kernel_and_is_the_last, start_on_gpu),
        OPERATOR_CASE(each_failed_launch_is_the_last, start_on_gpu),
        OPERATOR_CASE(calls_without_a_plan_share_one, start_on_gpu),
        OPERATOR_CASE(a_prepared_problem_can_be_captured, start_on_gpu),
        TEST(a_plan_without_a_forward_refuses_to_run_it, start_on_gpu),
        TEST(a_plan_without_a_forward_refuses_to_run_it, start_on_cpu),
        TEST(the_forward_and_the_backward_need_the_workspace_between_them, start_on_gpu),
        TEST(the_forward_and_the_backward_need_the_workspace_between_them, start_on_cpu),
        TEST(a_plan_with_a_forward_describes_it, start_on_gpu),
        TEST(a_cluster_taller_than_what_is_laid_out_for_it_is_refused, start_on_gpu),
        TEST(a_frozen_head_has_its_product_in_the_forward, start_on_gpu),
        TEST(fp16_leaves_no_saved_exp_and_says_so, start_on_gpu),
        TEST(the_portable_path_leaves_saved_exponentials_too, start_on_gpu),
        TEST(the_cpu_path_runs_both_too, start_on_cpu),
        TEST(on_the_cpu_each_backward_takes_one_forward, start_on_cpu),
        TEST(a_plan_counts_what_its_filter_passed_over, start_on_gpu),
        TEST(a_plan_counts_what_its_filter_passed_over, start_on_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
