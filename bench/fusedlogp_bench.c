/* The benchmark's command line: operators beside their baselines, what starting costs, and the plot. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backward.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/console.h"
#include "cross_entropy.h"
#include "forward.h"
#include "logits.h"
#include "peaked_inputs.h"
#include "report.h"
#include "scale.h"
#include "start.h"
#include "weighted_sum.h"

enum { CASES = 256, REPEATS, REGIME, IDLE, WARM_UP, SOLO, BACKEND, LIST, JSON, SVG, COMMIT, NO_START };
enum { MOST_CASES = 64 };

typedef enum { RUN, JIT, DISPATCH, PLOT } command;

typedef struct {
    command command;
    char *case_list; /* the memory of cases, where they were named */
    const char *cases[MOST_CASES];
    int case_count, list, no_start;
    flp_forward_options forward;
    const char *json, *svg, *commit, *plot_from, *plot_to;
} bench_options;

/* The problem whose start is measured. */
static const char start_problem[] = "linear_logp:bf16:n4096:d2048:v131072";

static const struct argp_option table[] = { { "cases", CASES, "LIST", 0,
                                              "problems, comma-separated, linear_logp:bf16: where no operator stands before (default: --list)", 1 },
                                            { "regime", REGIME, "NAME", 0, "burst, sustained, both (default), solo or all", 1 },
                                            { "repeats", REPEATS, "N", 0, "pairs of each case and regime (default: 40)", 1 },
                                            { "idle-ms", IDLE, "N", 0, "burst: idle time before each operation (default: 30)", 1 },
                                            { "warm-up-ms", WARM_UP, "N", 0, "sustained: pairs before the first timed one (default: 1500)", 1 },
                                            { "solo-ms", SOLO, "N", 0, "solo: how long each operation runs alone (default: 1000)", 1 },
                                            { "backend", BACKEND, "NAME", 0, "auto (default), sm_90a or portable", 1 },
                                            { "no-start", NO_START, 0, 0, "leave out cold and warm starts and the dispatch", 1 },
                                            { "list", LIST, 0, 0, "print the cases and measure nothing", 2 },
                                            { "json", JSON, "FILE", 0, "results (default: bench/results/DATE-DEVICE.json)", 2 },
                                            { "svg", SVG, "FILE", 0, "plot the ratios too", 2 },
                                            { "commit", COMMIT, "TEXT", 0, "recorded in the results", 2 },
                                            { 0 } };

