/* The whole header held against bad callers: NULL for each pointer in turn, and every enumeration out of its range. All of it is a status, none a fault. */
#include <limits.h>
#include <stddef.h>

#include "assertions.h"
#include "every_operator.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fusedlogp.h"
#include "operator_call.h"

enum { N = 2, D = 4, V = 4, MOST = 20 };

typedef struct {
    const char *name; /* NULL ends a table */
    size_t at;
    int needed; /* of a pointer: 1: NULL is FLP_BAD_ARGUMENT */
} field;

typedef struct {
    const char *name;
    size_t problem_bytes, args_bytes;
    const void *problem, *args; /* acceptable */
    field choices[MOST];        /* enumerations and flags of the problem */
    field pointers[MOST];       /* of the args */
    flp_status (*format)(const void *problem, char *text, size_t bytes);
    flp_status (*parse)(const char *text, void *problem);
    flp_status (*plan_create)(flp_context *context, const void *problem, flp_plan **plan);
    flp_status (*execute)(flp_plan *plan, const void *args);
    flp_status (*run)(flp_context *context, const void *problem, const void *args);
    flp_status (*prepare)(flp_context *context, const void *problem, void *stream);
    flp_status (*run_sized)(flp_context *context, const void *problem, const void *args, const flp_sizes *sizes);
} op;

/* The operator's functions with pointers of no type, so that a table can hold them. */
#define FUNCTIONS(X)                                                                                  \
    OPERATOR_CALL_FUNCTIONS(X)                                                                        \
    static flp_status X##_format(const void *p, char *text, size_t bytes)                             \
    {                                                                                                 \
        return flp_##X##_problem_format(p, text, bytes);                                              \
    }                                                                                                 \
    static flp_status X##_parse(const char *text, void *p)                                            \
    {                                                                                                 \
        return flp_##X##_problem_parse(text, p);                                                      \
    }                                                                                                 \
    static flp_status X##_run_sized(flp_context *c, const void *p, const void *a, const flp_sizes *s) \
    {                                                                                                 \
        return flp_##X##_sized(c, p, a, s);                                                           \
    }
FUNCTIONS(linear_logp)
FUNCTIONS(linear_logp_backward)
FUNCTIONS(linear_cross_entropy)
FUNCTIONS(weighted_sum)
FUNCTIONS(weighted_sum_backward)
FUNCTIONS(scale)
FUNCTIONS(logits_logp)
FUNCTIONS(logits_logp_backward)

static _Alignas(16) float hidden[N * D], weight[V * D], bias[V], rows[8][N], grad_hidden[N * D], grad_weight[V * D], grad_bias[V], loss;
static int64_t target[N], row_index[N] = { 0, 1 };
static int32_t argmax[N];

#define LINEAR                                                                                                                                    \
    {                                                                                                                                             \
        .dtype = FLP_F32, .rows = N, .hidden = D, .vocab = V, .bias_dtype = FLP_F32, .precision = FLP_PRECISION_EXACT, .backend = FLP_BACKEND_CPU \
    }
