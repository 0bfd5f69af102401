/* Plans and calls of logits_logp, both directions: each argument is checked and named on each path, targets are looked at through an index, and what
 * prepare makes can be captured. The numbers are for test_logits_logp_cpu.c. */
#include <stddef.h>
#include <stdlib.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "operator_call.h"

enum { ROWS = 4, MOST = 6, VOCAB = 16 }; /* MOST: rows of the arrays behind an index */

static _Alignas(256) float logits[MOST * VOCAB + 4], grad_logits[MOST * VOCAB + 4], rows_of[8][MOST + 4];
static _Alignas(256) int64_t target[MOST + 2], row_index[MOST + 2];
static _Alignas(256) int32_t argmax[MOST + 4];
static flp_context *context;
static flp_plan *plan;
static void *workspace;
static int64_t most_rows;
static flp_backend *backend_of; /* the problem's */

static flp_logits_logp_problem problem;
static flp_logits_logp_args args;
static flp_logits_logp_backward_problem backward;
static flp_logits_logp_backward_args backward_args;

OPERATOR_CALL_FUNCTIONS(logits_logp)
OPERATOR_CALL_FUNCTIONS(logits_logp_backward)
static const operator_call forward_call = OPERATOR_CALL(logits_logp, problem, args, most_rows, problem.backend);
static const operator_call backward_call = OPERATOR_CALL(logits_logp_backward, backward, backward_args, most_rows, backward.backend);

/* All that the two directions can be given, through an index. */
static void fill_forward(void)
{
    problem = (flp_logits_logp_problem){ .dtype = FLP_F32, .rows = ROWS, .vocab = VOCAB, .argmax = 1, .entropy = 1 };
    args = (flp_logits_logp_args){ .rows = ROWS,
                                   .logits = logits,
                                   .target = target,
                                   .row_index = row_index,
                                   .logits_rows = MOST,
                                   .ignore_index = -100,
                                   .flags = FLP_IGNORE_INDEX,
                                   .row_temperature = rows_of[0],
                                   .logp = rows_of[1],
                                   .lse = rows_of[2],
                                   .entropy = rows_of[3],
                                   .argmax = argmax };
}

static void fill_backward(void)
{
    backward = (flp_logits_logp_backward_problem){ .dtype = FLP_F32, .rows = ROWS, .vocab = VOCAB, .entropy = 1 };
    backward_args = (flp_logits_logp_backward_args){
        .rows = ROWS,
        .logits = logits,
        .target = target,
        .row_index = row_index,
        .logits_rows = MOST,
        .ignore_index = -100,
        .flags = FLP_IGNORE_INDEX,
        .row_temperature = rows_of[0],
        .g_logp = rows_of[4],
        .g_lse = rows_of[5],
        .g_entropy = rows_of[6],
        .lse = rows_of[2],
        .entropy = rows_of[3],
        .logp = rows_of[1],
        .grad_logits = grad_logits,
    };
}

static int start(const operator_call *call, unsigned flags)
{
    static const int64_t indices[ROWS] = { 5, 0, 3, 2 };

    context = fake_call_start(flags);
    operator_call_current = call;
    most_rows = ROWS;
    backend_of = call->backend;
    memset(target, 0, sizeof(target));
    memcpy(row_index, indices, sizeof(indices));
    for (int i = 0; i < MOST; i++)
        rows_of[0][i] = 1;
    fill_forward();
    fill_backward();
    operator_call_make_plan();
    return flp_plan_on_gpu(plan) != !(flags & FLP_CONTEXT_NO_GPU);
}

static int start_forward(void **state)
{
    (void)state;
    return start(&forward_call, 0);
}
static int start_forward_on_cpu(void **state)
{
    (void)state;
    return start(&forward_call, FLP_CONTEXT_NO_GPU);
}
static int start_backward(void **state)
{
    (void)state;
    return start(&backward_call, 0);
}
static int start_backward_on_cpu(void **state)
{
    (void)state;
    return start(&backward_call, FLP_CONTEXT_NO_GPU);
}

/* ---- arguments ---- */

typedef enum { NUMBER, REAL, SHIFTED, SAME_AS } kind; /* SHIFTED: a pointer by so many bytes; SAME_AS: another field's value, by its place */

typedef struct {
    size_t at, bytes;
    kind kind;
    int64_t value;
    double real;
} change;

typedef struct {
    const char *part;     /* of the message */
    change changes[4];    /* of the args, those with bytes */
    int of_plan;          /* 1: without a plan it is no fault */
    change of_problem[2]; /* first: with another problem */
} refusal;

