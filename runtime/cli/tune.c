/* fusedlogp tune: distributes the problems over the devices, and reports the results. */
#include "cli/commands.h"
#include "base/clock.h"
#include "cli/tune.h"
#include <argz.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/status.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/model_config.h"
#include "cli/output_file.h"
#include "core/calibration.h"
#include "core/tune_run.h"

static volatile sig_atomic_t interrupted;

/* The second signal ends the program, because SA_RESETHAND removes this handler. */
static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

typedef struct {
    const flp_tune_command *command;
    flp_records *records;
    flp_tune_list list;
    double begun;
    flp_tune_slot *slots;  /* one per device; slots, code and done are shared with the watching process and with later child processes */
    int *code;             /* exit code of the first failure */
    char *done;            /* [list.count]: 1: no process is to tune the problem any more */
    FILE *answers;         /* the problems' results as JSON, a line each; shared with the same processes */
    pthread_mutex_t mutex; /* guards what follows, and code, done and answers among this process's threads */
    char *taken;           /* [list.count]: 1: a device of this process has taken the problem, or it was done before this process began */
    char *fits;            /* [list.count]: 1: a device of this process has the problem's architecture */
    json_t *results;
} queue;

typedef struct {
    queue *queue;
    int ordinal;
    flp_tune_slot *slot;
    pthread_t handle;
    int started;
} worker;

static void fail(queue *q, int code)
{
    pthread_mutex_lock(&q->mutex);
    *q->code = *q->code == FLP_EXIT_OK ? code : *q->code;
    pthread_mutex_unlock(&q->mutex);
}

/* 1 where a problem was requested on an architecture that this device does not have: sm_90 and sm_90a are both of compute capability 9.0. */
static int is_of_another(const flp_tune_bench *bench, const flp_tune_item *item)
{
    char arch[16];
    int length = snprintf(arch, sizeof arch, "sm_%d", bench->device.facts.compute_capability);
    return item->arch && (strncmp(item->arch, arch, (size_t)length) != 0 || (item->arch[length] >= '0' && item->arch[length] <= '9'));
}

/* The next problem of this device's architecture and its share of the time; NULL: there is none, or no time. The share is the time that is left, over the
 * problems that are left for each device. */
static const flp_tune_item *take(queue *q, const flp_tune_bench *bench, double *budget_seconds)
{
    const double budget = q->command->budget_seconds, left = budget - (flp_clock_seconds() - q->begun);
    size_t next = q->list.count, waiting = 0;
    pthread_mutex_lock(&q->mutex);
    for (size_t i = q->list.count; i-- > 0;) {
        const int fits = !is_of_another(bench, &q->list.items[i]);
        q->fits[i] |= fits;
        waiting += !q->taken[i];
        if (fits && !q->taken[i])
            next = i;
    }
    if (interrupted || (budget > 0 && left <= 0))
        next = q->list.count;
    if (next < q->list.count) {
        const double devices = fmin(q->command->device_count, (double)waiting);
        *budget_seconds = budget > 0 ? left * devices / (double)waiting : 0;
        q->taken[next] = 1;
    }
    pthread_mutex_unlock(&q->mutex);
    return next < q->list.count ? &q->list.items[next] : NULL;
}

static void tell(queue *q, flp_tune_outcome *outcome)
{
    pthread_mutex_lock(&q->mutex);
    if (*outcome->text && !q->command->quiet && !q->command->json)
        puts(outcome->text);
    else if (outcome->failed)
        flp_console_error("%s", outcome->text);
    fflush(stdout);
    if (outcome->json && (json_dumpf(outcome->json, q->answers, JSON_COMPACT) != 0 || fputc('\n', q->answers) == EOF || fflush(q->answers) != 0))
        flp_console_error("warning: an answer is not kept: %m");
    if (outcome->json)
        json_array_append_new(q->results, outcome->json);
    pthread_mutex_unlock(&q->mutex);
    if (outcome->failed)
        fail(q, FLP_EXIT_FAILED);
}

static void tune_problems(queue *q, const flp_tune_bench *bench)
{
    const flp_tune_item *item;
    double budget_seconds = 0;
    while ((item = take(q, bench, &budget_seconds)) != NULL) {
        flp_tune_outcome outcome;
        bench->slot->done = &q->done[item - q->list.items];
        bench->slot->code = q->code;
        flp_status status = flp_tune_problem(bench, item, budget_seconds, &outcome);
        if (status == FLP_OK && !outcome.json && *outcome.text)
            outcome.json = json_pack("{s:s, s:s}", "problem", item->text, "reason", outcome.text);
        if (status == FLP_OK)
            tell(q, &outcome);
        else
            fail(q, flp_console_fail(status));
        q->done[item - q->list.items] = 1;
    }
}

