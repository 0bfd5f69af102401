/* Token losses on the host: reading their text, and what their operations give. */
#include "cpu/token_program.h"
#include <math.h>
#include <stdio.h>
#include "assertions.h"

static double run(const char *text, flp_token_row row, const double *parameter, flp_token_result *result)
{
    flp_token_program program;
    assert_succeeds(flp_token_program_parse(text, &program));
    flp_token_program_run(&program, parameter, &row, result);
    return result->loss;
}

static void inputs_parameters_and_statistics_are_told_apart(void **state)
{
    static const char text[] = "input first\ninput second\nparameter scale 4602678819172646912\nvalue logp\nvalue entropy\nvalue input 1\n"
                               "value parameter 0\nvalue mul 2 3\nresult loss 4\nresult logp 0\nresult entropy 1\n";
    const flp_token_row row = { .statistic = { [FLP_TOKEN_LOGP] = -3, [FLP_TOKEN_ENTROPY] = 2 }, .input = { 5, 7 } };
    flp_token_program program;
    flp_token_result result;
    (void)state;
    assert_succeeds(flp_token_program_parse(text, &program));
    assert_int_equal(program.inputs, 2);
    assert_string_equal(program.input[1], "second");
    assert_string_equal(program.parameter[0], "scale");
    assert_true(program.default_value[0] == 0.5);
    assert_true(program.uses[FLP_TOKEN_LOGP] && program.uses[FLP_TOKEN_ENTROPY] && !program.uses[FLP_TOKEN_LSE]);
    assert_true(run(text, row, program.default_value, &result) == 3.5);
    assert_true(result.derivative[FLP_TOKEN_LOGP] == -3 && result.derivative[FLP_TOKEN_ENTROPY] == 2);
    assert_true(result.derivative[FLP_TOKEN_LSE] == 0 && result.derivative[FLP_TOKEN_UNIFORM] == 0);
}

/* A program of logp = a and lse = b. */
static double apply(const char *operation, double a, double b)
{
    char text[128];
    flp_token_result result;
    snprintf(text, sizeof text, "value logp\nvalue lse\nvalue %s\nresult loss 2\n", operation);
    return run(text, (flp_token_row){ .statistic = { a, b } }, NULL, &result);
}

static void every_operation_is_what_its_name_says(void **state)
{
    (void)state;
    assert_true(apply("add 0 1", 2, 3) == 5 && apply("sub 0 1", 2, 3) == -1 && apply("mul 0 1", 2, 3) == 6 && apply("div 0 1", 3, 2) == 1.5);
    assert_true(apply("neg 0", 2, 3) == -2 && apply("exp 0", 1, 0) == exp(1) && apply("log 1", 0, 2) == log(2));
    assert_true(apply("min 0 1", 2, 3) == 2 && apply("max 0 1", 2, 3) == 3 && apply("min 0 1", 3, 2) == 2 && apply("max 0 1", 3, 2) == 3);
    assert_true(apply("select 0 1 0 1", 2, 3) == 2 && apply("select 1 0 0 1", 2, 3) == 3 && apply("select 0 1 0 1", 2, 2) == 2);
    assert_true(apply("guard 0 1", 0, INFINITY) == 0 && apply("guard 0 1", 2, 3) == 3 && isnan(apply("guard 0 1", 2, NAN)));
    assert_true(apply("constant -4616189618054758400", 0, 0) == -1);
}

static void nan_is_never_lost(void **state)
{
    (void)state;
    assert_true(isnan(apply("min 0 1", NAN, 1)) && isnan(apply("min 0 1", 1, NAN)));
    assert_true(isnan(apply("max 0 1", NAN, 1)) && isnan(apply("max 0 1", 1, NAN)));
}

static void malformed_text_is_refused_with_its_line(void **state)
{
    static const char *const lines[] = { "value",
                                         "value sum 0 0",
                                         "value add 0",
                                         "value add 0 1",
                                         "value add -1 0",
                                         "value input 0",
                                         "value parameter 0",
                                         "value constant x",
                                         "result loss 1",
                                         "result sum 0",
                                         "result class_weight 0",
                                         "parameter name",
                                         "word",
                                         "parameter p 0\nvalue parameter 1" };
    flp_token_program program;
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[128];
        snprintf(text, sizeof text, "value logp\n%s\nresult loss 0\n", lines[i]);
        assert_fails(FLP_INTERNAL, flp_token_program_parse(text, &program), "is malformed");
    }
    assert_fails(FLP_INTERNAL, flp_token_program_parse("value logp\n", &program), "there is no result");
}

static void a_loss_has_a_largest_size(void **state)
{
    char text[16 * (FLP_TOKEN_VALUES + 2)] = "value logp\n";
    size_t length = strlen(text);
    flp_token_program program;
    (void)state;
    for (int i = 1; i < FLP_TOKEN_VALUES; i++)
        length += (size_t)sprintf(text + length, "value neg %d\n", i - 1);
    strcpy(text + length, "result loss 255\n");
    assert_succeeds(flp_token_program_parse(text, &program));
    strcpy(text + length, "value neg 3\n");
    assert_fails(FLP_BAD_ARGUMENT, flp_token_program_parse(text, &program), "at most 256 operations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_parameters_and_statistics_are_told_apart),
        cmocka_unit_test(every_operation_is_what_its_name_says),
        cmocka_unit_test(nan_is_never_lost),
        cmocka_unit_test(malformed_text_is_refused_with_its_line),
        cmocka_unit_test(a_loss_has_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