#define GRADIENTS .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32
static const flp_linear_logp_problem linear_logp_problem = LINEAR;
static const flp_linear_logp_args linear_logp_args = {
    .rows = N, .hidden = hidden, .weight = weight, .bias = bias, .target = target, .logp = rows[0], .lse = rows[1]
};
static const flp_linear_logp_backward_problem linear_logp_backward_problem = { .forward = LINEAR, GRADIENTS };
static const flp_linear_logp_backward_args linear_logp_backward_args = {
    .rows = N,
    .hidden = hidden,
    .weight = weight,
    .bias = bias,
    .target = target,
    .lse = rows[1],
    .g_logp = rows[2],
    .grad_hidden = grad_hidden,
    .grad_weight = grad_weight,
    .grad_bias = grad_bias,
};
static const flp_linear_cross_entropy_problem linear_cross_entropy_problem = {
    .backward = { .forward = LINEAR, GRADIENTS }, .class_weights = FLP_F32, .token_weights = 1, .token_loss = "policy_gradient"
};
static const flp_token_input inputs[2] = { { "advantages", rows[4] }, { "old_logp", rows[5] } };
static const flp_linear_cross_entropy_args linear_cross_entropy_args = {
    .rows = N,
    .hidden = hidden,
    .weight = weight,
    .bias = bias,
    .target = target,
    .class_weights = bias,
    .token_weights = rows[3],
    .loss = &loss,
    .token_inputs = inputs,
    .token_input_count = 2,
    .grad_hidden = grad_hidden,
    .grad_weight = grad_weight,
    .grad_bias = grad_bias,
};
static const flp_weighted_sum_problem weighted_sum_problem = { .dtype = FLP_F32, .rows = N, .columns = D, .backend = FLP_BACKEND_CPU };
static const flp_weighted_sum_args weighted_sum_args = { .rows = N, .x = hidden, .w = bias, .y = rows[0] };
static const flp_weighted_sum_backward_problem weighted_sum_backward_problem = {
    .forward = { .dtype = FLP_F32, .rows = N, .columns = D, .backend = FLP_BACKEND_CPU },
    .grad_x = FLP_F32,
    .grad_w = FLP_F32,
};
static const flp_weighted_sum_backward_args weighted_sum_backward_args = {
    .rows = N, .g = rows[0], .x = hidden, .w = bias, .grad_x = grad_hidden, .grad_w = grad_bias
};
static const flp_scale_problem scale_problem = { .dtype = FLP_F32, .rows = N, .columns = D, .backend = FLP_BACKEND_CPU };
static const flp_scale_args scale_args = { .rows = N, .x = grad_hidden, .factor = rows[6] };
static const flp_logits_logp_problem logits_logp_problem = { .dtype = FLP_F32, .rows = N, .vocab = V, .argmax = 1, .entropy = 1, .backend = FLP_BACKEND_CPU };
static const flp_logits_logp_args logits_logp_args = { .rows = N,
                                                       .logits = hidden,
                                                       .target = target,
                                                       .row_index = row_index,
                                                       .logits_rows = N,
                                                       .logp = rows[0],
                                                       .lse = rows[1],
                                                       .entropy = rows[2],
                                                       .argmax = argmax };
static const flp_logits_logp_backward_problem logits_logp_backward_problem = {
    .dtype = FLP_F32, .rows = N, .vocab = V, .entropy = 1, .backend = FLP_BACKEND_CPU
};
static const flp_logits_logp_backward_args logits_logp_backward_args = {
    .rows = N,
    .logits = hidden,
    .target = target,
    .g_logp = rows[0],
    .g_lse = rows[1],
    .g_entropy = rows[2],
    .lse = rows[3],
    .entropy = rows[4],
    .grad_logits = grad_hidden,
};

