/* Every field of every problem counts: one that differs has a plan of its own, a call without a plan finds it, and the problem's string tells it. */
#include <stddef.h>
#include <stdlib.h>

#include "cpu_context.h"
#include "assertions.h"
#include "every_operator.h"
#include "fusedlogp.h"

enum { MOST = 48 };
typedef enum { NEW_PLAN, REFUSED } outcome;

typedef struct {
    const char *name; /* NULL ends a table */
    size_t at, bytes;
    int64_t whole;    /* the other value: this, */
    double real;      /* or this where it is not 0, */
    const char *text; /* or this where it is not NULL */
    outcome outcome;
} field;

typedef struct {
    const char *name;
    size_t problem_bytes;
    const void *problem; /* in which each field can be another alone */
    flp_status (*prepare)(flp_context *context, const void *problem, void *stream);
    flp_status (*format)(const void *problem, char *text, size_t bytes);
    field fields[MOST];
} op;

typedef union {
    max_align_t aligned;
    char bytes[512];
} storage;

#define FUNCTIONS(X)                                                           \
    static flp_status X##_prepare(flp_context *c, const void *p, void *stream) \
    {                                                                          \
        return flp_##X##_prepare(c, p, stream);                                \
    }                                                                          \
    static flp_status X##_format(const void *p, char *text, size_t bytes)      \
    {                                                                          \
        return flp_##X##_problem_format(p, text, bytes);                       \
    }
FUNCTIONS(linear_logp)
FUNCTIONS(linear_logp_backward)
FUNCTIONS(linear_cross_entropy)
FUNCTIONS(weighted_sum)
FUNCTIONS(weighted_sum_backward)
FUNCTIONS(scale)
FUNCTIONS(logits_logp)
FUNCTIONS(logits_logp_backward)

/* Strides are given and wide enough for all, so that a size alone changes nothing else. */
#define LINEAR                                                                                                                      \
    {                                                                                                                               \
        .dtype = FLP_F32, .rows = 64, .hidden = 64, .vocab = 100, .hidden_stride = 256, .weight_stride = 512, .bias_dtype = FLP_F32 \
    }
#define GRADIENTS .grad_hidden = FLP_F32, .grad_weight = FLP_F32, .grad_bias = FLP_F32, .grad_hidden_stride = 256, .grad_weight_stride = 512
#define WEIGHTED                                                                                             \
    {                                                                                                        \
        .dtype = FLP_F32, .rows = 64, .columns = 64, .x_stride = 256, .w_dtype = FLP_F32, .y_dtype = FLP_F32 \
    }
static const flp_linear_logp_problem linear_logp = LINEAR;
static const flp_linear_logp_problem linear_logp_shard = { .dtype = FLP_F32,
                                                           .rows = 64,
                                                           .hidden = 64,
                                                           .vocab = 100,
                                                           .hidden_stride = 256,
                                                           .weight_stride = 512,
                                                           .bias_dtype = FLP_F32,
                                                           .vocab_first = 100,
                                                           .vocab_total = 400 };
static const flp_linear_logp_backward_problem linear_logp_backward = { .forward = LINEAR, GRADIENTS, .memory_budget = INT64_C(1) << 30 };
static const flp_linear_cross_entropy_problem linear_cross_entropy = { .backward = { .forward = LINEAR, GRADIENTS, .memory_budget = INT64_C(1) << 30 } };
static const flp_weighted_sum_problem weighted_sum = WEIGHTED;
static const flp_weighted_sum_backward_problem weighted_sum_backward = { .forward = WEIGHTED, .grad_x = FLP_F32, .grad_w = FLP_F32, .grad_x_stride = 256 };
static const flp_scale_problem scale = { .dtype = FLP_F32, .rows = 64, .columns = 64, .x_stride = 256 };
static const flp_logits_logp_problem logits_logp = { .dtype = FLP_F32, .rows = 64, .vocab = 100, .logits_stride = 512 };
static const flp_logits_logp_backward_problem logits_logp_backward = { .dtype = FLP_F32, .rows = 64, .vocab = 100, .logits_stride = 512, .grad_stride = 512 };

#define FIELD(X, path) .name = #path, .at = offsetof(flp_##X##_problem, path), .bytes = sizeof(((flp_##X##_problem *)0)->path)
#define WHOLE(X, path, value)          \
    {                                  \
        FIELD(X, path), .whole = value \
    }
#define REAL(X, path, value)          \
    {                                 \
        FIELD(X, path), .real = value \
    }
#define TEXT(X, path, value)          \
    {                                 \
        FIELD(X, path), .text = value \
    }
#define IS(X, path, value, what)                        \
    {                                                   \
        FIELD(X, path), .whole = value, .outcome = what \
    }
