/* The text of a record: it is read as it was written, and nothing else is. */
#include "tune/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "comma_locale.h"
#include "assertions.h"
#include "fake_record.h"

static flp_text text;

static int clean(void **state)
{
    (void)state;
    flp_text_free(&text);
    return 0;
}

static void a_record_is_its_lines_in_order(void **state)
{
    const flp_record record = fake_record();

    (void)state;
    assert_succeeds(flp_record_format(&record, &text));
    assert_string_equal("fusedlogp record 2\n"
                        "problem: linear_logp:bf16:n4096:d2048:v131072\n"
                        "arch: sm_90a\n"
                        "numerics: linear_logp.r3.bf16.s132\n"
                        "templates: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
                        "selection: fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210\n"
                        "device: NVIDIA H200\n"
                        "multiprocessors: 132\n"
                        "l2_bytes: 62914560\n"
                        "power_limit_w: 700\n"
                        "mig: none\n"
                        "driver: 580\n"
                        "nvrtc: a1b2c3\n"
                        "tuning: tile.bm=128,tile.group=8\n"
                        "regime: sustained\n"
                        "seconds: 0.00125\n"
                        "default_seconds: 0.00131\n"
                        "ratio: 0.954\n"
                        "ratio_low: 0.951\n"
                        "ratio_high: 0.956\n"
                        "predicted_seconds: 0.00119\n"
                        "workspace_bytes: 4325376\n"
                        "rounds: 24\n"
                        "ended: settled\n"
                        "date: 2026-11-22\n"
                        "library: 0.1.0\n",
                        text.data);
}

static void what_is_written_is_read(void **state)
{
    flp_record record = fake_record(), back;
    flp_text again = { 0 };

    (void)state;
    record.tuning[0] = 0;
    record.regime = FLP_REGIME_BURST;
    record.ended = FLP_TUNING_INTERRUPTED;
    record.seconds = 1.23456789e-5;
    record.environment.power_limit_w = 0;
    assert_succeeds(flp_record_format(&record, &text));
    assert_contains(text.data, "\ntuning: default\n");
    assert_succeeds(flp_record_parse(text.data, &back));
    assert_string_equal("", back.tuning);
    assert_int_equal(FLP_REGIME_BURST, back.regime);
    assert_int_equal(FLP_TUNING_INTERRUPTED, back.ended);
    assert_true(fabs(back.seconds / record.seconds - 1) < 1e-5);
    assert_true(flp_record_identity_same(&record.identity, &back.identity));
    assert_true(flp_environment_same(&record.environment, &back.environment));
    assert_succeeds(flp_record_format(&back, &again));
    assert_string_equal(text.data, again.data);
    flp_text_free(&again);
}

static void a_callers_locale_changes_nothing(void **state)
{
    const flp_record record = fake_record();
    flp_text other = { 0 };
    flp_record back;

    (void)state;
    assert_succeeds(flp_record_format(&record, &text));
    comma_locale_enter();
    assert_succeeds(flp_record_format(&record, &other));
    assert_succeeds(flp_record_parse(text.data, &back));
    comma_locale_leave();
    assert_string_equal(text.data, other.data);
    flp_text_free(&other);
}

static void what_no_text_can_hold_is_not_written(void **state)
{
    flp_record record = fake_record();

    (void)state;
    strcpy(record.environment.device, "two\nlines");
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "device: wanted printable characters");
    record = fake_record();
    record.seconds = NAN;
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "seconds: wanted a number above 0");
    record = fake_record();
    record.ratio_low = 0.96;
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "ratio: wanted from ratio_low to ratio_high");
    record = fake_record();
    record.rounds = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "rounds: wanted 1 or more");
    record = fake_record();
    strcpy(record.tuning, "tile.bm=128; rm");
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "tuning: wanted role.field=number");
    record = fake_record();
    memset(record.tuning, 'a', sizeof(record.tuning));
    assert_fails(FLP_BAD_ARGUMENT, flp_record_format(&record, &text), "tuning");
    assert_null(text.data);
}

/* The text with one part of it replaced. */
static const char *changed(const char *from, const char *to)
{
    static char copy[4096];
    const char *at = strstr(text.data, from);

    assert_non_null(at);
    snprintf(copy, sizeof(copy), "%.*s%s%s", (int)(at - text.data), text.data, to, at + strlen(from));
    return copy;
}