#define CHOICE(X, path, name)                      \
    {                                              \
        name, offsetof(flp_##X##_problem, path), 0 \
    }
#define LINEAR_CHOICES(X, forward)                                                                                                     \
    CHOICE(X, forward dtype, "dtype"), CHOICE(X, forward weight_layout, "weight_layout"), CHOICE(X, forward bias_dtype, "bias_dtype"), \
        CHOICE(X, forward target_dtype, "target_dtype"), CHOICE(X, forward precision, "precision"), CHOICE(X, forward backend, "backend")
#define BACKWARD_CHOICES(X, backward)                                                                                                     \
    LINEAR_CHOICES(X, backward forward.), CHOICE(X, backward grad_hidden, "grad_hidden"), CHOICE(X, backward grad_weight, "grad_weight"), \
        CHOICE(X, backward grad_bias, "grad_bias"), CHOICE(X, backward g_lse, "g_lse"), CHOICE(X, backward g_entropy, "g_entropy"),       \
        CHOICE(X, backward with_forward, "with_forward")
#define NEEDED(X, name)                          \
    {                                            \
#name, offsetof(flp_##X##_args, name), 1 \
    }
#define OPTIONAL(X, name)                        \
    {                                            \
#name, offsetof(flp_##X##_args, name), 0 \
    }
#define LINEAR_POINTERS(X) NEEDED(X, hidden), NEEDED(X, weight), NEEDED(X, bias), NEEDED(X, target), OPTIONAL(X, row_temperature)
#define GRADIENT_POINTERS(X) NEEDED(X, grad_hidden), NEEDED(X, grad_weight), NEEDED(X, grad_bias)
#define OPERATOR(X)                                                                                                                           \
    .name = #X, .problem_bytes = sizeof(flp_##X##_problem), .args_bytes = sizeof(flp_##X##_args), .problem = &X##_problem, .args = &X##_args, \
    .format = X##_format, .parse = X##_parse, .plan_create = X##_plan_create, .execute = X##_execute, .run = X##_run, .prepare = X##_prepare, \
    .run_sized = X##_run_sized
static const op operators[] = {
    { OPERATOR(linear_logp), .choices = { LINEAR_CHOICES(linear_logp, ), CHOICE(linear_logp, argmax, "argmax"), CHOICE(linear_logp, entropy, "entropy") },
      .pointers = { LINEAR_POINTERS(linear_logp), NEEDED(linear_logp, logp), OPTIONAL(linear_logp, lse) } },
    { OPERATOR(linear_logp_backward), .choices = { BACKWARD_CHOICES(linear_logp_backward, ) },
      .pointers = { LINEAR_POINTERS(linear_logp_backward), GRADIENT_POINTERS(linear_logp_backward), NEEDED(linear_logp_backward, lse),
                    NEEDED(linear_logp_backward, g_logp), OPTIONAL(linear_logp_backward, logp) } },
    { OPERATOR(linear_cross_entropy),
      .choices = { BACKWARD_CHOICES(linear_cross_entropy, backward.), CHOICE(linear_cross_entropy, reduction, "reduction"),
                   CHOICE(linear_cross_entropy, label_smoothing, "label_smoothing"), CHOICE(linear_cross_entropy, class_weights, "class_weights"),
                   CHOICE(linear_cross_entropy, token_weights, "token_weights"), CHOICE(linear_cross_entropy, entropy, "entropy"),
                   CHOICE(linear_cross_entropy, reserved, "reserved") },
      .pointers = { LINEAR_POINTERS(linear_cross_entropy), GRADIENT_POINTERS(linear_cross_entropy), NEEDED(linear_cross_entropy, loss),
                    NEEDED(linear_cross_entropy, class_weights), NEEDED(linear_cross_entropy, token_weights), NEEDED(linear_cross_entropy, token_inputs),
                    OPTIONAL(linear_cross_entropy, g_loss) } },
    { OPERATOR(weighted_sum),
      .choices = { CHOICE(weighted_sum, dtype, "dtype"), CHOICE(weighted_sum, w_dtype, "w_dtype"), CHOICE(weighted_sum, y_dtype, "y_dtype"),
                   CHOICE(weighted_sum, backend, "backend") },
      .pointers = { NEEDED(weighted_sum, x), NEEDED(weighted_sum, w), NEEDED(weighted_sum, y) } },
    { OPERATOR(weighted_sum_backward),
      .choices = { CHOICE(weighted_sum_backward, forward.dtype, "dtype"), CHOICE(weighted_sum_backward, forward.w_dtype, "w_dtype"),
                   CHOICE(weighted_sum_backward, forward.y_dtype, "y_dtype"), CHOICE(weighted_sum_backward, forward.backend, "backend"),
                   CHOICE(weighted_sum_backward, grad_x, "grad_x"), CHOICE(weighted_sum_backward, grad_w, "grad_w"),
                   CHOICE(weighted_sum_backward, accumulate, "accumulate") },
      .pointers = { NEEDED(weighted_sum_backward, g), NEEDED(weighted_sum_backward, x), NEEDED(weighted_sum_backward, w), NEEDED(weighted_sum_backward, grad_x),
                    NEEDED(weighted_sum_backward, grad_w) } },
    { OPERATOR(scale), .choices = { CHOICE(scale, dtype, "dtype"), CHOICE(scale, backend, "backend") },
      .pointers = { NEEDED(scale, x), NEEDED(scale, factor) } },
    { OPERATOR(logits_logp),
      .choices = { CHOICE(logits_logp, dtype, "dtype"), CHOICE(logits_logp, target_dtype, "target_dtype"), CHOICE(logits_logp, argmax, "argmax"),
                   CHOICE(logits_logp, entropy, "entropy"), CHOICE(logits_logp, backend, "backend") },
      .pointers = { NEEDED(logits_logp, logits), NEEDED(logits_logp, target), OPTIONAL(logits_logp, row_index), OPTIONAL(logits_logp, logp),
                    OPTIONAL(logits_logp, lse), OPTIONAL(logits_logp, entropy), OPTIONAL(logits_logp, argmax) } },
    { OPERATOR(logits_logp_backward),
      .choices = { CHOICE(logits_logp_backward, dtype, "dtype"), CHOICE(logits_logp_backward, target_dtype, "target_dtype"),
                   CHOICE(logits_logp_backward, entropy, "entropy"), CHOICE(logits_logp_backward, fused, "fused"),
                   CHOICE(logits_logp_backward, backend, "backend") },
      .pointers = { NEEDED(logits_logp_backward, logits), NEEDED(logits_logp_backward, target), NEEDED(logits_logp_backward, g_logp),
                    OPTIONAL(logits_logp_backward, g_lse), OPTIONAL(logits_logp_backward, g_entropy), NEEDED(logits_logp_backward, lse),
                    NEEDED(logits_logp_backward, entropy), NEEDED(logits_logp_backward, grad_logits) } },
};
enum { OPERATORS = sizeof(operators) / sizeof(*operators) };

typedef union {
    max_align_t aligned;
    char bytes[512];
} storage;

static flp_context *context;

static int start(void **state)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 1 };

    (void)state;
    return flp_context_create(&options, &context) != FLP_OK;
}

