/* Plans and calls of linear_cross_entropy: what is refused, where it runs, and what it leaves behind. The order of its launches is for
 * test_linear_cross_entropy_launches.c, the numbers are for test_linear_cross_entropy_cpu.c. */
#include "operators/linear/linear_cross_entropy_plan.h"

#include <math.h>
#include <stdio.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "operator_call.h"

enum { ROWS = 4, HIDDEN = 8, VOCAB = 16 };

static _Alignas(256) uint16_t hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], grad_hidden[ROWS * HIDDEN], grad_weight[VOCAB * HIDDEN];
static _Alignas(256) float bias[VOCAB], grad_bias[VOCAB], classes[VOCAB], tokens[ROWS], logp[ROWS], lse[ROWS], entropy[ROWS], loss[ROWS];
static _Alignas(256) int64_t target[ROWS];
static flp_context *context;
static flp_linear_cross_entropy_problem problem;
static flp_linear_cross_entropy_args args;
static flp_plan *plan;
static void *workspace;

OPERATOR_CALL_FUNCTIONS(linear_cross_entropy)
static const operator_call call = OPERATOR_CALL(linear_cross_entropy, problem, args, problem.backward.forward.rows, problem.backward.forward.backend);

/* No weight, so that every p is 1 / VOCAB. */
static int start(void **state)
{
    (void)state;
    operator_call_current = &call;
    context = fake_call_start(0);
    problem = (flp_linear_cross_entropy_problem){
        .backward = { .forward = { .dtype = FLP_BF16, .rows = ROWS, .hidden = HIDDEN, .vocab = VOCAB, .bias_dtype = FLP_F32 },
                      .grad_hidden = FLP_BF16,
                      .grad_weight = FLP_BF16,
                      .grad_bias = FLP_F32 },
        .class_weights = FLP_F32,
        .token_weights = 1,
        .entropy = 1
    };
    args = (flp_linear_cross_entropy_args){ .rows = ROWS,
                                            .hidden = hidden,
                                            .weight = weight,
                                            .bias = bias,
                                            .target = target,
                                            .ignore_index = -100,
                                            .flags = FLP_IGNORE_INDEX,
                                            .class_weights = classes,
                                            .token_weights = tokens,
                                            .loss = loss,
                                            .logp = logp,
                                            .lse = lse,
                                            .entropy = entropy,
                                            .grad_hidden = grad_hidden,
                                            .grad_weight = grad_weight,
                                            .grad_bias = grad_bias };
    memset(target, 0, sizeof(target));
    for (int v = 0; v < VOCAB; v++)
        classes[v] = 1;
    for (int i = 0; i < ROWS; i++)
        tokens[i] = 1;
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
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(plan, &forward), "plan: got one of linear_cross_entropy, wanted one of linear_logp");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_execute(NULL, &args), "plan: got NULL, wanted one of linear_cross_entropy");
}

/* The CPU path would read what the GPU holds. */
static void a_gpu_without_kernels_is_never_left_for_the_cpu(void **state)
{
    (void)state;
    fake_driver.major = 7;
    fake_driver.minor = 5;
    assert_fails(FLP_NO_VARIANT, flp_linear_cross_entropy_plan_create(context, &problem, &plan), "backend auto");
    assert_null(plan);
    problem.backward.forward.backend = FLP_BACKEND_CPU;
    assert_succeeds(flp_linear_cross_entropy(context, &problem, &args));
    assert_int_equal(0, fake_driver.launches);
}

static void a_plan_describes_itself(void **state)
{
    static const char *const parts[] = { "problem: linear_cross_entropy:bf16:n4:d8:v16:bias_f32:entropy:gh_bf16:gw_bf16:gb_f32:classes_f32:tokens\n",
                                         "path: sm_90a\n",
                                         "tile kernel: linear_logp_save_exp.bf16.d8.",
                                         ".entropy.sm_90a\n",
                                         "loss kernel: token_loss.loss_cross_entropy.sm_90a\n",
                                         "grad_weight product kernel: matrix_product.",
                                         "chunks: ",
                                         "saved exponentials: 16 vocabulary entries",
                                         "flops: 4.00 N V D",
                                         "workspace bytes: " };

    (void)state;
    operator_call_make_plan();
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        assert_contains(flp_plan_describe(plan), parts[i]);
    assert_contains(flp_plan_numerics(plan), ";token_loss.r3.cross_entropy;");
    problem.backward.forward.backend = FLP_BACKEND_CPU;
    operator_call_make_plan();
    assert_int_equal(FLP_BACKEND_CPU, flp_plan_backend(plan));
    assert_contains(flp_plan_numerics(plan), "linear_cross_entropy:cpu");
    assert_contains(flp_plan_numerics(plan), ";loss_cross_entropy");
    assert_int_equal(0, flp_plan_workspace_bytes(plan, ROWS));
}