/* 96 rows are in another bucket; the dtypes change between types that every path takes. */
#define LINEAR_FIELDS(X, p)                                                                                                                         \
    WHOLE(X, p dtype, FLP_BF16), WHOLE(X, p rows, 96), WHOLE(X, p hidden, 72), WHOLE(X, p vocab, 101), WHOLE(X, p weight_layout, FLP_HIDDEN_VOCAB), \
        WHOLE(X, p hidden_stride, 264), WHOLE(X, p weight_stride, 520), WHOLE(X, p pointer_alignment, 4), WHOLE(X, p bias_dtype, FLP_BF16),         \
        WHOLE(X, p target_dtype, FLP_I32), REAL(X, p softcap, 30), WHOLE(X, p precision, FLP_PRECISION_EXACT), WHOLE(X, p backend, FLP_BACKEND_CPU)
/* The second makes a shard of a whole vocabulary. */
#define SHARD_FIELDS(X, p) IS(X, p vocab_first, 1, REFUSED), WHOLE(X, p vocab_total, 200)
#define BACKWARD_FIELDS(X, p)                                                                                                                         \
    LINEAR_FIELDS(X, p forward.), IS(X, p forward.argmax, 1, REFUSED), IS(X, p forward.entropy, 1, REFUSED), WHOLE(X, p grad_hidden, FLP_BF16),       \
        WHOLE(X, p grad_weight, FLP_BF16), WHOLE(X, p grad_bias, FLP_BF16), WHOLE(X, p grad_hidden_stride, 264), WHOLE(X, p grad_weight_stride, 520), \
        WHOLE(X, p accumulate, FLP_ACCUMULATE_WEIGHT), WHOLE(X, p memory_budget, INT64_C(1) << 31), REAL(X, p grad_filter_eps, 1e-6),                 \
        IS(X, p with_forward, 1, REFUSED)
#define WEIGHTED_FIELDS(X, p)                                                                                                                \
    WHOLE(X, p dtype, FLP_BF16), WHOLE(X, p rows, 96), WHOLE(X, p columns, 72), WHOLE(X, p x_stride, 264), WHOLE(X, p pointer_alignment, 4), \
        WHOLE(X, p w_dtype, FLP_BF16), WHOLE(X, p y_dtype, FLP_BF16), WHOLE(X, p backend, FLP_BACKEND_CPU)
#define LOGITS_FIELDS(X)                                                                                                               \
    WHOLE(X, dtype, FLP_BF16), WHOLE(X, rows, 96), WHOLE(X, vocab, 101), WHOLE(X, logits_stride, 520), WHOLE(X, pointer_alignment, 4), \
        WHOLE(X, target_dtype, FLP_I32), WHOLE(X, entropy, 1), WHOLE(X, backend, FLP_BACKEND_CPU), REAL(X, softcap, 30)
#define OPERATOR(X) .name = #X, .problem_bytes = sizeof(flp_##X##_problem), .problem = &X, .prepare = X##_prepare, .format = X##_format
static const op operators[] = {
    { OPERATOR(linear_logp),
      .fields = { LINEAR_FIELDS(linear_logp, ), SHARD_FIELDS(linear_logp, ), WHOLE(linear_logp, argmax, 1), WHOLE(linear_logp, entropy, 1) } },
    { .name = "linear_logp of a shard",
      .problem_bytes = sizeof(flp_linear_logp_problem),
      .problem = &linear_logp_shard,
      .prepare = linear_logp_prepare,
      .format = linear_logp_format,
      .fields = { LINEAR_FIELDS(linear_logp, ), WHOLE(linear_logp, vocab_first, 101), WHOLE(linear_logp, vocab_total, 401), WHOLE(linear_logp, argmax, 1),
                  WHOLE(linear_logp, entropy, 1) } },
    { OPERATOR(linear_logp_backward), .fields = { BACKWARD_FIELDS(linear_logp_backward, ), SHARD_FIELDS(linear_logp_backward, forward.),
                                                  WHOLE(linear_logp_backward, g_lse, 1), WHOLE(linear_logp_backward, g_entropy, 1) } },
    { OPERATOR(linear_cross_entropy),
      .fields = { BACKWARD_FIELDS(linear_cross_entropy, backward.), SHARD_FIELDS(linear_cross_entropy, backward.forward.),
                  IS(linear_cross_entropy, backward.g_lse, 1, REFUSED), IS(linear_cross_entropy, backward.g_entropy, 1, REFUSED),
                  WHOLE(linear_cross_entropy, reduction, FLP_REDUCE_SUM), WHOLE(linear_cross_entropy, label_smoothing, 1),
                  WHOLE(linear_cross_entropy, class_weights, FLP_BF16), WHOLE(linear_cross_entropy, token_weights, 1), WHOLE(linear_cross_entropy, entropy, 1),
                  IS(linear_cross_entropy, reserved, 1, REFUSED), TEXT(linear_cross_entropy, token_loss, "policy_gradient") } },
    { OPERATOR(weighted_sum), .fields = { WEIGHTED_FIELDS(weighted_sum, ) } },
    { OPERATOR(weighted_sum_backward), .fields = { WEIGHTED_FIELDS(weighted_sum_backward, forward.), WHOLE(weighted_sum_backward, grad_x, FLP_BF16),
                                                   WHOLE(weighted_sum_backward, grad_w, FLP_BF16), WHOLE(weighted_sum_backward, accumulate, 1),
                                                   WHOLE(weighted_sum_backward, grad_x_stride, 264) } },
    { OPERATOR(scale), .fields = { WHOLE(scale, dtype, FLP_BF16), WHOLE(scale, rows, 96), WHOLE(scale, columns, 72), WHOLE(scale, x_stride, 264),
                                   WHOLE(scale, pointer_alignment, 4), WHOLE(scale, backend, FLP_BACKEND_CPU) } },
    { OPERATOR(logits_logp), .fields = { LOGITS_FIELDS(logits_logp), WHOLE(logits_logp, argmax, 1) } },
    { OPERATOR(logits_logp_backward),
      .fields = { LOGITS_FIELDS(logits_logp_backward), WHOLE(logits_logp_backward, grad_stride, 520), WHOLE(logits_logp_backward, fused, 1) } },
};
enum { OPERATORS = sizeof(operators) / sizeof(*operators) };