static int stop(void **state)
{
    (void)state;
    flp_context_destroy(context);
    return 0;
}

static void every_operator_refuses_null(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        const op *o = &operators[i];
        char text[512];
        storage parsed;
        flp_plan *plan;
        assert_succeeds(o->format(o->problem, text, sizeof(text)));
        assert_fails(FLP_BAD_ARGUMENT, o->format(NULL, text, sizeof(text)), "problem: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->format(o->problem, NULL, sizeof(text)), "text: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->format(o->problem, text, 0), "bytes: got 0");
        assert_fails(FLP_BAD_ARGUMENT, o->parse(NULL, &parsed), "text: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->parse(text, NULL), "problem: got NULL");
        assert_succeeds(o->plan_create(context, o->problem, &plan));
        assert_fails(FLP_BAD_ARGUMENT, o->plan_create(NULL, o->problem, &(flp_plan *){ NULL }), "context: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->plan_create(context, NULL, &(flp_plan *){ NULL }), "problem: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->plan_create(context, o->problem, NULL), "plan: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->execute(NULL, o->args), "plan: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->execute(plan, NULL), "args: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->run(NULL, o->problem, o->args), "context: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->run(context, NULL, o->args), "problem: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->run(context, o->problem, NULL), "args: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->run_sized(context, o->problem, o->args, NULL), "sizes: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->prepare(NULL, o->problem, NULL), "context: got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->prepare(context, NULL, NULL), "problem: got NULL");
        flp_plan_destroy(plan);
    }
}

/* Each pointer of the args alone, and all of them at once. */
static void a_pointer_that_is_needed_is_named(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        const op *o = &operators[i];
        flp_plan *plan;
        storage args = { .bytes = { 0 } };
        assert_succeeds(o->plan_create(context, o->problem, &plan));
        assert_succeeds(o->execute(plan, o->args));
        memcpy(&args, o->args, sizeof(int64_t)); /* rows */
        assert_fails(FLP_BAD_ARGUMENT, o->execute(plan, &args), "got NULL");
        assert_fails(FLP_BAD_ARGUMENT, o->run(context, o->problem, &args), "got NULL");
        for (const field *f = o->pointers; f->name; f++) {
            memcpy(&args, o->args, o->args_bytes);
            memset(args.bytes + f->at, 0, sizeof(void *));
            if (!f->needed) {
                assert_succeeds(o->execute(plan, &args));
                assert_succeeds(o->run(context, o->problem, &args));
                continue;
            }
            assert_fails(FLP_BAD_ARGUMENT, o->execute(plan, &args), f->name);
            assert_fails(FLP_BAD_ARGUMENT, o->run(context, o->problem, &args), f->name);
        }
        flp_plan_destroy(plan);
    }
}