/* On Hopper that is where the copy engine takes no rows of the weight, or where it is asked for. */
static void the_portable_path_leaves_saved_exponentials_too(void **state)
{
    static const struct {
        flp_backend backend;
        int alignment;
        const char *tile;
    } cases[] = { { FLP_BACKEND_PORTABLE, 16, ".bias_f32.sm_90\n" },
                  { FLP_BACKEND_AUTO, 8, ".bias_f32.vec8.sm_90\n" },
                  { FLP_BACKEND_AUTO, 2, ".bias_f32.vec2.sm_90\n" } };

    (void)state;
    problem.entropy = 0;
    args.entropy = NULL;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        problem.backward.forward.backend = cases[i].backend;
        problem.backward.forward.pointer_alignment = cases[i].alignment;
        operator_call_make_plan();
        assert_int_equal(FLP_BACKEND_PORTABLE, flp_plan_backend(plan));
        assert_contains(flp_plan_describe(plan), "tile kernel: linear_logp_save_exp.bf16.d8.bm64.bv128.s108.c1.p4.");
        assert_contains(flp_plan_describe(plan), cases[i].tile);
        assert_contains(flp_plan_describe(plan), "saved exponentials: 16 vocabulary entries");
        assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
        assert_int_equal(0, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
    }
}

/* What a loss does not use is not computed. */
static void the_loss_decides_what_the_passes_compute(void **state)
{
    static const char with_entropy[] = "return { loss = function(t) return -t.logp - 0.01 * t.entropy end }";

    (void)state;
    problem.entropy = 0;
    operator_call_make_plan();
    assert_null(strstr(flp_plan_describe(plan), ".entropy"));
    assert_null(strstr(flp_plan_describe(plan), "saved exponentials: none"));
    assert_succeeds(flp_token_loss_define(context, "with_entropy", with_entropy));
    strcpy(problem.token_loss, "with_entropy");
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "combine kernel: linear_logp_combine.bm8.entropy.sm_90a\n");
    assert_contains(flp_plan_describe(plan), "loss kernel: token_loss.loss_with_entropy.sm_90a\n");
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, the loss takes more of a row's logits");
    /* Here the derivative by the entropy is the first of all values. */
    assert_succeeds(flp_token_loss_define(context, "product", "return { loss = function(t) return t.logp * t.entropy end }"));
    strcpy(problem.token_loss, "product");
    operator_call_make_plan();
    assert_contains(flp_plan_describe(plan), "saved exponentials: none, the loss takes more of a row's logits");
    problem.backward.grad_hidden = problem.backward.grad_weight = problem.backward.grad_bias = FLP_NONE;
    operator_call_make_plan();
    assert_null(strstr(flp_plan_describe(plan), "matrix_product"));
    assert_null(strstr(flp_plan_describe(plan), "saved exponentials"));
    assert_null(strstr(flp_plan_describe(plan), "save_exp"));
}

static void token_losses_are_known_by_name(void **state)
{
    static const char definition[] = "return { loss = function(t) return -2 * t.logp end }";

    (void)state;
    strcpy(problem.token_loss, "doubled");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_plan_create(context, &problem, &plan), "token loss doubled: there is none of that name");
    assert_succeeds(flp_token_loss_define(context, "doubled", definition));
    assert_succeeds(flp_token_loss_define(context, "doubled", definition));
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "doubled", "return { loss = function(t) return -t.logp end }"),
                 "token loss doubled: it is defined already, otherwise");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "policy_gradient", definition), "defined already");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "Doubled", definition), "name: got Doubled, wanted letters a to z");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "other", "return {"), "token loss other: ");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(NULL, "other", definition), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, NULL, definition), "name: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "other", NULL), "definition: got NULL");
    operator_call_make_plan();
}