/* Parses a copy: the command line goes into the results as it is. */
static void parse_cases(struct argp_state *state, bench_options *options, const char *list)
{
    char *rest = NULL;

    free(options->case_list);
    options->case_count = 0;
    options->case_list = flp_text_duplicate(list);
    if (!options->case_list)
        argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
    for (char *name = strtok_r(options->case_list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (options->case_count == MOST_CASES)
            argp_error(state, "--cases: more than %d", MOST_CASES);
        options->cases[options->case_count++] = name;
    }
}

static void parse_words(struct argp_state *state, bench_options *options)
{
    char **words = state->argv + state->next - 1;
    int count = state->argc - state->next + 1;

    if (count == 1 && strcmp(words[0], "jit") == 0) {
        options->command = JIT;
    } else if (count == 1 && strcmp(words[0], "dispatch") == 0) {
        options->command = DISPATCH;
    } else if (count == 3 && strcmp(words[0], "plot") == 0) {
        options->command = PLOT;
        options->plot_from = words[1];
        options->plot_to = words[2];
    } else {
        argp_error(state, "'%s': wanted options, 'jit', 'dispatch' or 'plot RESULTS.json OUT.svg'", words[0]);
    }
    state->next = state->argc;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    static const char *const regimes[] = { "burst", "sustained", "both", "solo", "all", NULL }, *const backends[] = { "auto", "sm_90a", "portable", NULL };
    static const unsigned regime_sets[] = { 1 << FLP_BURST, 1 << FLP_SUSTAINED, 1 << FLP_BURST | 1 << FLP_SUSTAINED, 1 << FLP_SOLO, (1 << FLP_REGIMES) - 1 };
    bench_options *options = state->input;

    switch (key) {
    case CASES:
        parse_cases(state, options, argument);
        break;
    case REGIME:
        options->forward.regimes = regime_sets[flp_console_choice(state, "regime", argument, regimes)];
        break;
    case REPEATS:
        options->forward.measure.repeats = (int)flp_console_integer(state, "repeats", argument, 1, 400);
        break;
    case IDLE:
        options->forward.measure.idle_ms = (double)flp_console_integer(state, "idle-ms", argument, 0, 1000);
        break;
    case WARM_UP:
        options->forward.measure.warm_up_ms = (double)flp_console_integer(state, "warm-up-ms", argument, 0, 60000);
        break;
    case SOLO:
        options->forward.measure.solo_ms = (double)flp_console_integer(state, "solo-ms", argument, 100, 60000);
        break;
    case BACKEND:
        options->forward.backend = (flp_backend)flp_console_choice(state, "backend", argument, backends);
        break;
    case NO_START:
        options->no_start = 1;
        break;
    case LIST:
        options->list = 1;
        break;
    case JSON:
        options->json = argument;
        break;
    case SVG:
        options->svg = argument;
        break;
    case COMMIT:
        options->commit = argument;
        break;
    case ARGP_KEY_ARG:
        parse_words(state, options);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* *result: an object, or an array with an object for each baseline. */
static flp_status run_case(flp_gpu *gpu, const char *text, const flp_forward_options *options, json_t **result)
{
    if (flp_backward_is_case(text))
        return flp_backward_run(gpu, text, options, result);
    if (flp_cross_entropy_is_bench_case(text))
        return flp_cross_entropy_bench_run(gpu, text, options, result);
    if (flp_logits_is_case(text))
        return flp_logits_run(gpu, text, options, result);
    if (flp_scale_is_case(text))
        return flp_scale_run(gpu, text, options, result);
    if (flp_weighted_sum_is_case(text))
        return flp_weighted_sum_run(gpu, text, options, result);
    return flp_forward_run(gpu, text, options, result);
}

static flp_status check_case(const char *text)
{
    flp_linear_logp_backward_problem backward;
    flp_linear_logp_problem forward;
    flp_temperature temperature;

    if (flp_backward_is_case(text))
        return flp_backward_parse(text, &backward, &temperature);
    if (flp_cross_entropy_is_bench_case(text))
        return flp_cross_entropy_bench_check_case(text);
    if (flp_logits_is_case(text))
        return flp_logits_check_case(text);
    if (flp_scale_is_case(text))
        return flp_scale_check_case(text);
    if (flp_weighted_sum_is_case(text))
        return flp_weighted_sum_check_case(text);
    return flp_forward_parse(text, &forward, &temperature);
}

/* Names each case that is none, before anything is measured. Returns an exit code. */
static int check_cases(const bench_options *options)
{
    int code = FLP_EXIT_OK;

    for (int i = 0; i < options->case_count; i++)
        if (check_case(options->cases[i]) != FLP_OK) {
            flp_console_error("%s: %s", options->cases[i], flp_error_message());
            code = FLP_EXIT_USAGE;
        }
    return code;
}

static void take_result(json_t *cases, json_t *result)
{
    json_t *part;
    size_t i;

    if (json_is_array(result)) {
        json_array_foreach (result, i, part)
            take_result(cases, json_incref(part));
        json_decref(result);
        return;
    }
    flp_report_print_case(result, json_array_size(cases) == 0);
    json_array_append_new(cases, result);
}

/* Measures the cases; one that fails does not stop the others. Returns an exit code. */
static int run_cases(flp_gpu *gpu, const bench_options *options, json_t *report)
{
    int code = FLP_EXIT_OK;

    for (int i = 0; i < options->case_count; i++) {
        json_t *result = NULL;
        flp_status status = run_case(gpu, options->cases[i], &options->forward, &result);
        if (status != FLP_OK) {
            flp_console_error("%s: %s", options->cases[i], flp_error_message());
            code = FLP_EXIT_FAILED;
            continue;
        }
        take_result(json_object_get(report, "cases"), result);
    }
    return code;
}

/* gpu: NULL without one. */
static flp_status run_dispatch(flp_gpu *gpu, json_t *report)
{
    json_t *result = NULL;
    flp_status status = flp_start_measure_dispatch(gpu, &result);

    if (status != FLP_OK)
        return status;
    flp_report_print_statistics("finding a known problem and calling it, nanoseconds", result);
    json_object_set_new(report, "dispatch", result);
    return FLP_OK;
}

static flp_status run_starts(flp_gpu *gpu, json_t *report)
{
    json_t *result = NULL;
    flp_status status = flp_start_measure_kernel(start_problem, gpu ? gpu->facts.compute_capability : 90, &result);

    if (status == FLP_OK) {
        flp_report_print_statistics("one tile kernel, milliseconds (cold: compiled; warm: from the disk)", result);
        json_object_set_new(report, "start_kernel", result);
    }
    if (status == FLP_OK && gpu)
        status = flp_start_measure_plan(start_problem, &result);
    if (status == FLP_OK && gpu) {
        flp_report_print_statistics("a plan, milliseconds (cold: compiled; warm: from the disk; known: to the context)", result);
        json_object_set_new(report, "start_plan", result);
    }
    return status == FLP_OK ? run_dispatch(gpu, report) : status;
}

static flp_status finish_report(const bench_options *options, json_t *report)
{
    flp_status status = flp_report_write(report, options->json);

    return status == FLP_OK && options->svg ? flp_report_plot(report, options->svg) : status;
}

static int run(const bench_options *options, int argc, char **argv)
{
    flp_gpu gpu;
    flp_status status = flp_gpu_open(&gpu);
    int code = FLP_EXIT_OK;
    json_t *report;

    if (status != FLP_OK)
        return flp_console_fail(status);
    report = flp_report_create(&gpu, options->commit, argc, argv);
    printf("%s, driver %d.%d\n", gpu.facts.name, gpu.driver->version / 1000, gpu.driver->version % 1000 / 10);
    /* First, because the cases load NVRTC and make plans. */
    if (!options->no_start && (status = run_starts(&gpu, report)) != FLP_OK)
        code = flp_console_fail(status);
    if (run_cases(&gpu, options, report) != FLP_EXIT_OK)
        code = FLP_EXIT_FAILED;
    status = finish_report(options, report);
    json_decref(report);
    flp_gpu_close(&gpu);
    return status == FLP_OK ? code : flp_console_fail(status);
}

/* Measures only starting where gpu is NULL, else only finding and calling a known problem. */
static flp_status run_host(flp_gpu *gpu, const bench_options *options, int argc, char **argv)
{
    json_t *report = flp_report_create(gpu, options->commit, argc, argv);
    flp_status status = gpu ? run_dispatch(gpu, report) : run_starts(NULL, report);

    if (status == FLP_OK && options->json)
        status = flp_report_write(report, options->json);
    json_decref(report);
    return status;
}

static flp_status run_on_gpu(const bench_options *options, int argc, char **argv)
{
    flp_gpu gpu;
    flp_status status = flp_gpu_open(&gpu);

    if (status != FLP_OK)
        return status;
    status = run_host(&gpu, options, argc, argv);
    flp_gpu_close(&gpu);
    return status;
}

static flp_status run_plot(const bench_options *options)
{
    json_error_t error;
    json_t *report = json_load_file(options->plot_from, 0, &error);
    flp_status status;

    if (!report)
        return flp_status_fail(FLP_IO_FAILED, "%s: %s", options->plot_from, error.text);
    status = flp_report_plot(report, options->plot_to);
    json_decref(report);
    return status;
}

static void take_default_cases(bench_options *options)
{
    const char *const *const lists[] = { flp_forward_cases, flp_backward_cases,     flp_cross_entropy_bench_cases,
                                         flp_logits_cases,  flp_weighted_sum_cases, flp_scale_cases };

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        for (const char *const *name = lists[i]; *name; name++)
            options->cases[options->case_count++] = *name;
}

static int list_cases(const bench_options *options)
{
    for (int i = 0; i < options->case_count; i++)
        puts(options->cases[i]);
    return FLP_EXIT_OK;
}

static int run_command(bench_options *options, int argc, char **argv)
{
    flp_status status;

    if (options->case_count == 0)
        take_default_cases(options);
    if (options->list)
        return list_cases(options);
    if (options->command == RUN)
        return check_cases(options) == FLP_EXIT_OK ? run(options, argc, argv) : FLP_EXIT_USAGE;
    status = options->command == JIT ? run_host(NULL, options, argc, argv) : options->command == DISPATCH ? run_on_gpu(options, argc, argv) : run_plot(options);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

int main(int argc, char **argv)
{
    static const struct argp arguments = {
        table,
        parse,
        "\njit\ndispatch\nplot RESULTS.json OUT.svg",
        "Measures each operator beside its baselines in interleaved pairs, linear_logp and its backward beside cuBLAS's bare products (N <= 64: one "
        "read of the weight; fp32: three cuBLAS products in tf32; --backend portable: a bare mma.sync product with the forward's tile), the others "
        "beside reading, writing or copying the same bytes, and what starting costs. jit: the part of starting that needs no GPU. "
        "dispatch: finding and calling a known problem.\v"
        "burst: the device idles before each operation, which then runs once untimed and once timed. sustained: back to back. solo: each operation "
        "alone, back to back, with its joules by NVML's energy counter beside its time.\n"
        "Inputs are random: logits of deviation 2. A problem of linear_logp_backward with a gradient filter (filterEPS) has inputs as a trained "
        "model's instead, " FLP_PEAKED_INPUTS_NAME "; upstream gradients are N(0, 1 / N^2). The results then say how many blocks were kept, and "
        "beside the errors what the filter may make of them. Rates count all products.\n"
        "Behind a linear problem '" FLP_TEMPERATURE "NUMBER' is the temperature of all rows, and '" FLP_ROW_TEMPERATURE "' gives each row one of its "
        "own, 0.5 to 1.5.\n"
        "A problem of scale is measured with a factor of -1 or, with '" FLP_SCALE_ONE "' behind it, of 1, which leaves its array alone.",
        0,
        0,
        0
    };
    bench_options options = { .forward = { .measure = { .repeats = 40, .idle_ms = 30, .warm_up_ms = 1500, .solo_ms = 1000 }, .regimes = 3 } };
    int code;

    /* Where there is a driver, NVRTC keeps what it compiled in the driver's cache; a later start would then not be a cold one. */
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    flp_console_start("fusedlogp_bench");
    argp_parse(&arguments, argc, argv, 0, NULL, &options);
    setvbuf(stdout, NULL, _IOLBF, 0);
    code = run_command(&options, argc, argv);
    free(options.case_list);
    return flp_console_finish(code);
}