/* Calibrates the performance model with what was timed on this device, and publishes that as a record. */
static void calibrate(queue *q, const flp_tune_bench *bench)
{
    flp_tune_outcome outcome = { .json = NULL };
    flp_record record;
    flp_status status = bench->samples->failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "calibration: no memory") : FLP_OK;
    if (!bench->samples->length)
        return;
    if (status == FLP_OK)
        status = flp_calibration_make(bench->context, &bench->device, bench->samples->data, *bench->sampled_seconds, &record);
    if (status == FLP_OK)
        status = flp_records_publish(q->records, &record);
    if (status != FLP_OK) {
        flp_console_error("warning: the model is not calibrated: %s", flp_error_message());
        return;
    }
    snprintf(outcome.text, sizeof outcome.text, "model: %s; off by a factor of %.3f, before %.3f; %lld time%s", record.tuning, record.ratio, record.ratio_high,
             (long long)record.rounds, flp_text_plural(record.rounds));
    tell(q, &outcome);
}

static flp_status open_device(const flp_driver *driver, flp_tune_bench *bench, CUdevice *device)
{
    CUcontext context;
    int count = 0;
    flp_status status = flp_driver_check(driver, driver->device_count(&count), "cuDeviceGetCount");
    if (status == FLP_OK && bench->ordinal >= count)
        status = flp_status_fail(FLP_NO_DRIVER, "--devices: got %d, and the driver shows %d device%s", bench->ordinal, count, flp_text_plural(count));
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->device_get(device, bench->ordinal), "cuDeviceGet");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->primary_retain(&context, *device), "cuDevicePrimaryCtxRetain");
    if (status != FLP_OK)
        return status;
    status = flp_driver_check(driver, driver->context_set_current(context), "cuCtxSetCurrent");
    if (status == FLP_OK)
        status = flp_device_current(&bench->device);
    if (status == FLP_OK)
        status = flp_context_create(NULL, &bench->context);
    if (status != FLP_OK) {
        driver->primary_release(*device);
        return status;
    }
    flp_environment_describe(&bench->device, &bench->environment);
    if (flp_nvml_find(bench->device.device, &bench->clock) != FLP_OK)
        flp_console_error("warning: device %d: its clock is not known, so that throttled rounds count: %s", bench->ordinal, flp_error_message());
    return FLP_OK;
}

static void *work(void *argument)
{
    const worker *w = argument;
    queue *q = w->queue;
    flp_text samples = { 0 };
    double sampled_seconds = 0;
    flp_tune_bench bench = { .command = q->command,
                             .records = q->records,
                             .interrupted = &interrupted,
                             .ordinal = w->ordinal,
                             .samples = &samples,
                             .sampled_seconds = &sampled_seconds,
                             .slot = w->slot };
    const flp_driver *driver;
    CUdevice device = 0;
    flp_status status = flp_driver_get(&driver);
    if (status == FLP_OK)
        status = open_device(driver, &bench, &device);
    if (status != FLP_OK) {
        fail(q, flp_console_fail(status));
        return NULL;
    }
    tune_problems(q, &bench);
    if (q->command->probe)
        calibrate(q, &bench);
    flp_text_free(&samples);
    flp_context_destroy(bench.context);
    driver->context_set_current(NULL);
    driver->primary_release(device);
    return NULL;
}

/* The first device's problems are tuned in this thread. */
static void run_workers(queue *q)
{
    worker workers[FLP_TUNE_MOST_DEVICES];
    for (int i = 0; i < q->command->device_count; i++) {
        workers[i] = (worker){ .queue = q, .ordinal = q->command->devices[i], .slot = &q->slots[i] };
        workers[i].started = i > 0 && pthread_create(&workers[i].handle, NULL, work, &workers[i]) == 0;
    }
    work(&workers[0]);
    for (int i = 1; i < q->command->device_count; i++)
        if (workers[i].started)
            pthread_join(workers[i].handle, NULL);
}

/* What nobody took. */
static void report_left(const queue *q)
{
    size_t late = 0, elsewhere = 0;
    for (size_t i = 0; i < q->list.count; i++) {
        late += !q->taken[i] && q->fits[i];
        elsewhere += !q->taken[i] && !q->fits[i];
    }
    if (late)
        flp_console_error("the time was over before %zu of %zu problem%s", late, q->list.count, flp_text_plural(q->list.count));
    if (elsewhere && !q->command->quiet)
        flp_console_error("%zu of %zu problem%s left: of an architecture that no device here has", elsewhere, q->list.count, flp_text_plural(q->list.count));
}

