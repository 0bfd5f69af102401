/* logits_logp on the host, both directions: all cases against fp64 through the public calls; and bits that do not follow the neighbours. */
#include <fenv.h>
#include <string.h>

#include "cpu_context.h"
#include "assertions.h"
#include "logits_cases.h"

static flp_status execute(const flp_logits_case *c, const flp_logits_data *data, flp_logits_form form, flp_plan **plan)
{
    flp_logits_logp_backward_problem problem;
    flp_logits_logp_backward_args backward;
    flp_logits_logp_args args;
    flp_status status;

    if (form == FLP_LOGITS_FORWARD) {
        flp_logits_case_forward(c, data, NULL, &args);
        status = flp_logits_logp_plan_create(cpu_context, &c->problem, plan);
        return status == FLP_OK ? flp_logits_logp_execute(*plan, &args) : status;
    }
    flp_logits_case_backward(c, data, NULL, form, &problem, &backward);
    status = flp_logits_logp_backward_plan_create(cpu_context, &problem, plan);
    return status == FLP_OK ? flp_logits_logp_backward_execute(*plan, &backward) : status;
}

static void put_logits_in_place(flp_logits_data *data)
{
    memcpy(data->buffer[FLP_LOGITS_GRAD].base + data->buffer[FLP_LOGITS_GRAD].offset,
           data->buffer[FLP_LOGITS_LOGITS].base + data->buffer[FLP_LOGITS_LOGITS].offset, data->buffer[FLP_LOGITS_LOGITS].data_bytes);
}

/* Returns whether the form held; prints why not. */
static int run_form(const flp_logits_case *c, flp_logits_data *data, const flp_logits_wanted *wanted, flp_logits_form form)
{
    char message[256] = "";
    int64_t count, first;
    flp_plan *plan = NULL;
    flp_status status;
    int right;

    flp_logits_case_poison(data);
    if (form == FLP_LOGITS_IN_PLACE)
        put_logits_in_place(data);
    status = execute(c, data, form, &plan);
    right = status == FLP_OK && flp_logits_case_check(c, data, wanted, form, message, sizeof(message));
    if (!right)
        print_error("case \"%s\", form %d: %s\n", c->name, form, status == FLP_OK ? message : flp_error_message());
    if (plan) {
        assert_succeeds(flp_plan_target_errors(plan, &count, &first));
        assert_int_equal(wanted->bad_count, count);
        assert_int_equal(wanted->bad_first, first);
    }
    flp_plan_destroy(plan);
    return right;
}

static void every_case_agrees_with_fp64(void **state)
{
    int failures = 0;

    (void)state;
    for (int i = 0; i < flp_logits_case_count(); i++) {
        flp_logits_case c;
        flp_logits_data data;
        flp_logits_wanted wanted;
        flp_logits_case_get(i, &c);
        assert_true(flp_logits_case_make(&c, &data));
        assert_true(flp_logits_case_compute(&c, &data, &wanted));
        for (int form = 0; form < FLP_LOGITS_FORMS; form++)
            if (flp_logits_case_has(&c, (flp_logits_form)form))
                failures += !run_form(&c, &data, &wanted, (flp_logits_form)form);
        flp_logits_wanted_free(&wanted);
        flp_logits_case_free(&data);
    }
    assert_int_equal(0, failures);
}

/* Row `row` of 5003 logits by itself, and among 20 others. */
static void a_rows_bits_do_not_follow_its_neighbours(void **state)
{
    flp_logits_case c = { .name = "21 rows",
                          .rows = FLP_LOGITS_NONE_IGNORED,
                          .problem = { .dtype = FLP_BF16, .rows = 21, .vocab = 50257, .entropy = 1, .backend = FLP_BACKEND_CPU } };
    flp_logits_data data;
    flp_logits_logp_args args;
    float together[21][2], alone[2];

    (void)state;
    c.all_rows = 21;
    c.problem.target_dtype = FLP_I64;
    c.problem.logits_stride = c.problem.vocab;
    assert_true(flp_logits_case_make(&c, &data));
    flp_logits_case_forward(&c, &data, NULL, &args);
    args.lse = NULL;
    assert_succeeds(flp_logits_logp(cpu_context, &c.problem, &args));
    for (int i = 0; i < 21; i++) {
        together[i][0] = args.logp[i];
        together[i][1] = args.entropy[i];
    }
    args.rows = 1;
    for (int i = 0; i < 21; i++) {
        flp_logits_logp_args one = args;
        one.logits = (const uint16_t *)args.logits + (int64_t)i * c.problem.vocab;
        one.target = (const int64_t *)args.target + i;
        one.logp = &alone[0];
        one.entropy = &alone[1];
        assert_succeeds(flp_logits_logp(cpu_context, &c.problem, &one));
        assert_memory_equal(together[i], alone, sizeof(alone));
    }
    flp_logits_case_free(&data);
}