/* A sum of so many different terms, as text. */
static const char *long_definition(int terms)
{
    static char text[8192];
    int used = sprintf(text, "return { loss = function(t) return t.logp");

    for (int i = 0; i < terms; i++)
        used += sprintf(text + used, " + exp(t.lse * %d)", i + 2);
    sprintf(text + used, " end }");
    return text;
}

static void a_token_loss_has_limits_and_its_name_is_free_when_it_was_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } refused[] = {
        { "while true do end", "token loss mine: it takes more than 10000000 instructions" },
        { "return { loss = function(t) while true do end end }", "it takes more than 10000000 instructions" },
        { "local s = 'x' while true do s = s .. s end", "token loss mine: it makes a string of more than 64 KiB" },
        { "local s = 'x' for i = 1, 15 do s = s .. s end for i = 1, 200000 do local t = s .. i end",
          "token loss mine: it allocates more than 1024 MiB in all" },
        { "local t = {} for i = 1, 1e8 do t[i] = i end", "it takes more than 64 MiB of memory" },
        { "return { loss = function(t) local e = t.logp for i = 1, 1e9 do e = e + i * t.lse end return e end }", "it takes more than" },
        { "local function f() return f() + f() end return f()", "stack overflow" },
        { "return ('x'):rep(1 << 40)", "attempt to index a string value" },
        { "return ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'):find('a-a-a-a-a-a-a-a-a-a-a-a-b')", "attempt to index a string value" },
        { "return { expression = 'while true do end' }", "it takes more than 10000000 instructions" },
        { "return { expression = \"local s = 'x' while true do s = s .. s end\" }", "it makes a string of more than 64 KiB" },
        { "return { expression = \"return ('x'):rep(9)\" }", "token loss mine: expression:1: attempt to index a string value" },
        { "return { expression = 'logp + foo' }", "token loss mine: expression:1: foo is not known; wanted logp, lse, " },
        { "return 1", "wanted a table with a function `loss`" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "mine", refused[i].text), refused[i].part);
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "mine", long_definition(100)), "operations, wanted at most 256");
    strcpy(problem.token_loss, "mine");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_plan_create(context, &problem, &plan), "there is none of that name");
    assert_succeeds(flp_token_loss_define(context, "mine", long_definition(30)));
    assert_succeeds(flp_token_loss_define(context, "other", "return { loss = function(t) return -t.logp end }"));
}

/* ---- arguments ---- */

static void every_argument_is_checked_and_named(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_execute(plan, NULL), "args: got NULL");
    REFUSED(args.rows = ROWS + 1, "rows: got 5, wanted 0 .. 4");
    REFUSED(args.hidden = NULL, "hidden: got NULL");
    REFUSED(args.weight = weight + 4, "weight: got 0x");
    REFUSED(args.bias = NULL, "bias: got NULL");
    REFUSED(args.target = (char *)target + 4, "wanted a multiple of 8 bytes");
    REFUSED(args.row_temperature = (float *)((char *)tokens + 2), "row_temperature: got 0x");
    REFUSED(args.loss = (float *)((char *)tokens + 2), "loss: got 0x");
    REFUSED(args.temperature = -1, "temperature: got -1");
    REFUSED(args.class_weights = NULL, "class_weights: got NULL");
    REFUSED(args.token_weights = NULL, "token_weights: got NULL");
    REFUSED(args.token_weights = (float *)((char *)tokens + 2), "wanted a multiple of 4 bytes");
    REFUSED(args.g_loss = (float *)((char *)tokens + 2), "g_loss: got 0x");
    REFUSED(args.label_smoothing = 1.5, "label_smoothing: got 1.5, wanted 0 .. 1");
    REFUSED(args.label_smoothing = NAN, "label_smoothing: got ");
    REFUSED(args.label_smoothing = 0.1, "label_smoothing: got 0.1, wanted 0: the problem's label_smoothing is 0");
    REFUSED(args.lse_square_scale = INFINITY, "lse_square_scale: got inf, wanted a number that is finite in fp32");
    REFUSED(args.lse_square_scale = 1e39, "lse_square_scale: got 1e+39, wanted a number that is finite in fp32");
    REFUSED(args.loss = NULL, "loss: got NULL");
    REFUSED(args.logp = (float *)((char *)logp + 2), "logp: got 0x");
    REFUSED(args.lse = (float *)((char *)lse + 2), "lse: got 0x");
    REFUSED(args.entropy = (float *)((char *)entropy + 2), "entropy: got 0x");
    REFUSED(args.grad_hidden = NULL, "grad_hidden: got NULL");
    REFUSED(args.grad_weight = grad_weight + 4, "wanted a multiple of 16 bytes");
    REFUSED(args.grad_bias = NULL, "grad_bias: got NULL");
    REFUSED(args.flags = 2, "flags: got 0x2, wanted no bits but 0x5");
    REFUSED(args.flags = 0, "ignore_index: got -100 without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none");
    REFUSED(args.token_input_count = 1, "token_inputs: got NULL and a count of 1");
    REFUSED(args.token_parameter_count = -1, "token_parameters: got NULL and a count of -1");
    assert_int_equal(0, fake_driver.launches);
}