static void report(queue *q)
{
    if (interrupted) {
        flp_console_error("interrupted: what was learned is kept");
        fail(q, FLP_EXIT_FAILED);
    } else if (*q->code == FLP_EXIT_OK) {
        report_left(q);
    }
    if (q->command->plot && json_array_size(q->results)) {
        flp_status status = flp_tune_report_plot(q->results, q->command->plot);
        if (status != FLP_OK)
            fail(q, flp_console_fail(status));
    }
    if (q->command->json) {
        int code = flp_console_print_json(json_pack("{s:O}", "results", q->results));
        if (code != FLP_EXIT_OK)
            fail(q, code);
    }
}

/* Reads the results of the child processes before this one. */
static void read_answers(queue *q)
{
    json_t *answer;
    rewind(q->answers);
    while ((answer = json_loadf(q->answers, JSON_DISABLE_EOF_CHECK, NULL)) != NULL)
        json_array_append_new(q->results, answer);
    fseek(q->answers, 0, SEEK_END);
}

/* 1, after saying so, where a tool in this process distorts times. Called before anything is timed. The driver is loaded first because some tools are loaded
 * with it; where it cannot be loaded, the devices' threads say so. */
static int is_distorted(queue *q)
{
    const flp_driver *driver;
    if (q->command->dry_run || flp_driver_get(&driver) != FLP_OK || flp_tune_check_tool() == FLP_OK)
        return 0;
    flp_console_error("%s", flp_error_message());
    fail(q, FLP_EXIT_FAILED);
    return 1;
}

/* The work of the child process that flp_tune_watch starts. */
static int run(void *data)
{
    const struct sigaction on_interrupt = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    queue *q = data;
    sigaction(SIGINT, &on_interrupt, NULL);
    sigaction(SIGTERM, &on_interrupt, NULL);
    read_answers(q);
    memcpy(q->taken, q->done, q->list.count);
    if (!is_distorted(q))
        run_workers(q);
    report(q);
    return *q->code;
}

static flp_status share(queue *q)
{
    q->slots = flp_tune_watch_memory((size_t)q->command->device_count * sizeof *q->slots);
    q->code = flp_tune_watch_memory(sizeof *q->code);
    q->done = flp_tune_watch_memory(q->list.count + 1);
    q->taken = calloc(q->list.count + 1, 1);
    q->fits = calloc(q->list.count + 1, 1);
    q->answers = tmpfile();
    return q->slots && q->code && q->done && q->taken && q->fits && q->answers ? FLP_OK
                                                                               : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory that processes share: %m");
}

/* Before anything is timed: a plot that could not be written is told in time. */
static flp_status check_plot(const flp_tune_command *command)
{
    flp_output_file file;
    flp_status status = command->plot ? flp_output_file_find(command->plot, &file) : FLP_OK;
    if (status != FLP_OK)
        return flp_status_prefix(status, "--plot");
    for (const char *path = NULL; command->plot && file.kind != FLP_OUTPUT_NEW && (path = argz_next(command->models, command->models_bytes, path)) != NULL;)
        if (flp_model_head_reads(path, &file.facts))
            return flp_status_fail(FLP_BAD_ARGUMENT, "--plot: %s is a file of --model, %s", command->plot, path);
    return FLP_OK;
}

static int report_nothing(const flp_tune_command *command)
{
    if (!command->quiet)
        flp_console_error("there is nothing to tune: no plan of this machine asked for a problem without a record");
    return command->json ? flp_console_print_json(json_pack("{s:[]}", "results")) : FLP_EXIT_OK;
}

int flp_tune_main(int argc, char **argv)
{
    flp_tune_command command;
    queue q = { .command = &command, .results = json_array(), .begun = flp_clock_seconds() };
    int code = FLP_EXIT_OK;
    flp_tune_command_parse(argc, argv, &command);
    pthread_mutex_init(&q.mutex, NULL);
    flp_status status = check_plot(&command);
    const int is_misnamed = status == FLP_BAD_ARGUMENT;
    if (status == FLP_OK)
        status = flp_records_create(&(flp_records_options){ 0 }, &q.records);
    if (status == FLP_OK)
        code = flp_tune_list_collect(&command, flp_records_directory(q.records), &q.list);
    if (status == FLP_OK && code == FLP_EXIT_OK)
        status = share(&q);
    if (status != FLP_OK) {
        code = flp_console_fail(status);
        if (is_misnamed)
            code = FLP_EXIT_USAGE;
    } else if (code == FLP_EXIT_OK && q.list.count)
        code = flp_tune_watch(q.slots, command.device_count, flp_records_directory(q.records), run, &q);
    else if (code == FLP_EXIT_OK)
        code = report_nothing(&command);
    if (q.answers)
        fclose(q.answers);
    free(q.taken);
    free(q.fits);
    flp_tune_list_free(&q.list);
    flp_records_destroy(q.records);
    json_decref(q.results);
    pthread_mutex_destroy(&q.mutex);
    flp_tune_command_free(&command);
    return code;
}