static void what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *from, *to, *told;
    } changes[] = {
        { "fusedlogp record 2\n", "fusedlogp record 1\n", "line 1: got format 1, wanted 2" },
        { "arch: sm_90a\n", "", "line 3: got 'numerics: linear_logp.r3.bf16.s132', wanted 'arch: ...'" },
        { "arch: sm_90a\n", "arch: \n", "line 3: arch: got ''" },
        { "arch: sm_90a\n", "arch: sm_90a \n", "line 3: arch: wanted printable" },
        { "arch: sm_90a\n", "arch: a_name_that_is_longer_than_any_architecture_has\n", "line 3: arch: got" },
        { "templates: 0", "templates: G", "line 5: templates: wanted 64" },
        { "selection: f", "selection: F", "line 6: selection: wanted 64" },
        { "multiprocessors: 132", "multiprocessors: 0", "line 8: multiprocessors: wanted 1 or more" },
        { "multiprocessors: 132", "multiprocessors: 0132", "line 8: it is not written as the library writes it" },
        { "l2_bytes: 62914560", "l2_bytes: 9999999999999999999999", "line 9: l2_bytes: got" },
        { "tuning: tile.bm=128,", "tuning: Tile.bm=128,", "line 14: tuning: wanted" },
        { "regime: sustained", "regime: calm", "line 15: regime: got 'calm', wanted sustained or burst" },
        { "seconds: 0.00125", "seconds: 0.001250", "line 16: it is not written as" },
        { "seconds: 0.00125", "seconds: inf", "line 16: seconds: got 'inf'" },
        { "seconds: 0.00125", "seconds: 0,00125", "line 16: seconds: got" },
        { "ratio_low: 0.951", "ratio_low: 0.955", "ratio: wanted from" },
        { "ended: settled", "ended: well", "ended: got 'well'" },
        { "date: 2026-11-22", "date: 2026-13-22", "date: wanted YYYY-MM-DD" },
        { "library: 0.1.0\n", "library: 0.1.0", "line 26: wanted a whole line" },
        { "library: 0.1.0\n", "library: 0.1.0\nmore: 1\n", "line 27: wanted the end" },
    };
    const flp_record whole = fake_record();
    flp_record record;

    (void)state;
    assert_succeeds(flp_record_format(&whole, &text));
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_record_parse(changed(changes[i].from, changes[i].to), &record), changes[i].told);
    assert_fails(FLP_BAD_ARGUMENT, flp_record_parse("", &record), "line 1: wanted 'fusedlogp record 2'");
    assert_fails(FLP_BAD_ARGUMENT, flp_record_parse("fusedlogp record 2x\n", &record), "line 1: wanted 'fusedlogp record 2'");
}

static void every_part_of_a_record_is_none(void **state)
{
    const flp_record whole = fake_record();
    flp_record record;

    (void)state;
    assert_succeeds(flp_record_format(&whole, &text));
    for (size_t length = 0; length < text.length; length++) {
        char *part = strndup(text.data, length);

        assert_int_equal(FLP_BAD_ARGUMENT, flp_record_parse(part, &record));
        free(part);
    }
}

static void the_name_is_of_problem_and_machine_alone(void **state)
{
    char name[FLP_RECORD_NAME_BYTES], other[FLP_RECORD_NAME_BYTES];
    flp_record record = fake_record();

    (void)state;
    flp_record_name(&record, name);
    assert_int_equal(32 + strlen(".record"), strlen(name));
    strcpy(record.tuning, "tile.bm=64");
    record.seconds = 1;
    flp_record_name(&record, other);
    assert_string_equal(name, other);
    record.environment.power_limit_w = 500;
    flp_record_name(&record, other);
    assert_string_not_equal(name, other);
    record = fake_record_of_rows(8192);
    flp_record_name(&record, other);
    assert_string_not_equal(name, other);
}

int main(void)
{
#define RECORD_TEST(name) cmocka_unit_test_teardown(name, clean)
    const struct CMUnitTest tests[] = {
        RECORD_TEST(a_record_is_its_lines_in_order),           RECORD_TEST(what_is_written_is_read),
        RECORD_TEST(a_callers_locale_changes_nothing),         RECORD_TEST(what_no_text_can_hold_is_not_written),
        RECORD_TEST(what_is_wrong_is_told_with_its_line),      RECORD_TEST(every_part_of_a_record_is_none),
        RECORD_TEST(the_name_is_of_problem_and_machine_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