static int64_t plans(void)
{
    flp_counters counters;

    assert_succeeds(flp_context_counters(cpu_context, &counters));
    return counters.plans;
}

static void change(const op *o, const field *f, storage *problem)
{
    const int narrow = (int)f->whole;

    memcpy(problem, o->problem, o->problem_bytes);
    if (f->text)
        memcpy(problem->bytes + f->at, f->text, strlen(f->text) + 1);
    else if (f->real != 0)
        memcpy(problem->bytes + f->at, &f->real, sizeof(f->real));
    else if (f->bytes == sizeof(int))
        memcpy(problem->bytes + f->at, &narrow, sizeof(narrow));
    else
        memcpy(problem->bytes + f->at, &f->whole, sizeof(f->whole));
}

/* Bytes in front of a wider field, which no new field may take. */
static int is_padding(const op *o, const char *covered, size_t at)
{
    const size_t next = (at + sizeof(int64_t)) / sizeof(int64_t) * sizeof(int64_t);

    while (at < next && !covered[at])
        at++;
    return at == next && at < o->problem_bytes;
}

/* A field that is new in the header has to come into the table. */
static void the_tables_name_every_byte(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        char covered[sizeof(storage)] = { 0 };
        for (const field *f = operators[i].fields; f->name; f++)
            for (size_t k = 0; k < f->bytes; k++)
                if (covered[f->at + k]++)
                    fail_msg("%s: byte %zu of %s stands in two fields", operators[i].name, k, f->name);
        for (size_t k = 0; k < operators[i].problem_bytes; k++)
            if (!covered[k] && !is_padding(&operators[i], covered, k))
                fail_msg("%s: byte %zu is in no field", operators[i].name, k);
    }
}

static void expect(const op *o, const field *f, const storage *problem)
{
    const int64_t before = plans();
    const flp_status status = o->prepare(cpu_context, problem, NULL);

    if (f->outcome == REFUSED) {
        if (status != FLP_BAD_ARGUMENT)
            fail_msg("%s: another %s alone: got status %d, wanted FLP_BAD_ARGUMENT", o->name, f->name, status);
        return;
    }
    if (status != FLP_OK)
        fail_msg("%s: another %s alone: %s", o->name, f->name, flp_error_message());
    if (plans() != before + 1)
        fail_msg("%s: another %s alone: %d new plans, wanted 1", o->name, f->name, (int)(plans() - before));
    assert_succeeds(o->prepare(cpu_context, problem, NULL));
    if (plans() != before + 1)
        fail_msg("%s: another %s is not found again", o->name, f->name);
}

static void a_field_that_differs_has_a_plan_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        const op *o = &operators[i];
        storage problem;
        const int64_t before = plans();
        assert_succeeds(o->prepare(cpu_context, o->problem, NULL));
        assert_int_equal(before + 1, plans());
        for (const field *f = o->fields; f->name; f++) {
            change(o, f, &problem);
            expect(o, f, &problem);
        }
    }
}

static void a_field_that_differs_is_in_the_problems_string(void **state)
{
    (void)state;
    for (int i = 0; i < OPERATORS; i++) {
        const op *o = &operators[i];
        char first[512], other[512];
        storage problem;
        assert_succeeds(o->format(o->problem, first, sizeof(first)));
        for (const field *f = o->fields; f->name; f++) {
            change(o, f, &problem);
            if (f->outcome != NEW_PLAN)
                continue;
            assert_succeeds(o->format(&problem, other, sizeof(other)));
            if (strcmp(first, other) == 0)
                fail_msg("%s: another %s alone: still %s", o->name, f->name, first);
        }
    }
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
        cmocka_unit_test_setup_teardown(the_tables_name_every_byte, cpu_context_start, cpu_context_stop),
        cmocka_unit_test(every_operator_has_a_row),
        cmocka_unit_test_setup_teardown(a_field_that_differs_has_a_plan_of_its_own, cpu_context_start, cpu_context_stop),
        cmocka_unit_test_setup_teardown(a_field_that_differs_is_in_the_problems_string, cpu_context_start, cpu_context_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