static void what_was_not_asked_for_is_refused(void **state)
{
    (void)state;
    problem.class_weights = FLP_NONE;
    problem.token_weights = problem.entropy = 0;
    problem.backward.grad_weight = FLP_NONE;
    operator_call_make_plan();
    args.class_weights = args.grad_weight = NULL;
    args.token_weights = NULL;
    args.entropy = NULL;
    UNASKED(args.class_weights = classes, "class_weights is FLP_NONE");
    UNASKED(args.token_weights = tokens, "token_weights is 0");
    UNASKED(args.entropy = entropy, "entropy is 0");
    UNASKED(args.grad_weight = grad_weight, "grad_weight is FLP_NONE");
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
}

static void token_inputs_and_parameters_go_by_their_names(void **state)
{
    flp_token_input inputs[3] = { { "old_logp", logp }, { "advantages", tokens }, { "rewards", tokens } };
    flp_token_parameter parameters[2] = { { "clip_low", 0.1 }, { "clip_lower", 0.1 } };

    (void)state;
    strcpy(problem.token_loss, "policy_gradient");
    operator_call_make_plan();
    args.logp = NULL;
    args.token_inputs = inputs;
    args.token_input_count = 2;
    args.token_parameters = parameters;
    args.token_parameter_count = 1;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    REFUSED(args.token_input_count = 1, "token_inputs: got no \"advantages\", which policy_gradient takes");
    REFUSED(args.token_input_count = 3, "token_inputs: got \"rewards\", which is no input of policy_gradient");
    REFUSED(args.token_parameter_count = 2, "token_parameters: got \"clip_lower\", which is no parameter of policy_gradient");
    REFUSED(parameters[0].value = NAN, "clip_low: got ");
    REFUSED(parameters[0].value = -1e39, "clip_low: got -1e+39, wanted a number that is finite in fp32");
    parameters[0].value = 0.1;
    REFUSED(args.lse_square_scale = 1, "lse_square_scale: got 1, wanted 0: policy_gradient says what the loss is");
    inputs[1].values = NULL;
    REFUSED((void)0, "advantages: got NULL");
}

/* A program's header may know more of the one than of the other. */
static void either_list_of_a_token_loss_may_be_of_another_header(void **state)
{
    struct {
        flp_token_input known;
        uint64_t appended;
    } inputs[2] = { { { "old_logp", logp }, 0 }, { { "advantages", tokens }, 0 } };
    struct {
        flp_token_parameter known;
        uint64_t appended;
    } parameters[2] = { { { "clip_low", 0.1 }, 0 }, { { "clip_high", 0.1 }, 0 } };
    flp_token_input own_inputs[2] = { inputs[0].known, inputs[1].known };
    flp_token_parameter own_parameters[2] = { parameters[0].known, parameters[1].known };
    flp_sizes sizes = *flp_header_sizes();

    (void)state;
    strcpy(problem.token_loss, "policy_gradient");
    operator_call_make_plan();
    args.logp = NULL;
    args.token_input_count = args.token_parameter_count = 2;
    args.token_inputs = own_inputs;
    args.token_parameters = &parameters[0].known;
    sizes.token_parameter = sizeof(parameters[0]);
    assert_succeeds(flp_linear_cross_entropy_execute_sized(plan, &args, &sizes));
    sizes = *flp_header_sizes();
    args.token_inputs = &inputs[0].known;
    args.token_parameters = own_parameters;
    sizes.token_input = sizeof(inputs[0]);
    assert_succeeds(flp_linear_cross_entropy_execute_sized(plan, &args, &sizes));
    inputs[1].appended = 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_execute_sized(plan, &args, &sizes), "token_inputs: got a field");
}

