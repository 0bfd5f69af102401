/* The command line of fusedlogp tune. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/console.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/tune.h"

#define AT(field) offsetof(flp_tune_command, field)

static void read_bytes(struct argp_state *state, void *into, const flp_option *option, const char *text)
{
    flp_tune_command *command = into;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (end == text || end[unit != NULL] || value < 1 || value > INT64_MAX >> shift || errno != 0)
        argp_error(state, "--%s: got '%s', wanted a number of bytes, as 8G", option->name, text);
    command->memory_bytes = (int64_t)value << shift;
}

/* list: a string of argv, which this cuts into words in place. */
static void read_devices(struct argp_state *state, void *into, const flp_option *option, const char *list)
{
    flp_tune_command *command = into;
    char *rest = NULL;
    command->device_count = 0;
    for (char *word = strtok_r((char *)(uintptr_t)list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int device = (int)flp_console_integer(state, option->name, word, 0, 1023);
        for (int i = 0; i < command->device_count; i++)
            if (command->devices[i] == device)
                argp_error(state, "--devices: got %d twice", device);
        if (command->device_count == FLP_TUNE_MOST_DEVICES)
            argp_error(state, "--devices: wanted at most %d", FLP_TUNE_MOST_DEVICES);
        command->devices[command->device_count++] = device;
    }
    if (command->device_count == 0)
        argp_error(state, "--devices: wanted numbers, as 0,1");
}

static const flp_option table[] = {
    { .text = "What is tuned:", .group = 1 },
    { "problem", "STR", "a problem, as flp_plan_describe names it; may be given several times", FLP_OPTION_LIST, .at = AT(problems),
      .bytes_at = AT(problems_bytes) },
    { "model", "CONFIG", "scoring and training with the head of this config.json, or of its folder", FLP_OPTION_LIST, .at = AT(models),
      .bytes_at = AT(models_bytes) },
    { "untuned", NULL, "what this machine's plans asked for without a record", FLP_OPTION_FLAG, .at = AT(untuned) },
    { "probe", NULL, "a problem of each kind, in a minute: what the model makes of others follows it", FLP_OPTION_FLAG, .at = AT(probe) },
    { .text = "How:", .group = 2 },
    { "budget", "SECONDS", "time for all of them (default: as long as it takes; with --probe 60)", FLP_OPTION_POSITIVE, .at = AT(budget_seconds) },
    { "memory", "BYTES", "device memory for arrays and workspace; K, M and G behind it (default: what is free)", FLP_OPTION_OWN, .read = read_bytes },
    { "jobs", "N", "compilations beside the timing (default: one a core but one)", FLP_OPTION_INT, .at = AT(jobs), 0, 256 },
    { "limit", "N", "candidates of each kernel, of each tile one before any has two (default: 12; 1000 are all)", FLP_OPTION_INT, .at = AT(limit), 1, 1000 },
    { "devices", "LIST", "CUDA devices that share the problems, comma-separated (default: 0)", FLP_OPTION_OWN, .read = read_devices },
    { "regime", "NAME", "sustained: runs follow each other; burst: the device idles before each (default: sustained)", FLP_OPTION_CHOICE, .at = AT(regime),
      .words = flp_regime_names },
    { "numerics", NULL, "also what changes a row's bits: of all numbers of rows up to each problem's at once, and alike", FLP_OPTION_FLAG, .at = AT(numerics) },
    { "resume", NULL, "leave out what has a record of this machine that was not interrupted", FLP_OPTION_FLAG, .at = AT(resume) },
    { "dry-run", NULL, "print the candidates and time nothing", FLP_OPTION_FLAG, .at = AT(dry_run) },
    { "verify", NULL, "time records beside the best; exit with 1 where one loses more than 2 %", FLP_OPTION_FLAG, .at = AT(verify) },
    { "hang", "SECONDS",
      "end a candidate that runs for so long, and never try it again (default: 30); a compilation, the "
      "default and a problem's arrays may each take ten times as long",
      FLP_OPTION_POSITIVE, .at = AT(hang_seconds) },
    { .text = "What is printed:", .group = 3 },
    { "plot", "FILE.svg", "draw how much faster the tunings are", FLP_OPTION_TEXT, .at = AT(plot) },
    { "json", NULL, "print JSON, with every candidate", FLP_OPTION_FLAG, .at = AT(json) },
    { "quiet", NULL, "print errors only", FLP_OPTION_FLAG, .at = AT(quiet) },
    { 0 }
};

static void finish(struct argp_state *state, void *options)
{
    flp_tune_command *command = options;
    if (!command->problems && !command->models && !command->untuned && !command->probe)
        argp_error(state, "wanted --problem, --model, --untuned or --probe");
    if (command->verify + command->dry_run + command->resume > 1)
        argp_error(state, "--verify, --dry-run and --resume exclude each other");
    if (command->plot && (command->verify || command->dry_run))
        argp_error(state, "--plot is of a tuning: --verify and --dry-run exclude it");
    if (command->plot && command->json && flp_output_file_is_standard_output(command->plot))
        argp_error(state, "--plot: got '%s' with --json, wanted a file other than standard output, where the JSON goes", command->plot);
    if (command->verify && command->numerics)
        argp_error(state, "--verify and --numerics exclude each other");
    if (command->probe && command->budget_seconds == 0)
        command->budget_seconds = 60;
}

void flp_tune_command_parse(int argc, char **argv, flp_tune_command *command)
{
    static const flp_command_line line = { table, NULL,
                                           "Times the kernels that could answer a problem, each once it agrees with the reference, and records the fastest, "
                                           "which plans of that problem then take. Interrupted, it keeps what it has learned.",
                                           NULL, finish };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    memset(command, 0, sizeof *command);
    command->device_count = 1;
    command->hang_seconds = 30;
    command->jobs = cores > 2 ? (int)(cores < 65 ? cores - 1 : 64) : 1;
    flp_options_parse(&line, argc, argv, command);
}

void flp_tune_command_free(flp_tune_command *command)
{
    free(command->problems);
    free(command->models);
}
