/* What the library writes and reads does not follow the locale that its caller has set, and leaves that locale alone. */
#include "base/locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "comma_locale.h"
#include "assertions.h"
#include "fake_directory.h"
#include "jit/generator.h"
#include "core/problem.h"

/* Constants, parameters, comparisons and a power: whatever of a number can get into a kernel. */
static const char definition[] = "return { inputs = { 'advantage' }, parameters = { { 'beta', 0.125 } },\n"
                                 "  loss = function(t) return -t.advantage * t.logp * 1.5 + t.beta * t.entropy ^ 2 * 0.75 - 1e-3 * t.lse end }\n";

static int leave(void **state)
{
    (void)state;
    comma_locale_leave();
    return 0;
}

/* The caller's own numbers go on following it. */
static void assert_the_callers_locale_stays(void)
{
    char text[8];

    snprintf(text, sizeof(text), "%.1f", 1.5);
    assert_string_equal("1,5", text);
}

static void numbers_are_written_and_read_with_a_point(void **state)
{
    char text[FLP_NUMBER_BYTES];
    double value;

    (void)state;
    if (!comma_locale_enter())
        skip();
    flp_number_format(-1234.5, text);
    assert_string_equal("-1234.5", text);
    assert_true(flp_number_parse("0.125", &value));
    assert_true(value == 0.125);
    assert_false(flp_number_parse("0,125", &value));
    assert_the_callers_locale_stays();
}

static void messages_have_a_point(void **state)
{
    (void)state;
    if (!comma_locale_enter())
        skip();
    assert_fails(FLP_BAD_ARGUMENT, flp_status_fail(FLP_BAD_ARGUMENT, "got %g", 1.5), "got 1.5");
    assert_fails(FLP_BAD_ARGUMENT, flp_status_prefix(FLP_BAD_ARGUMENT, "at %.2f", 0.25), "at 0.25: got 1.5");
    assert_the_callers_locale_stays();
}

static void texts_have_a_point(void **state)
{
    flp_text text = { 0 };

    (void)state;
    if (!comma_locale_enter())
        skip();
    flp_text_append(&text, "%.2f and %g", 0.25, 1.5);
    assert_string_equal("0.25 and 1.5", text.data);
    flp_text_free(&text);
    assert_the_callers_locale_stays();
}

static void keep_line(void *line, flp_log_level level, const char *message)
{
    (void)level;
    assert_the_callers_locale_stays();
    snprintf(line, 64, "%s", message);
}

static void log_lines_have_a_point_and_their_callback_the_callers_locale(void **state)
{
    char line[64] = "";

    (void)state;
    if (!comma_locale_enter())
        skip();
    flp_log_set_callback(keep_line, line);
    flp_log_warning("%g s", 0.5);
    flp_log_set_callback(NULL, NULL);
    assert_string_equal("0.5 s", line);
}

static void problems_are_written_and_read_with_a_point(void **state)
{
    flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = 16, .hidden = 64, .vocab = 101, .softcap = 30.5 }, parsed;
    char text[FLP_PROBLEM_TEXT_BYTES];

    (void)state;
    if (!comma_locale_enter())
        skip();
    assert_succeeds(flp_linear_logp_problem_format(&problem, text, sizeof(text)));
    assert_string_equal("linear_logp:bf16:n16:d64:v101:softcap30.5", text);
    assert_succeeds(flp_linear_logp_problem_parse(text, &parsed));
    assert_true(parsed.softcap == 30.5);
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_parse("linear_logp:bf16:n16:d64:v101:softcap30,5", &parsed), "softcap30,5");
}

/* The tile, the combine and the token loss that one problem takes, and the program of the loss for the CPU. */
static void gather(flp_text *text)
{
    static const char *const problems[] = {
        "linear_logp:bf16:n64:d2048:v131072:softcap30.5",
        "linear_cross_entropy:bf16:n64:d2048:v131072:gh_bf16:loss_mine",
    };
    flp_selection selection;
    flp_emitted emitted;
    flp_generator *fresh;
    char *program;

    assert_succeeds(flp_generator_create(&fresh));
    assert_succeeds(flp_generator_define_token_loss(fresh, "mine", definition));
    assert_succeeds(flp_generator_token_loss(fresh, "mine", &program));
    flp_text_append(text, "%s", program);
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        assert_succeeds(flp_generator_select(fresh, &(flp_wanted_kernels){ problems[i], 90, "auto", "" }, &selection));
        for (int k = 0; k < selection.count; k++) {
            assert_succeeds(flp_generator_emit(fresh, selection.variant[k], &emitted));
            flp_text_append(text, "%s%s", emitted.source, emitted.manifest_text);
            flp_emitted_free(&emitted);
        }
    }
    free(program);
    flp_generator_destroy(fresh);
}

static void kernels_and_programs_are_the_same_bytes(void **state)
{
    flp_text there = { 0 }, here = { 0 };

    (void)state;
    if (!comma_locale_enter())
        skip();
    gather(&there);
    assert_the_callers_locale_stays();
    comma_locale_leave();
    gather(&here);
    assert_false(there.failed || here.failed);
    assert_contains(here.data, "loss_mine");
    assert_string_equal(here.data, there.data);
    flp_text_free(&here);
    flp_text_free(&there);
}

/* A generator whose list is what Lua makes of numbers and of the order of strings. */
static const char list_of_texts[] = "local m = {}\n"
                                    "function m.architectures() return 'sm_80' end\n"
                                    "function m.list() return { tostring(1.5), ('%.2f'):format(0.25), tostring('2.5' + 0), tostring('B' < 'a') } end\n"
                                    "return m\n";

static void the_generator_computes_in_the_c_locale(void **state)
{
    const char *directory = fake_directory_make();
    flp_generator *generator;
    char *lines;

    (void)state;
    assert_int_equal(0, mkdir(fake_directory_path(directory, "gen"), 0700));
    assert_int_equal(0, mkdir(fake_directory_path(directory, "templates"), 0700));
    fake_directory_write(fake_directory_path(directory, "gen/fusedlogp.lua"), list_of_texts, strlen(list_of_texts));
    setenv("FUSEDLOGP_SOURCE_DIR", directory, 1);
    assert_succeeds(flp_generator_create(&generator));
    unsetenv("FUSEDLOGP_SOURCE_DIR");
    fake_directory_remove(directory);
    if (!comma_locale_enter())
        skip();
    assert_succeeds(flp_generator_list(generator, "sm_80", NULL, NULL, &lines));
    assert_string_equal("1.5\n0.25\n2.5\ntrue", lines);
    assert_the_callers_locale_stays();
    free(lines);
    flp_generator_destroy(generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(numbers_are_written_and_read_with_a_point, leave),
        cmocka_unit_test_teardown(messages_have_a_point, leave),
        cmocka_unit_test_teardown(texts_have_a_point, leave),
        cmocka_unit_test_teardown(log_lines_have_a_point_and_their_callback_the_callers_locale, leave),
        cmocka_unit_test_teardown(problems_are_written_and_read_with_a_point, leave),
        cmocka_unit_test_teardown(kernels_and_programs_are_the_same_bytes, leave),
        cmocka_unit_test_teardown(the_generator_computes_in_the_c_locale, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
