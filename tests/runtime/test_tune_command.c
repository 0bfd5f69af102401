/* fusedlogp tune from its command line to its records, on a fake driver and with candidates whose times are known. */
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands.h"
#include "base/clock.h"
#include "cli/console.h"
#include "cli/tune.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_tune_target.h"
#include "tune/untuned.h"

static const char *root;
static char records[512], *output, *messages;
static const char problem[] = "linear_logp:bf16:n4096:d2048:v131072";

static int make(void **state)
{
    (void)state;
    fake_library_install();
    fake_library.nvml = 1;
    fake_tune_reset();
    root = fake_directory_make();
    snprintf(records, sizeof(records), "%s/records", root);
    setenv("FUSEDLOGP_RECORDS_DIR", records, 1);
    setenv("FUSEDLOGP_SYSTEM_RECORDS", "", 1);
    setenv("FUSEDLOGP_CACHE_DIR", "", 1);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    fake_directory_remove(root);
    free(output);
    free(messages);
    output = messages = NULL;
    return 0;
}

static void redirect(int descriptor, const char *name)
{
    int file = open(fake_directory_path(root, name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (file < 0 || dup2(file, descriptor) < 0)
        _exit(99);
    close(file);
}

/* What a command may take until it counts as hanging, of which the slowest takes a twentieth. */
static double longest_seconds = 120;

/* Until it has ended, or been ended together with the processes that it started. */
static int wait_for(pid_t child)
{
    const double end = flp_clock_seconds() + longest_seconds;
    pid_t ended;
    int result;

    while ((ended = waitpid(child, &result, WNOHANG)) == 0 && flp_clock_seconds() < end)
        usleep(1000);
    if (ended == 0) {
        kill(-child, SIGKILL);
        ended = waitpid(child, &result, 0);
    }
    assert_int_equal(child, ended);
    return result;
}

/* In a process of its own, since a usage error exits; words: separated by blanks. milliseconds: until it is interrupted, 0: never. */
static int run_for(const char *words, unsigned milliseconds)
{
    pid_t child = fork();
    size_t count;
    int result;

    if (child == 0) {
        char copy[1024], *arguments[64] = { (char[]){ "fusedlogp tune" } }, *rest = NULL;
        int argc = 1;

        snprintf(copy, sizeof(copy), "%s", words);
        for (char *word = strtok_r(copy, " ", &rest); word && argc < 63; word = strtok_r(NULL, " ", &rest))
            arguments[argc++] = word;
        setpgid(0, 0);
        redirect(STDOUT_FILENO, "output");
        redirect(STDERR_FILENO, "messages");
        flp_console_start("fusedlogp");
        result = flp_console_finish(flp_tune_main(argc, arguments));
        _exit(result);
    }
    setpgid(child, child); /* in both, so that it is so whoever runs first */
    if (milliseconds) {
        usleep(1000 * milliseconds);
        kill(child, SIGINT);
    }
    result = wait_for(child);
    free(output);
    free(messages);
    output = fake_directory_read(fake_directory_path(root, "output"), &count);
    messages = fake_directory_read(fake_directory_path(root, "messages"), &count);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 100 + WTERMSIG(result);
}

static int run(const char *words)
{
    return run_for(words, 0);
}

/* The exit code, with what it said where it is another. */
static void assert_exits(int wanted, int got)
{
    if (wanted != got)
        fail_msg("exit status %d, wanted %d: %s%s", got, wanted, output, messages);
}

/* The only record's text; "" where there is none. */
static const char *the_record(void)
{
    static char text[4096];
    flp_record_files files = { 0 };

    text[0] = 0;
    if (flp_record_files_read(records, &files) == FLP_OK && files.count == 1 && !files.files[0].fault)
        snprintf(text, sizeof(text), "%s", files.files[0].text);
    flp_record_files_free(&files);
    return text;
}

static json_t *parse_output(void)
{
    json_error_t error;
    json_t *value = json_loads(output, 0, &error);

    if (!value)
        fail_msg("%s in: %s", error.text, output);
    return value;
}

static void a_problem_is_tuned_and_recorded(void **state)
{
    (void)state;
    assert_exits(0, run("--problem linear_logp:bf16:n3000:d2048:v131072"));
    assert_contains(output, "linear_logp:bf16:n4096:d2048:v131072: combine.w=1,tile.group=2, 0.8");
    assert_string_equal("", messages); /* no progress in a pipe */
    assert_contains(the_record(), "\nproblem: linear_logp:bf16:n4096:d2048:v131072\n");
    assert_contains(the_record(), "\ntuning: combine.w=1,tile.group=2\nregime: sustained\n");
    assert_contains(the_record(), "\ndevice: Fake GPU 0\n");
    assert_contains(the_record(), "\npower_limit_w: 700\n");
}

static void options_reach_the_device(void **state)
{
    json_t *whole, *json;

    (void)state;
    fake_tune.wrong = 2;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --regime burst --json --jobs 2"));
    assert_contains(the_record(), "\nregime: burst\n");
    whole = parse_output();
    json = json_object_get(whole, "results");
    assert_int_equal(1, json_array_size(json));
    json = json_array_get(json, 0);
    assert_string_equal("combine.w=1", json_string_value(json_object_get(json, "tuning")));
    assert_int_equal(6, json_array_size(json_object_get(json, "candidates")));
    json = json_array_get(json_object_get(json, "candidates"), 2);
    assert_string_equal("rejected", json_string_value(json_object_get(json, "fate")));
    assert_contains(json_string_value(json_object_get(json, "reason")), "is wrong");
    json_decref(whole);
}

static void quiet_says_nothing(void **state)
{
    (void)state;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --quiet"));
    assert_string_equal("", output);
    assert_string_equal("", messages);
    assert_string_not_equal("", the_record());
}

static void a_dry_run_changes_nothing(void **state)
{
    (void)state;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --dry-run"));
    assert_contains(output, "6 candidates");
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --dry-run --limit 1"));
    assert_contains(output, "3 candidates");
    assert_int_equal(0, fake_directory_count(root, ".record"));
}

/* fake_tune is of another process: what it counts is not seen here. A target that hangs would take its hundreds of seconds. */
static void under_a_tool_it_does_not_begin(void **state)
{
    const char words[] = "--problem linear_logp:bf16:n4096:d2048:v131072 --problem weighted_sum:bf16:n64:d4096 --devices 0,1";

    (void)state;
    fake_driver.devices = 2;
    fake_tune.target_hangs = "";
    assert_int_equal(0, setenv("CUDA_INJECTION64_PATH", "/opt/tool.so", 1));
    assert_exits(1, run(words));
    assert_string_equal("", output);
    assert_string_equal("fusedlogp: times that a tool distorts make no record: CUDA_INJECTION64_PATH names /opt/tool.so, which the driver loads; tune without "
                        "it\n",
                        messages);
    assert_exits(1, run("--problem linear_logp:bf16:n4096:d2048:v131072 --verify --json"));
    assert_string_equal("{\n  \"results\": []\n}\n", output);
    fake_tune.target_hangs = NULL;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --dry-run"));
    assert_contains(output, "6 candidates");
    assert_int_equal(0, unsetenv("CUDA_INJECTION64_PATH"));
}

static void what_was_asked_for_untuned_is_tuned(void **state)
{
    flp_text lines = { 0 };

    (void)state;
    assert_exits(0, run("--untuned"));
    assert_contains(messages, "there is nothing to tune");
    flp_untuned_note(records, "sm_90a", problem);
    flp_untuned_note(records, "sm_80", "weighted_sum:bf16:n64:d4096");
    flp_untuned_note(records, "sm_90a", "no such problem");
    assert_exits(0, run("--untuned"));
    assert_contains(the_record(), "\nproblem: linear_logp:bf16:n4096:d2048:v131072\n");
    assert_contains(messages, "1 of 2 problems left: of an architecture that no device here has\n");
    assert_null(strstr(messages, "the time was over"));
    assert_succeeds(flp_untuned_read(records, &lines));
    assert_string_equal("sm_80 weighted_sum:bf16:n64:d4096\nsm_90a no such problem\n", lines.data);
    flp_text_free(&lines);
}

static void a_models_problems_are_tuned(void **state)
{
    static const char config[] = "{\"architectures\": [\"Gemma2ForCausalLM\"], \"model_type\": \"gemma2\", \"hidden_size\": 2304, \"vocab_size\": 256000, "
                                 "\"torch_dtype\": \"bfloat16\", \"final_logit_softcapping\": 30.0}";
    char words[600];

    (void)state;
    fake_directory_write(fake_directory_path(root, "config.json"), config, strlen(config));
    snprintf(words, sizeof(words), "--model %s", root);
    assert_exits(0, run(words));
    assert_contains(output, "linear_logp:bf16:n4096:d2304:v256000:softcap30:");
    assert_contains(output, "linear_logp:bf16:n64:d2304:v256000:softcap30:");
    assert_contains(output, "linear_cross_entropy:bf16:n4096:d2304:v256000:");
    assert_int_equal(3, fake_directory_count(records, ".record"));
}

static void a_probe_is_of_every_kind(void **state)
{
    static const char *const operators[] = { "\nlinear_logp:", "\nlinear_cross_entropy:", "\nlinear_logp_backward:",
                                             "\nlogits_logp:", "\nlogits_logp_backward:", "\nweighted_sum:" };
    flp_text text = { 0 };

    (void)state;
    assert_exits(0, run("--probe"));
    if (!strstr(output, "\nmodel: hopper.l2="))
        fail_msg("not calibrated: %s", messages);
    assert_int_equal(10, fake_directory_count(records, ".record")); /* the model's calibration is one */
    flp_text_append(&text, "\n%s", output);
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        assert_contains(text.data, operators[i]);
    flp_text_free(&text);
}

static void resume_leaves_out_what_is_done(void **state)
{
    (void)state;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072"));
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --problem weighted_sum:bf16:n64:d4096 --resume"));
    assert_contains(output, "linear_logp:bf16:n4096:d2048:v131072: it has a record\n");
    assert_contains(output, "weighted_sum:bf16:n64:d4096: ");
    assert_int_equal(2, fake_directory_count(records, ".record"));
}

static void interrupted_it_keeps_what_it_learned(void **state)
{
    (void)state;
    fake_tune.slow_microseconds = 20000; /* 8 rounds of each heat are more than 1.7 seconds */
    assert_exits(1, run_for("--problem linear_logp:bf16:n4096:d2048:v131072 --problem weighted_sum:bf16:n64:d4096", 1000));
    assert_contains(messages, "interrupted: what was learned is kept");
    assert_contains(the_record(), "\nended: interrupted\n");
    fake_tune.slow_microseconds = 0;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --resume"));
    assert_null(strstr(the_record(), "interrupted"));
    assert_contains(the_record(), "\ntuning: combine.w=1,tile.group=2\n");
}

/* Its process is ended, and the next one goes on without it. */
static void a_candidate_that_hangs_is_ended_and_not_tried_again(void **state)
{
    json_t *whole, *candidates;

    (void)state;
    fake_tune.hangs = 2; /* the fastest of its kernel */
    assert_exits(0, run("--problem weighted_sum:bf16:n64:d4096 --problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.3 --json"));
    assert_contains(messages, "linear_logp:bf16:n4096:d2048:v131072: tile.group=2 hung for 0.3 s and was ended; it is not tried again");
    assert_contains(messages, "weighted_sum:bf16:n64:d4096: tile.group=2 hung");
    assert_int_equal(2, fake_directory_count(records, ".record"));
    whole = parse_output();
    assert_int_equal(2, json_array_size(json_object_get(whole, "results")));
    candidates = json_object_get(json_array_get(json_object_get(whole, "results"), 1), "candidates");
    assert_string_equal("rejected", json_string_value(json_object_get(json_array_get(candidates, 2), "fate")));
    assert_string_equal("it hung in an earlier tuning", json_string_value(json_object_get(json_array_get(candidates, 2), "reason")));
    json_decref(whole);
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.3"));
    assert_null(strstr(messages, "hung"));
}

/* What hung is tried again where the templates of its own kernels have changed, though the base's have not. */
static void what_hung_goes_by_its_own_templates(void **state)
{
    (void)state;
    fake_tune.templates = 1;
    fake_tune.hangs = 2;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.3"));
    assert_contains(messages, "tile.group=2 hung");
    fake_tune.hangs = 0;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.3"));
    assert_contains(output, ": combine.w=1, ");
    fake_tune.templates = 2;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.3"));
    assert_contains(output, ": combine.w=1,tile.group=2, ");
}

static int has_hung_list(void)
{
    return access(fake_directory_path(root, "records/hung"), F_OK) == 0;
}

static void a_compilation_that_hangs_is_ended_and_not_tried_again(void **state)
{
    (void)state;
    fake_tune.compilation_hangs = 2;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.03 --jobs 2"));
    assert_contains(messages, ": the compilation of tile.group=2 hung for 0.3 s and was ended; it is not tried again");
    assert_contains(the_record(), "\ntuning: combine.w=1\n");
    assert_true(has_hung_list());
}

static int count_arithmetics(const char *words)
{
    const char *found;

    assert_exits(0, run(words));
    found = strstr(output, ": ");
    assert_non_null(found);
    return atoi(found + 2);
}

/* They decide on a row's bits; those of a frozen head's rows do not. */
static void widths_of_chunks_are_arithmetics_as_memory_allows(void **state)
{
    const int plain = count_arithmetics("--dry-run --numerics --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16");
    const int step = count_arithmetics("--dry-run --numerics --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_f32:acc_weight");

    (void)state;
    assert_true(step > plain);
    /* Where grad_weight holds the exponentials of the whole vocabulary, there is no width to choose. */
    assert_int_equal(plain, count_arithmetics("--dry-run --numerics --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_bf16"));
    /* All of them, whatever the limit of each kernel: selection's own, five widths of the saved exponentials and five of the other chunks. Tiles of products leave
     * the bits as they are. */
    assert_int_equal(
        11 + count_arithmetics("--dry-run --numerics --limit 2 --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16"),
        count_arithmetics("--dry-run --numerics --limit 2 --memory 8G --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_f32:acc_weight"));
    assert_true(count_arithmetics("--dry-run --numerics --memory 8G --problem linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_f32:acc_weight") > step);
}

/* Where a hang is not recognised, this program says so and ends. */
static void a_command_that_never_ends_is_ended(void **state)
{
    const double usual = longest_seconds;

    (void)state;
    fake_tune.hangs = 2;
    longest_seconds = 0.5;
    assert_exits(100 + SIGKILL, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 1000"));
    longest_seconds = usual;
}

static void a_target_that_hangs_leaves_its_problem_out(void **state)
{
    (void)state;
    fake_tune.target_hangs = "weighted_sum";
    assert_exits(1, run("--problem weighted_sum:bf16:n64:d4096 --problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.03"));
    assert_contains(messages, "weighted_sum:bf16:n64:d4096: making its arrays and the reference took longer than 0.3 s and was ended; the problem is left out");
    assert_contains(the_record(), "\nproblem: linear_logp:bf16:n4096:d2048:v131072\n");
    assert_false(has_hung_list());
}

static void a_default_that_hangs_leaves_its_problem_out(void **state)
{
    (void)state;
    fake_tune.default_hangs = 1;
    assert_exits(1, run("--problem linear_logp:bf16:n4096:d2048:v131072 --hang 0.03"));
    assert_contains(messages,
                    "linear_logp:bf16:n4096:d2048:v131072: the default took longer than 0.3 s and was ended; the problem is left out, wanted a --hang");
    assert_string_equal("", the_record());
    assert_false(has_hung_list());
}

/* Runs of 40 ms are no hanging where the default takes as long. */
static void a_hang_shorter_than_the_default_is_raised(void **state)
{
    (void)state;
    fake_tune.slow_microseconds = fake_tune.slow_check_microseconds = 40000;
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --limit 2 --hang 0.03"));
    assert_contains(messages, "warning: linear_logp:bf16:n4096:d2048:v131072: the default took 0.0");
    assert_contains(messages, " s, not 0.03\n");
    assert_null(strstr(messages, "hung"));
    assert_contains(the_record(), "\ntuning: combine.w=1,tile.group=2\n");
    assert_false(has_hung_list());
}

static void the_time_is_shared(void **state)
{
    (void)state;
    fake_tune.slow_microseconds = 2000;
    assert_exits(0, run("--probe --budget 1.5"));
    assert_true(fake_directory_count(records, ".record") >= 5);
}

/* Tiles of 192 columns are faster everywhere; 66 splits are much faster for few rows, and slower for more; 108 are wrong for some. */
static double time_of_bits(const char *text, const char *tuning)
{
    if (strstr(tuning, "tile.s=66"))
        return strstr(text, ":n64:") ? 0.7 : 1.1;
    if (strstr(tuning, "tile.s=108"))
        return strstr(text, ":n1024:") ? -0.5 : 0.5;
    return strstr(tuning, "tile.s=") ? 1.1 : strstr(tuning, "tile.bv=192") ? 0.95 : strstr(tuning, "tile.bv=") ? 1.05 : 1;
}

static void time_bits(void)
{
    fake_tune.real_identity = 1;
    fake_tune.combines = 0;
    fake_tune.factor = time_of_bits;
}

/* The record of a problem; "" where there is none. */
static const char *record_of(const char *text)
{
    static char found[4096];
    char line[256];
    flp_record_files files = { 0 };

    found[0] = 0;
    snprintf(line, sizeof(line), "\nproblem: %s\n", text);
    assert_succeeds(flp_record_files_read(records, &files));
    for (size_t i = 0; i < files.count; i++)
        if (!files.files[i].fault && strstr(files.files[i].text, line))
            snprintf(found, sizeof(found), "%s", files.files[i].text);
    flp_record_files_free(&files);
    return found;
}

static void bits_are_decided_for_all_numbers_of_rows(void **state)
{
    (void)state;
    time_bits();
    assert_exits(0, run("--problem linear_logp:bf16:n1024:d2048:v131072 --problem linear_logp:bf16:n4000:d2048:v131072 --numerics"));
    assert_contains(output, "linear_logp:bf16:d2048:v131072: tile.bv=192 decides on a row's bits, 0.8");
    assert_contains(output, " of the default's time over 6 numbers of rows\n");
    assert_int_equal(7, fake_directory_count(records, ".record"));
    assert_contains(record_of("linear_logp:bf16:d2048:v131072"), "\ntuning: tile.bv=192\n");
    assert_contains(record_of("linear_logp:bf16:d2048:v131072"), ".bv168.");
    assert_contains(record_of("linear_logp:bf16:n64:d2048:v131072"), "\ntuning: tile.bv=192,tile.group=2\n");
    assert_contains(record_of("linear_logp:bf16:n4096:d2048:v131072"), "\ntuning: tile.bv=192,tile.group=2\n");
    assert_contains(record_of("linear_logp:bf16:n4096:d2048:v131072"), ".bv192.");
    assert_exits(0, run("--problem linear_logp:bf16:n4000:d2048:v131072 --numerics --resume"));
    assert_contains(output, "linear_logp:bf16:d2048:v131072: it has a record\n");
    assert_exits(0, run("--problem linear_logp:bf16:n4000:d2048:v131072 --numerics --dry-run"));
    assert_contains(output, "linear_logp:bf16:d2048:v131072: 6 arithmetics, 6 numbers of rows\n");
    assert_exits(2, run("--problem linear_logp:bf16:n4000:d2048:v131072 --numerics --verify"));
}

static void a_later_decision_takes_the_place_of_the_first(void **state)
{
    (void)state;
    time_bits();
    assert_exits(0, run("--problem linear_logp:bf16:n128:d2048:v131072 --numerics --limit 20"));
    assert_contains(record_of("linear_logp:bf16:d2048:v131072"), "tile.s=108\n"); /* of 64 rows and 128 */
    assert_int_equal(3, fake_directory_count(records, ".record"));
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --numerics --json"));
    assert_contains(record_of("linear_logp:bf16:d2048:v131072"), "\ntuning: tile.bv=192\n");
    assert_int_equal(9, fake_directory_count(records, ".record")); /* two are of the other bits */
}

/* What was decided is the default of what is tuned within it. */
static void where_what_was_decided_hangs_the_problem_is_left_out(void **state)
{
    (void)state;
    time_bits();
    fake_tune.base_hangs = 1;
    assert_exits(1, run("--problem linear_logp:bf16:n64:d2048:v131072 --numerics --limit 20 --hang 0.03"));
    assert_contains(messages, "the default took longer than 0.3 s and was ended; the problem is left out");
    assert_int_equal(0, fake_directory_count(records, ".record"));
    assert_false(has_hung_list());
}

static void without_all_numbers_of_rows_nothing_is_decided(void **state)
{
    (void)state;
    time_bits();
    fake_tune.slow_microseconds = 20000;
    assert_exits(1, run_for("--problem linear_logp:bf16:n4096:d2048:v131072 --numerics", 700));
    assert_contains(output, "it was interrupted before all numbers of rows were timed; nothing is decided");
    assert_int_equal(0, fake_directory_count(records, ".record"));
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --numerics --budget 0.05"));
    assert_contains(output, "the time was over before all numbers of rows were timed; nothing is decided");
    assert_int_equal(0, fake_directory_count(records, ".record"));
}

static void verifying_tells_what_a_record_loses(void **state)
{
    (void)state;
    assert_exits(1, run("--problem linear_logp:bf16:n4096:d2048:v131072 --verify"));
    assert_contains(output, "there is no record of this machine");
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072"));
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072 --verify"));
    assert_contains(output, "the record's tuning combine.w=1,tile.group=2 loses ");
    fake_tune.tile_factors[0] = 0.8; /* another is the best now */
    assert_exits(1, run("--problem linear_logp:bf16:n4096:d2048:v131072 --verify"));
    assert_contains(output, "to combine.w=1,tile.group=1");
    assert_contains(the_record(), "\ntuning: combine.w=1,tile.group=2\n");
}

static void the_plot_shows_how_much_faster_it_is(void **state)
{
    char words[700], *svg;
    size_t count;

    (void)state;
    snprintf(words, sizeof(words), "--problem %s --quiet --plot %s", problem, fake_directory_path(root, "plot.svg"));
    assert_exits(0, run(words));
    svg = fake_directory_read(fake_directory_path(root, "plot.svg"), &count);
    assert_non_null(svg);
    assert_contains(svg, "Fake GPU 0");
    assert_contains(svg, ">1.1"); /* 1 / (0.9 0.95) */
    free(svg);
    snprintf(words, sizeof(words), "--problem %s --quiet --plot %s", problem, fake_directory_path(root, "none/plot.svg"));
    assert_exits(1, run(words));
    assert_contains(messages, "--plot: ");
    assert_contains(messages, "none/plot.svg: No such file or directory");
}

static void devices_share_the_problems(void **state)
{
    (void)state;
    fake_driver.devices = 2;
    assert_exits(0, run("--probe --devices 0,1"));
    assert_in_range(fake_directory_count(records, ".record"), 9, 10); /* with a calibration, where one had enough of them */
    assert_exits(3, run("--problem linear_logp:bf16:n4096:d2048:v131072 --devices 5"));
    assert_contains(messages, "--devices: got 5, and the driver shows 2 devices");
}

static void failures_have_their_exit_status(void **state)
{
    char words[600];

    (void)state;
    assert_exits(2, run(""));
    assert_contains(messages, "wanted --problem, --model, --untuned or --probe");
    assert_exits(2, run("--probe --memory 5T"));
    assert_contains(messages, "--memory: got '5T'");
    assert_exits(2, run("--probe --devices 1,1"));
    assert_exits(2, run("--probe --verify --dry-run"));
    assert_exits(2, run("--probe --regime calm"));
    assert_exits(2, run("--probe --limit 0"));
    assert_exits(2, run("--probe --dry-run --plot plot.svg"));
    assert_exits(2, run("--probe --verify --plot plot.svg"));
    assert_contains(messages, "--plot is of a tuning: --verify and --dry-run exclude it");
    assert_exits(2, run("--problem linear_logp:bf16:n64"));
    assert_contains(messages, "got 3 parts, wanted at least");
    fake_directory_write(fake_directory_path(root, "config.json"), "[]", 2);
    snprintf(words, sizeof(words), "--model %s/config.json", root);
    assert_exits(4, run(words));
    assert_exits(1, run("--model /no/such/config.json"));
    fake_tune.failure = FLP_NO_VARIANT;
    assert_exits(3, run("--problem linear_logp:bf16:n4096:d2048:v131072"));
    assert_contains(messages, "linear_logp:bf16:n4096:d2048:v131072: no target today");
    fake_tune.failure = FLP_OUT_OF_MEMORY;
    assert_exits(1, run("--problem linear_logp:bf16:n4096:d2048:v131072"));
    fake_library.driver = 0;
    assert_exits(3, run("--probe"));
    fake_library_install();
    fake_tune_reset();
    fake_directory_write(fake_directory_path(root, "file"), "", 0);
    snprintf(words, sizeof(words), "%s/file/records", root);
    setenv("FUSEDLOGP_RECORDS_DIR", words, 1);
    assert_exits(0, run("--problem linear_logp:bf16:n4096:d2048:v131072"));
    assert_contains(messages, "warning: not kept: ");
}

int main(void)
{
#define COMMAND_TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        COMMAND_TEST(a_problem_is_tuned_and_recorded),
        COMMAND_TEST(options_reach_the_device),
        COMMAND_TEST(quiet_says_nothing),
        COMMAND_TEST(a_dry_run_changes_nothing),
        COMMAND_TEST(under_a_tool_it_does_not_begin),
        COMMAND_TEST(what_was_asked_for_untuned_is_tuned),
        COMMAND_TEST(a_models_problems_are_tuned),
        COMMAND_TEST(a_probe_is_of_every_kind),
        COMMAND_TEST(resume_leaves_out_what_is_done),
        COMMAND_TEST(interrupted_it_keeps_what_it_learned),
        COMMAND_TEST(a_candidate_that_hangs_is_ended_and_not_tried_again),
        COMMAND_TEST(what_hung_goes_by_its_own_templates),
        COMMAND_TEST(a_compilation_that_hangs_is_ended_and_not_tried_again),
        COMMAND_TEST(widths_of_chunks_are_arithmetics_as_memory_allows),
        COMMAND_TEST(a_command_that_never_ends_is_ended),
        COMMAND_TEST(a_target_that_hangs_leaves_its_problem_out),
        COMMAND_TEST(a_default_that_hangs_leaves_its_problem_out),
        COMMAND_TEST(a_hang_shorter_than_the_default_is_raised),
        COMMAND_TEST(the_time_is_shared),
        COMMAND_TEST(bits_are_decided_for_all_numbers_of_rows),
        COMMAND_TEST(a_later_decision_takes_the_place_of_the_first),
        COMMAND_TEST(where_what_was_decided_hangs_the_problem_is_left_out),
        COMMAND_TEST(without_all_numbers_of_rows_nothing_is_decided),
        COMMAND_TEST(verifying_tells_what_a_record_loses),
        COMMAND_TEST(the_plot_shows_how_much_faster_it_is),
        COMMAND_TEST(devices_share_the_problems),
        COMMAND_TEST(failures_have_their_exit_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