static void the_cross_entropy_has_no_token_parameters(void **state)
{
    const flp_token_parameter parameter = { "lse_square_scale", 0.1 };
    const flp_token_input input = { "advantages", tokens };

    (void)state;
    REFUSED((args.token_parameters = &parameter, args.token_parameter_count = 1), "token_parameters: got 1, wanted none: token_loss is empty");
    REFUSED((args.token_inputs = &input, args.token_input_count = 1), "token_inputs: got \"advantages\", which is no input of the cross-entropy");
}

static void checking_targets_names_the_first_bad_row(void **state)
{
    (void)state;
    args.flags |= FLP_CHECK_TARGETS;
    target[1] = -100;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    target[2] = VOCAB;
    loss[0] = 77;
    assert_fails(FLP_BAD_TARGET, flp_linear_cross_entropy_execute(plan, &args), "target: row 2 got 16");
    assert_true(loss[0] == 77);
}

/* ---- on the CPU ---- */

/* Every p is 1 / 16: the mean is log(16), and dlogit the mean of p - [v = target]. */
static void the_cpu_path_computes_at_once(void **state)
{
    int64_t count, first;

    (void)state;
    target[3] = -100;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_true(fabs(loss[0] - log(VOCAB)) <= 1e-6);
    for (int v = 0; v < VOCAB; v++)
        assert_true(fabs(grad_bias[v] - (1.0 / VOCAB - (v == 0))) <= 1e-6);
    target[2] = VOCAB;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_true(isnan(loss[0]));
    assert_true(fabs(grad_bias[0] - (1.0 / VOCAB - 1)) <= 1e-6); /* the mean of the other two */
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(1, count);
    assert_int_equal(2, first);
    assert_int_equal(0, fake_driver.launches);
}

static void no_rows_write_zeros_and_need_no_inputs(void **state)
{
    const flp_linear_cross_entropy_args empty = { .loss = loss, .grad_weight = grad_weight, .grad_bias = grad_bias };

    (void)state;
    for (int call = 0; call < 2; call++) {
        memset(grad_weight, 0xff, sizeof(grad_weight));
        memset(grad_bias, 0xff, sizeof(grad_bias));
        loss[0] = 7;
        assert_succeeds(call ? flp_linear_cross_entropy(context, &problem, &empty) : flp_linear_cross_entropy_execute(plan, &empty));
        assert_true(loss[0] == 0);
        for (int i = 0; i < VOCAB * HIDDEN; i++)
            assert_int_equal(0, grad_weight[i]);
        for (int v = 0; v < VOCAB; v++)
            assert_true(grad_bias[v] == 0);
    }
}

/* ---- on a GPU ---- */

static void all_launches_are_on_the_stream(void **state)
{
    operator_call_all_launches_are_on_the_stream(state);
    assert_in_range(fake_driver.launches, 9, FAKE_LAUNCHES);
}

static void ask_for_the_loss_alone(void)
{
    problem.backward.grad_hidden = problem.backward.grad_weight = problem.backward.grad_bias = FLP_NONE;
    args.grad_hidden = args.grad_weight = args.grad_bias = NULL;
    operator_call_make_plan();
}

