/* The list of what was asked for without a record. */
#include "tune/untuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "assertions.h"
#include "fake_directory.h"

static const char *root;
static char directory[512];
static flp_text lines;

static int make(void **state)
{
    (void)state;
    root = fake_directory_make();
    snprintf(directory, sizeof(directory), "%s/records", root);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    flp_text_free(&lines);
    fake_directory_remove(root);
    return 0;
}

static void assert_lines(const char *wanted)
{
    flp_text_free(&lines);
    assert_succeeds(flp_untuned_read(directory, &lines));
    assert_string_equal(wanted, lines.data ? lines.data : "");
}

static void each_problem_is_listed_once(void **state)
{
    char *text;
    size_t count;

    (void)state;
    assert_lines("");
    flp_untuned_note(directory, "sm_90a", "linear_logp:bf16:n64");
    flp_untuned_note(directory, "sm_90a", "linear_logp:bf16:n6");
    flp_untuned_note(directory, "sm_80", "linear_logp:bf16:n64");
    flp_untuned_note(directory, "sm_90a", "linear_logp:bf16:n64");
    assert_lines("sm_90a linear_logp:bf16:n64\nsm_90a linear_logp:bf16:n6\nsm_80 linear_logp:bf16:n64\n");
    text = fake_directory_read(fake_directory_path(directory, "untuned"), &count);
    assert_int_equal(lines.length, count);
    free(text);
}

static void one_that_is_tuned_is_taken_off(void **state)
{
    (void)state;
    assert_succeeds(flp_untuned_remove(directory, "sm_90a", "one"));
    assert_int_equal(0, fake_directory_count(root, ""));
    flp_untuned_note(directory, "sm_90a", "one");
    flp_untuned_note(directory, "sm_90a", "other");
    assert_succeeds(flp_untuned_remove(directory, "sm_90a", "one"));
    assert_lines("sm_90a other\n");
    assert_succeeds(flp_untuned_remove(directory, "sm_90a", "other"));
    assert_lines("");
}

static void what_is_no_whole_line_is_left_out(void **state)
{
    (void)state;
    flp_untuned_note(directory, "sm_90a", "one");
    fake_directory_write(fake_directory_path(directory, "untuned"), "sm_90a one\n\nsm_90a one\nsm_90a tw", 32);
    assert_lines("sm_90a one\n");
}

static void the_list_does_not_grow_for_ever(void **state)
{
    char problem[800], *text;
    size_t count;

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(problem, sizeof(problem), "%0700d", i);
        flp_untuned_note(directory, "sm_90a", problem);
    }
    text = fake_directory_read(fake_directory_path(directory, "untuned"), &count);
    free(text);
    assert_in_range(count, 60000, 65536);
}

static void processes_do_not_tear_each_others_lines(void **state)
{
    enum { PROCESSES = 4, EACH = 40 };
    pid_t children[PROCESSES];
    int result, count = 0;

    (void)state;
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int k = 0; k < EACH; k++) {
                char problem[64];

                snprintf(problem, sizeof(problem), "problem of process %d number %d", k % 2 ? i : 9, k);
                flp_untuned_note(directory, "sm_90a", problem);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(children[i], waitpid(children[i], &result, 0));
    assert_succeeds(flp_untuned_read(directory, &lines));
    for (const char *next = lines.data; *next; next = strchr(next, '\n') + 1, count++)
        assert_int_equal(0, strncmp(next, "sm_90a problem of process ", 26));
    assert_int_equal(EACH / 2 * (PROCESSES + 1), count);
}

static void nothing_can_fail_a_note(void **state)
{
    (void)state;
    flp_status_fail(FLP_OK, "the caller's message");
    flp_untuned_note("", "sm_90a", "one");
    fake_directory_write(fake_directory_path(root, "file"), "", 0);
    flp_untuned_note(fake_directory_path(root, "file"), "sm_90a", "one");
    assert_string_equal("the caller's message", flp_error_message());
    assert_int_equal(1, fake_directory_count(root, ""));
}

int main(void)
{
#define UNTUNED_TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        UNTUNED_TEST(each_problem_is_listed_once),     UNTUNED_TEST(one_that_is_tuned_is_taken_off),          UNTUNED_TEST(what_is_no_whole_line_is_left_out),
        UNTUNED_TEST(the_list_does_not_grow_for_ever), UNTUNED_TEST(processes_do_not_tear_each_others_lines), UNTUNED_TEST(nothing_can_fail_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