static void refuse_choice(const op *o, const field *f, int value)
{
    storage problem, nothing = { .bytes = { 0 } };
    char text[512];
    flp_plan *plan;

    memcpy(&problem, o->problem, o->problem_bytes);
    memcpy(problem.bytes + f->at, &value, sizeof(value));
    memcpy(&nothing, o->args, sizeof(int64_t)); /* rows */
    assert_fails(FLP_BAD_ARGUMENT, o->format(&problem, text, sizeof(text)), f->name);
    assert_fails(FLP_BAD_ARGUMENT, o->plan_create(context, &problem, &plan), f->name);
    assert_null(plan);
    assert_fails(FLP_BAD_ARGUMENT, o->run(context, &problem, o->args), f->name);
    assert_fails(FLP_BAD_ARGUMENT, o->prepare(context, &problem, NULL), f->name);
    /* Without an address there are two things to refuse. */
    assert_int_equal(FLP_BAD_ARGUMENT, o->run(context, &problem, &nothing));
}

/* Values for every dtype, backend, layout and flag. None is above 5. */
static void a_choice_out_of_its_range_is_named(void **state)
{
    static const int values[] = { -1, 6, 77, 127, 128, 1 << 20, INT_MAX, INT_MIN };

    (void)state;
    for (int i = 0; i < OPERATORS; i++)
        for (const field *f = operators[i].choices; f->name; f++)
            for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++)
                refuse_choice(&operators[i], f, values[k]);
}

static void tokens_without_a_name_or_values_are_refused(void **state)
{
    flp_linear_cross_entropy_args args = linear_cross_entropy_args;
    flp_token_input given[2] = { inputs[0], { NULL, rows[5] } };
    flp_token_parameter parameter = { NULL, 1 };

    (void)state;
    args.token_inputs = given;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(context, &linear_cross_entropy_problem, &args), "token_inputs: got \"NULL\"");
    given[1] = (flp_token_input){ "old_logp", NULL };
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(context, &linear_cross_entropy_problem, &args), "old_logp: got NULL");
    args.token_input_count = 9;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(context, &linear_cross_entropy_problem, &args), "a count of 9, wanted at most 8");
    args = linear_cross_entropy_args;
    args.token_parameters = &parameter;
    args.token_parameter_count = 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(context, &linear_cross_entropy_problem, &args), "token_parameters: got \"NULL\"");
    args.token_parameters = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy(context, &linear_cross_entropy_problem, &args), "token_parameters: got NULL and a count of 1");
}

static void what_belongs_to_no_operator_takes_null(void **state)
{
    flp_counters counters;
    flp_context *made;
    int64_t number;
    flp_plan *plan;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(NULL, NULL), "context: got NULL");
    assert_succeeds(flp_context_create(NULL, &made));
    flp_context_destroy(made);
    flp_context_destroy(NULL);
    assert_fails(FLP_BAD_ARGUMENT, flp_context_counters(NULL, &counters), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_context_counters(context, NULL), "counters: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_context_release_scratch(NULL, 0), "context: got NULL");
    assert_succeeds(flp_context_release_scratch(context, 1));
    flp_plan_destroy(NULL);
    assert_int_equal(-1, flp_plan_workspace_bytes(NULL, 0));
    assert_string_equal("", flp_plan_numerics(NULL));
    assert_string_equal("", flp_plan_describe(NULL));
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_target_errors(NULL, &number, &number), "plan: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_filter_statistics(NULL, &number, &number), "plan: got NULL");
    assert_succeeds(flp_linear_logp_plan_create(context, &linear_logp_problem, &plan));
    assert_succeeds(flp_plan_target_errors(plan, NULL, NULL));
    assert_succeeds(flp_plan_filter_statistics(plan, NULL, NULL));
    flp_plan_destroy(plan);
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_execute_forward(NULL, &linear_logp_args), "plan: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(NULL, "mine", "return {}"), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, NULL, "return {}"), "name: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_loss_define(context, "mine", NULL), "definition: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_device_count(NULL), "count: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_device_describe(0, NULL), "facts: got NULL");
    flp_log_set_callback(NULL, NULL);
    assert_string_equal("unknown status", flp_status_text((flp_status)77));
}

