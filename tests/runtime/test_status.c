/* Statuses, messages, the log and the version. */
#include "base/status.h"

#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "assertions.h"

static void every_status_has_its_own_text(void **state)
{
    const flp_status all[] = {
#define STATUS_ENTRY(name, value, text) FLP_##name,
        FLP_STATUS_LIST(STATUS_ENTRY)
#undef STATUS_ENTRY
    };
    size_t count = sizeof(all) / sizeof(all[0]);

    (void)state;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(all[i], all[j]);
            assert_string_not_equal(flp_status_text(all[i]), flp_status_text(all[j]));
        }
    assert_string_equal("success", flp_status_text(FLP_OK));
}

static void an_unknown_status_has_a_text_too(void **state)
{
    (void)state;
    assert_string_equal("unknown status", flp_status_text((flp_status)-1000));
    assert_string_equal("unknown status", flp_status_text((flp_status)7));
}

static void a_failure_records_its_message_and_returns_its_status(void **state)
{
    (void)state;
    assert_int_equal(FLP_BAD_ARGUMENT, flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %d, wanted %s", -3, "0 or more"));
    assert_string_equal("rows: got -3, wanted 0 or more", flp_error_message());
}

static void a_prefix_stands_before_the_message(void **state)
{
    (void)state;
    flp_status_fail(FLP_IO_FAILED, "no such file");
    assert_int_equal(FLP_NO_DRIVER, flp_status_prefix(FLP_NO_DRIVER, "%s %d", "try", 2));
    assert_string_equal("try 2: no such file", flp_error_message());
}

static void a_message_may_quote_the_message_before(void **state)
{
    (void)state;
    flp_status_fail(FLP_IO_FAILED, "inner");
    flp_status_fail(FLP_IO_FAILED, "outer (%s)", flp_error_message());
    assert_string_equal("outer (inner)", flp_error_message());
    flp_status_prefix(FLP_IO_FAILED, "%s again", flp_error_message());
    assert_string_equal("outer (inner) again: outer (inner)", flp_error_message());
}

static void a_message_that_is_too_long_is_cut(void **state)
{
    static char long_text[10000];

    (void)state;
    memset(long_text, 'x', sizeof(long_text) - 1);
    flp_status_fail(FLP_INTERNAL, "%s", long_text);
    assert_int_equal(4095, strlen(flp_error_message()));
    flp_status_prefix(FLP_INTERNAL, "start");
    assert_int_equal(4095, strlen(flp_error_message()));
    assert_int_equal(0, strncmp(flp_error_message(), "start: xxx", 10));
}

static void *see_no_message(void *argument)
{
    *(size_t *)argument = strlen(flp_error_message());
    flp_status_fail(FLP_INTERNAL, "of the other thread");
    return NULL;
}

static void each_thread_has_its_own_message(void **state)
{
    pthread_t thread;
    size_t length = 99;

    (void)state;
    flp_status_fail(FLP_INTERNAL, "of this thread");
    assert_int_equal(0, pthread_create(&thread, NULL, see_no_message, &length));
    pthread_join(thread, NULL);
    assert_int_equal(0, length);
    assert_string_equal("of this thread", flp_error_message());
}

typedef struct {
    int lines;
    flp_log_level level;
    char text[256];
} heard;

static void hear(void *user_data, flp_log_level level, const char *message)
{
    heard *heard = user_data;

    heard->lines++;
    heard->level = level;
    snprintf(heard->text, sizeof(heard->text), "%s", message);
}

static void the_log_goes_to_the_callback_with_its_level(void **state)
{
    heard heard = { 0 };

    (void)state;
    flp_log_set_callback(hear, &heard);
    flp_log_warning("disk %s, %d left", "full", 3);
    assert_int_equal(FLP_LOG_WARNING, heard.level);
    assert_string_equal("disk full, 3 left", heard.text);
    flp_log_info("i");
    assert_int_equal(FLP_LOG_INFO, heard.level);
    flp_log_debug("d");
    assert_int_equal(FLP_LOG_DEBUG, heard.level);
    assert_int_equal(3, heard.lines);
    flp_log_set_callback(NULL, NULL);
    flp_log_warning("nobody hears this");
    assert_int_equal(3, heard.lines);
}

static void silence(void *user_data, flp_log_level level, const char *message)
{
    hear(user_data, level, message);
    flp_log_set_callback(NULL, NULL);
    flp_log_warning("unheard");
}

static void a_callback_may_log_and_replace_itself(void **state)
{
    heard heard = { 0 };

    (void)state;
    flp_log_set_callback(silence, &heard);
    flp_log_info("once");
    flp_log_info("twice");
    assert_int_equal(1, heard.lines);
}

static void the_version_is_the_headers(void **state)
{
    char wanted[32];

    (void)state;
    snprintf(wanted, sizeof(wanted), "%d.%d.%d", FLP_VERSION_MAJOR, FLP_VERSION_MINOR, FLP_VERSION_PATCH);
    assert_string_equal(wanted, flp_version());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_own_text),
        cmocka_unit_test(an_unknown_status_has_a_text_too),
        cmocka_unit_test(a_failure_records_its_message_and_returns_its_status),
        cmocka_unit_test(a_prefix_stands_before_the_message),
        cmocka_unit_test(a_message_may_quote_the_message_before),
        cmocka_unit_test(a_message_that_is_too_long_is_cut),
        cmocka_unit_test(each_thread_has_its_own_message),
        cmocka_unit_test(the_log_goes_to_the_callback_with_its_level),
        cmocka_unit_test(a_callback_may_log_and_replace_itself),
        cmocka_unit_test(the_version_is_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