#define AT(X, field) offsetof(flp_##X, field), sizeof(((flp_##X *)0)->field)
#define IS(X, field, value)            \
    {                                  \
        AT(X, field), NUMBER, value, 0 \
    }
#define IS_REAL(X, field, value)     \
    {                                \
        AT(X, field), REAL, 0, value \
    }
#define SHIFT(X, field, count)          \
    {                                   \
        AT(X, field), SHIFTED, count, 0 \
    }
#define SAME(X, field, other)                              \
    {                                                      \
        AT(X, field), SAME_AS, offsetof(flp_##X, other), 0 \
    }

/* A pointer without which there is no call, or which may be NULL; both lie at multiples of their elements. */
#define NEEDED(X, field) { #field ": got NULL, wanted an address", { IS(X, field, 0) }, 0, { { 0, 0, NUMBER, 0, 0 } } }, MISALIGNED(X, field)
#define MISALIGNED(X, field)                          \
    {                                                 \
#field ": got 0x", { SHIFT(X, field, 2) }, 0, \
        {                                             \
            {                                         \
                0, 0, NUMBER, 0, 0                    \
            }                                         \
        }                                             \
    }
#define ROW(text, ...)             \
    {                              \
        text, { __VA_ARGS__ }, 0,  \
        {                          \
            {                      \
                0, 0, NUMBER, 0, 0 \
            }                      \
        }                          \
    }
#define PLAN_ROW(text, ...)        \
    {                              \
        text, { __VA_ARGS__ }, 1,  \
        {                          \
            {                      \
                0, 0, NUMBER, 0, 0 \
            }                      \
        }                          \
    }
#define WITHOUT(P, field, text, ...) \
    {                                \
        text, { __VA_ARGS__ }, 0,    \
        {                            \
            IS(P, field, 0)          \
        }                            \
    }

/* Checks both directions. */
#define SHARED(X)                                                                                                                                          \
    ROW("rows: got -1, wanted 0 .. ", IS(X, rows, -1)), ROW("rows: got 9223372036854775807", IS(X, rows, INT64_MAX)),                                      \
        PLAN_ROW("rows: got 5, wanted 0 .. 4, the plan's rows", IS(X, rows, ROWS + 1)), ROW("flags: got 0x8, wanted no bits but 0x7", IS(X, flags, 8)),    \
        ROW("flags: got 0x80000000", IS(X, flags, INT64_C(0x80000000))), ROW("ignore_index: got -100 without FLP_IGNORE_INDEX in flags", IS(X, flags, 0)), \
        ROW("flags: got FLP_SCATTER without a row_index, wanted both", IS(X, row_index, 0), IS(X, flags, FLP_SCATTER | FLP_IGNORE_INDEX)),                 \
        ROW("logits_rows: got -1, wanted 0 .. 268435456", IS(X, logits_rows, -1)),                                                                         \
        ROW("logits_rows: got 268435457, wanted 0 .. 268435456", IS(X, logits_rows, (1 << 28) + 1)),                                                       \
        ROW("temperature: got -1, wanted 0 (for 1) or 2^-64 .. 2^64", IS_REAL(X, temperature, -1)),                                                        \
        ROW("temperature: got 5e-20", IS_REAL(X, temperature, 5e-20)), ROW("temperature: got 2e+19", IS_REAL(X, temperature, 2e19)),                       \
        ROW("temperature: got 2 beside row_temperature, wanted 0 or 1", IS_REAL(X, temperature, 2)), NEEDED(X, logits), NEEDED(X, target),                 \
        PLAN_ROW("logits: got 0x", SHIFT(X, logits, 8)), ROW("target: got 0x", SHIFT(X, target, 4)), ROW("row_index: got 0x", SHIFT(X, row_index, 4)),     \
        MISALIGNED(X, row_temperature)

static const refusal forward_refusals[] = {
    SHARED(logits_logp_args),
    MISALIGNED(logits_logp_args, logp),
    MISALIGNED(logits_logp_args, lse),
    MISALIGNED(logits_logp_args, entropy),
    MISALIGNED(logits_logp_args, argmax),
    { "logp, lse, entropy, argmax: got NULL for all, wanted a result",
      { IS(logits_logp_args, logp, 0), IS(logits_logp_args, lse, 0), IS(logits_logp_args, entropy, 0), IS(logits_logp_args, argmax, 0) },
      0,
      { { 0, 0, NUMBER, 0, 0 } } },
    WITHOUT(logits_logp_problem, entropy, "wanted NULL: the problem's entropy is 0", SHIFT(logits_logp_args, entropy, 0)),
    WITHOUT(logits_logp_problem, argmax, "wanted NULL: the problem's argmax is 0", SHIFT(logits_logp_args, argmax, 0)),
    WITHOUT(logits_logp_problem, argmax, "wanted NULL: the problem's argmax is 0", IS(logits_logp_args, rows, 0)),
};

static const refusal backward_refusals[] = {
    SHARED(logits_logp_backward_args),
    NEEDED(logits_logp_backward_args, grad_logits),
    PLAN_ROW("grad_logits: got 0x", SHIFT(logits_logp_backward_args, grad_logits, 8)),
    ROW("grad_logits: got logits, wanted other memory or FLP_SCATTER beside the row_index", SAME(logits_logp_backward_args, grad_logits, logits)),
    { "grad_logits: got logits, wanted other memory: their strides differ",
      { SAME(logits_logp_backward_args, grad_logits, logits), IS(logits_logp_backward_args, flags, FLP_SCATTER | FLP_IGNORE_INDEX) },
      0,
      { IS(logits_logp_backward_problem, grad_stride, VOCAB + 4) } },
    NEEDED(logits_logp_backward_args, g_logp),
    MISALIGNED(logits_logp_backward_args, g_lse),
    MISALIGNED(logits_logp_backward_args, g_entropy),
    NEEDED(logits_logp_backward_args, lse),
    NEEDED(logits_logp_backward_args, entropy),
    MISALIGNED(logits_logp_backward_args, logp),
    WITHOUT(logits_logp_backward_problem, entropy, "g_entropy: got 0x", SHIFT(logits_logp_backward_args, g_entropy, 0)),
    WITHOUT(logits_logp_backward_problem, entropy, "entropy: got 0x", IS(logits_logp_backward_args, g_entropy, 0)),
    { "logp: got 0x", { SHIFT(logits_logp_backward_args, logp, 2) }, 0, { IS(logits_logp_backward_problem, fused, 1) } },
    { "lse: got 0x", { SHIFT(logits_logp_backward_args, lse, 2) }, 0, { IS(logits_logp_backward_problem, fused, 1) } },
    { "entropy: got 0x", { SHIFT(logits_logp_backward_args, entropy, 2) }, 0, { IS(logits_logp_backward_problem, fused, 1) } },
};

static void apply(const change *c, void *given)
{
    char *fields = given;
    const int32_t narrow = (int32_t)c->value;
    char *address;

    if (c->kind == SHIFTED) {
        memcpy(&address, fields + c->at, sizeof(address));
        address += c->value;
        memcpy(fields + c->at, &address, sizeof(address));
    } else if (c->kind == SAME_AS) {
        memcpy(fields + c->at, fields + c->value, c->bytes);
    } else if (c->kind == REAL) {
        memcpy(fields + c->at, &c->real, sizeof(c->real));
    } else {
        memcpy(fields + c->at, c->bytes == sizeof(narrow) ? (const void *)&narrow : (const void *)&c->value, c->bytes);
    }
}

static void refill(void)
{
    const flp_backend backend = *backend_of;

    fill_forward();
    fill_backward();
    *backend_of = backend;
}

static void expect_refused(const refusal *r)
{
    const operator_call *call = operator_call_current;

    refill();
    for (const change *c = r->of_problem; c->bytes; c++)
        apply(c, (void *)(uintptr_t)call->problem);
    operator_call_make_plan();
    for (int i = 0; i < 4 && r->changes[i].bytes; i++)
        apply(&r->changes[i], (void *)(uintptr_t)call->args);
    if (call->execute(plan, call->args) != FLP_BAD_ARGUMENT || !strstr(flp_error_message(), r->part))
        fail_msg("a plan's call: wanted \"%s\", got \"%s\"", r->part, flp_error_message());
    if (!r->of_plan && (call->run(context, call->problem, call->args) != FLP_BAD_ARGUMENT || !strstr(flp_error_message(), r->part)))
        fail_msg("a call without a plan: wanted \"%s\", got \"%s\"", r->part, flp_error_message());
    assert_int_equal(0, fake_driver.launches);
}

static void every_argument_is_checked_and_named(void **state)
{
    const int is_forward = operator_call_current == &forward_call;
    const refusal *refusals = is_forward ? forward_refusals : backward_refusals;
    const size_t bytes = is_forward ? sizeof(forward_refusals) : sizeof(backward_refusals);

    (void)state;
    assert_succeeds(operator_call_current->execute(plan, operator_call_current->args));
    assert_succeeds(operator_call_current->run(context, operator_call_current->problem, operator_call_current->args));
    for (size_t i = 0; i < bytes / sizeof(*refusals); i++)
        expect_refused(&refusals[i]);
}

/* No rows need no arrays. */
static void no_rows_are_no_fault(void **state)
{
    (void)state;
    args = (flp_logits_logp_args){ .rows = 0 };
    backward_args = (flp_logits_logp_backward_args){ .rows = 0 };
    assert_succeeds(operator_call_current->execute(plan, operator_call_current->args));
    assert_succeeds(operator_call_current->run(context, operator_call_current->problem, operator_call_current->args));
    assert_int_equal(0, fake_driver.launches);
}

/* ---- targets ---- */

static flp_status check_targets(void)
{
    args.flags |= FLP_CHECK_TARGETS;
    backward_args.flags |= FLP_CHECK_TARGETS;
    return operator_call_current->execute(plan, operator_call_current->args);
}

static void targets_are_checked_through_the_index(void **state)
{
    (void)state;
    target[1] = target[4] = VOCAB; /* rows that the index leaves out */
    target[3] = -100;
    assert_succeeds(check_targets());
    fake_driver.launches = 0;
    target[2] = VOCAB;
    assert_fails(FLP_BAD_TARGET, check_targets(), "target: row 3 got 16, wanted 0 .. 15 or the ignore_index -100");
    target[5] = -1;
    assert_fails(FLP_BAD_TARGET, check_targets(), "target: row 0 got -1, wanted 0 .. 15");
    target[5] = target[2] = 0;
    row_index[2] = MOST;
    assert_fails(FLP_BAD_TARGET, check_targets(), "row_index: row 2 got 6, wanted 0 .. 5");
    row_index[2] = -1;
    assert_fails(FLP_BAD_TARGET, check_targets(), "row_index: row 2 got -1, wanted 0 .. 5");
    row_index[2] = INT64_MAX;
    assert_fails(FLP_BAD_TARGET, check_targets(), "row_index: row 2 got 9223372036854775807");
    args.logits_rows = backward_args.logits_rows = 0;
    assert_fails(FLP_BAD_TARGET, check_targets(), "row_index: row 0 got 5, wanted 0 .. -1");
    assert_int_equal(0, fake_driver.launches);
}

static void targets_are_checked_without_an_index(void **state)
{
    (void)state;
    args.row_index = backward_args.row_index = NULL;
    target[4] = VOCAB; /* behind the call's rows */
    assert_succeeds(check_targets());
    fake_driver.launches = 0;
    target[3] = INT64_MIN;
    assert_fails(FLP_BAD_TARGET, check_targets(), "target: row 3 got -9223372036854775808");
    assert_int_equal(0, fake_driver.launches);
}

static void targets_on_the_device_are_waited_for(void **state)
{
    (void)state;
    for (int indexed = 0; indexed < 2; indexed++) {
        args.row_index = backward_args.row_index = indexed ? row_index : NULL;
        fake_driver.capture = 1;
        assert_fails(FLP_CAPTURING, check_targets(), "FLP_CHECK_TARGETS waits for the stream, which is captured");
        fake_driver.capture = 0;
        fake_driver_fail(FAKE_copy_to_host, CUDA_ERROR_LAUNCH_FAILED, 1);
        assert_fails(FLP_CUDA_FAILED, check_targets(), "cuMemcpyDtoHAsync of target");
        fake_driver_fail(FAKE_stream_synchronize, CUDA_ERROR_LAUNCH_FAILED, 1);
        assert_fails(FLP_CUDA_FAILED, check_targets(), "cuStreamSynchronize");
        assert_succeeds(check_targets());
    }
}

#define TEST(name, setup)                                        \
    {                                                            \
#name ", " #setup, name, setup, operator_call_stop, NULL \
    }
#define EACH(name) TEST(name, start_forward), TEST(name, start_forward_on_cpu), TEST(name, start_backward), TEST(name, start_backward_on_cpu)
#define ON_DEVICE(name) OPERATOR_CASE(name, start_forward), OPERATOR_CASE(name, start_backward)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(every_argument_is_checked_and_named),
        EACH(no_rows_are_no_fault),
        EACH(targets_are_checked_through_the_index),
        EACH(targets_are_checked_without_an_index),
        TEST(targets_on_the_device_are_waited_for, start_forward),
        TEST(targets_on_the_device_are_waited_for, start_backward),
        ON_DEVICE(executing_in_a_workspace_allocates_nothing_and_can_be_captured),
        ON_DEVICE(all_launches_are_on_the_stream),
        ON_DEVICE(calls_without_a_plan_share_one),
        ON_DEVICE(a_prepared_problem_can_be_captured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