/* ---- the message ---- */

#define assert_leaves_the_message(call)                                                       \
    do {                                                                                      \
        assert_succeeds(call);                                                                \
        assert_string_equal("count: got NULL, wanted a pointer to int", flp_error_message()); \
    } while (0)

static void set_backend(const op *o, flp_backend backend, storage *problem)
{
    const field *f = o->choices;

    memcpy(problem, o->problem, o->problem_bytes);
    while (strcmp(f->name, "backend") != 0)
        f++;
    memcpy(problem->bytes + f->at, &backend, sizeof(backend));
}

/* Every function that takes the operator's structs. */
static void call_operator(const op *o, flp_context *of)
{
    char text[512];
    storage problem, parsed;
    flp_plan *plan;
    int64_t number;

    set_backend(o, FLP_BACKEND_AUTO, &problem);
    assert_leaves_the_message(o->run(of, &problem, o->args));
    assert_leaves_the_message(o->prepare(of, &problem, NULL));
    assert_leaves_the_message(o->plan_create(of, &problem, &plan));
    assert_leaves_the_message(o->execute(plan, o->args));
    assert_leaves_the_message(o->format(&problem, text, sizeof(text)));
    assert_leaves_the_message(o->parse(text, &parsed));
    assert_leaves_the_message(flp_plan_target_errors(plan, &number, &number));
    assert_leaves_the_message(flp_plan_filter_statistics(plan, &number, &number));
    assert_leaves_the_message(flp_plan_unmatched_backwards(plan, &number));
    flp_plan_destroy(plan);
}

/* What fails within a call and is made up for: a driver that is not there, or by another name, a cache that cannot be used, a cached kernel that is
 * rejected. */
static void a_call_that_succeeds_leaves_the_message_alone(void **state)
{
    const char *root = fake_directory_make(), *file = fake_directory_path(root, "file");
    flp_context_options options = { .cache_directory = fake_directory_path(file, "below"), .system_cache_directories = file, .cpu_threads = 1 };
    flp_device_facts facts;
    flp_context *made;
    flp_counters counters;
    int count;

    (void)state;
    fake_directory_write(file, "", 0);
    assert_fails(FLP_BAD_ARGUMENT, flp_device_count(NULL), "count: got NULL");
    for (int driver = 0; driver < 2; driver++) {
        fake_library_install();
        fake_library.driver = driver ? 2 : 0;
        assert_leaves_the_message(flp_context_create(&options, &made));
        for (int i = 0; i < OPERATORS; i++)
            call_operator(&operators[i], made);
        assert_leaves_the_message(flp_device_count(&count));
        assert_int_equal(driver, count);
        if (driver)
            assert_leaves_the_message(flp_device_describe(0, &facts));
        assert_leaves_the_message(flp_token_loss_define(made, "mine", "return { loss = function(t) return -t.logp end }"));
        assert_leaves_the_message(flp_context_release_scratch(made, 1));
        assert_leaves_the_message(flp_context_counters(made, &counters));
        flp_context_destroy(made);
    }
    options.cache_directory = root;
    for (int again = 0; again < 2; again++) {
        fake_driver_fail(FAKE_module_load, CUDA_ERROR_INVALID_IMAGE, again);
        assert_leaves_the_message(flp_context_create(&options, &made));
        call_operator(&operators[0], made);
        flp_context_destroy(made);
    }
    fake_directory_remove(root);
}

static const char *name_of(int row)
{
    return operators[row].name;
}

static void every_operator_has_a_row(void **state)
{
    (void)state;
    assert_rows_for_every_operator(OPERATORS, name_of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_succeeds_leaves_the_message_alone),
        cmocka_unit_test(every_operator_has_a_row),
        cmocka_unit_test_setup_teardown(every_operator_refuses_null, start, stop),
        cmocka_unit_test_setup_teardown(a_pointer_that_is_needed_is_named, start, stop),
        cmocka_unit_test_setup_teardown(a_choice_out_of_its_range_is_named, start, stop),
        cmocka_unit_test_setup_teardown(tokens_without_a_name_or_values_are_refused, start, stop),
        cmocka_unit_test_setup_teardown(what_belongs_to_no_operator_takes_null, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