static void without_gradients_the_rows_are_brought_together_too(void **state)
{
    static const char *const kernels[] = { "flp_linear_logp_backward_rows_", "flp_linear_logp_backward_gather_", "flp_linear_logp_bf16_",
                                           "flp_linear_logp_combine_", "flp_token_loss_" };

    (void)state;
    ask_for_the_loss_alone();
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args));
    assert_int_equal(5, fake_driver.launches);
    for (int i = 0; i < 5; i++)
        assert_contains(fake_driver.launch[i].kernel, kernels[i]);
    args.rows = 0;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args)); /* the mean of nothing */
    assert_int_equal(6, fake_driver.launches);
}

/* They are all that it takes beside the forward's scratch, and eight numbers and two places a row. */
static void without_gradients_the_workspace_holds_the_rows_that_count(void **state)
{
    const int64_t few = 8 * 4 + 2 * 4, alignments = 16 * 256, forward = 1024 * (8 + 4 + 4); /* partial, moment, target logit: one split */
    int64_t packed;

    (void)state;
    problem.backward.forward.rows = 1024;
    problem.backward.forward.hidden = 60; /* which takes 64, for the copy engine */
    problem.backward.forward.weight_stride = 64;
    ask_for_the_loss_alone();
    packed = 1024 * 64 * 2;
    assert_in_range(args.workspace_bytes, packed + forward, packed + forward + 1024 * few + alignments);
    assert_contains(flp_plan_describe(plan), "gather kernel: linear_logp_backward_gather.bf16.sm_90a\n");
    assert_contains(flp_plan_describe(plan), "valid rows: packed in 131072 bytes\n");
    assert_null(strstr(flp_plan_describe(plan), "flops"));
}

/* What brings rows together, finds the offsets of the saved exponentials and puts grad_hidden in its places is done once. */
static void the_workspace_is_checked(void **state)
{
    (void)state;
    REFUSED(args.workspace_bytes -= 1, "workspace_bytes: got");
    assert_int_equal(0, fake_driver.launches);
    args.workspace = NULL;
    assert_succeeds(flp_linear_cross_entropy_execute(plan, &args)); /* the context's shared scratch */
}

#define TEST(name, where) cmocka_unit_test_setup_teardown(name, where, operator_call_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plans_of_other_operators_are_told_apart, start),
        TEST(a_gpu_without_kernels_is_never_left_for_the_cpu, start),
        TEST(a_plan_describes_itself, start),
        TEST(the_portable_path_leaves_saved_exponentials_too, start),
        TEST(the_loss_decides_what_the_passes_compute, start),
        TEST(token_losses_are_known_by_name, start),
        TEST(a_token_loss_has_limits_and_its_name_is_free_when_it_was_refused, start),
        TEST(every_argument_is_checked_and_named, start_on_cpu),
        TEST(every_argument_is_checked_and_named, start_on_gpu),
        TEST(what_was_not_asked_for_is_refused, start_on_cpu),
        TEST(token_inputs_and_parameters_go_by_their_names, start_on_cpu),
        TEST(token_inputs_and_parameters_go_by_their_names, start_on_gpu),
        TEST(either_list_of_a_token_loss_may_be_of_another_header, start_on_cpu),
        TEST(the_cross_entropy_has_no_token_parameters, start_on_cpu),
        TEST(checking_targets_names_the_first_bad_row, start_on_cpu),
        TEST(checking_targets_names_the_first_bad_row, start_on_gpu),
        TEST(the_cpu_path_computes_at_once, start_on_cpu),
        TEST(no_rows_write_zeros_and_need_no_inputs, start_on_cpu),
        TEST(all_launches_are_on_the_stream, start_on_gpu),
        TEST(without_gradients_the_rows_are_brought_together_too, start_on_gpu),
        TEST(without_gradients_the_workspace_holds_the_rows_that_count, start_on_gpu),
        TEST(the_workspace_is_checked, start_on_gpu),
        OPERATOR_CASE(another_cuda_context_is_refused, start_on_gpu),
        OPERATOR_CASE(executing_in_a_workspace_allocates_nothing_and_can_be_captured, start_on_gpu),
        OPERATOR_CASE(a_failed_launch_names_the_kernel_and_is_the_last, start_on_gpu),
        OPERATOR_CASE(each_failed_launch_is_the_last, start_on_gpu),
        OPERATOR_CASE(calls_without_a_plan_share_one, start_on_gpu),
        OPERATOR_CASE(a_prepared_problem_can_be_captured, start_on_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