static void an_ignore_index_without_its_flag_is_refused(void **state)
{
    const flp_logits_logp_problem problem = { .dtype = FLP_F32, .vocab = 3 };
    const flp_logits_logp_backward_problem backward = { .dtype = FLP_F32, .vocab = 3, .fused = 1 };
    const float logits[3] = { 0, 1, 2 }, g_logp[1] = { 1 };
    const int64_t target[1] = { -100 };
    float logp[1], grad_logits[3] = { 7, 7, 7 };
    flp_logits_logp_args args = { .rows = 1, .logits = logits, .target = target, .ignore_index = -100, .logp = logp };
    flp_logits_logp_backward_args gradient = {
        .rows = 1, .logits = logits, .target = target, .ignore_index = -100, .g_logp = g_logp, .grad_logits = grad_logits
    };

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_logits_logp(cpu_context, &problem, &args),
                 "ignore_index: got -100 without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none");
    assert_fails(FLP_BAD_ARGUMENT, flp_logits_logp_backward(cpu_context, &backward, &gradient), "ignore_index: got -100 without FLP_IGNORE_INDEX");
    args.flags = gradient.flags = 16;
    assert_fails(FLP_BAD_ARGUMENT, flp_logits_logp(cpu_context, &problem, &args), "flags: got 0x10, wanted no bits but 0x7");
    args.flags = gradient.flags = FLP_IGNORE_INDEX | FLP_CHECK_TARGETS;
    assert_succeeds(flp_logits_logp(cpu_context, &problem, &args));
    assert_succeeds(flp_logits_logp_backward(cpu_context, &backward, &gradient));
    assert_true(logp[0] == 0 && grad_logits[1] == 0);
    args.ignore_index = gradient.ignore_index = 0;
    args.flags = gradient.flags = FLP_CHECK_TARGETS;
    assert_fails(FLP_BAD_TARGET, flp_logits_logp(cpu_context, &problem, &args), "target: row 0 got -100, wanted 0 .. 2");
    assert_fails(FLP_BAD_TARGET, flp_logits_logp_backward(cpu_context, &backward, &gradient), "target: row 0 got -100, wanted 0 .. 2");
}

/* Also what a call's arguments are rounded to before any row is computed, as the softcap. */
static void the_callers_rounding_mode_enters_nothing(void **state)
{
    enum { ROWS = 8, ENTRIES = 50 };
    static const int modes[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    static float logits[ROWS * ENTRIES], logp[4][ROWS];
    static int64_t target[ROWS];
    const flp_logits_logp_problem problem = { .dtype = FLP_F32, .rows = ROWS, .vocab = ENTRIES, .softcap = 30.1 };

    (void)state;
    for (int i = 0; i < ROWS * ENTRIES; i++)
        logits[i] = 10.0f / (float)(i % 17 + 3);
    for (int i = 0; i < 4; i++) {
        const flp_logits_logp_args args = { .rows = ROWS, .logits = logits, .target = target, .temperature = 0.7, .logp = logp[i] };
        flp_status status;

        assert_int_equal(0, fesetround(modes[i]));
        status = flp_logits_logp(cpu_context, &problem, &args);
        assert_int_equal(modes[i], fegetround());
        assert_int_equal(0, fesetround(FE_TONEAREST));
        assert_succeeds(status);
        assert_memory_equal(logp[0], logp[i], sizeof(logp[0]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_case_agrees_with_fp64, cpu_context_start, cpu_context_stop),
        cmocka_unit_test_setup_teardown(an_ignore_index_without_its_flag_is_refused, cpu_context_start, cpu_context_stop),
        cmocka_unit_test_setup_teardown(a_rows_bits_do_not_follow_its_neighbours, cpu_context_start, cpu_context_stop),
        cmocka_unit_test_setup_teardown(the_callers_rounding_mode_enters_nothing, cpu_context_start, cpu_context_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
