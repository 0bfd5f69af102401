/* The command line of fusedlogp tune. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/console.h"
#include "cli/tune.h"

enum { PROBLEM = 256, MODEL, UNTUNED, PROBE, BUDGET, MEMORY, JOBS, LIMIT, DEVICES, REGIME, NUMERICS, RESUME, DRY_RUN, VERIFY, HANG, PLOT, JSON, QUIET };

static const struct argp_option table[] = {
    { 0, 0, 0, 0, "What is tuned:", 1 },
    { "problem", PROBLEM, "STR", 0, "a problem, as flp_plan_describe names it; may be given several times", 0 },
    { "model", MODEL, "CONFIG", 0, "scoring and training with the head of this config.json, or of its folder", 0 },
    { "untuned", UNTUNED, 0, 0, "what this machine's plans asked for without a record", 0 },
    { "probe", PROBE, 0, 0, "a problem of each kind, in a minute: what the model makes of others follows it", 0 },
    { 0, 0, 0, 0, "How:", 2 },
    { "budget", BUDGET, "SECONDS", 0, "time for all of them (default: as long as it takes; with --probe 60)", 0 },
    { "memory", MEMORY, "BYTES", 0, "device memory for arrays and workspace; K, M and G behind it (default: what is free)", 0 },
    { "jobs", JOBS, "N", 0, "compilations beside the timing (default: one a core but one)", 0 },
    { "limit", LIMIT, "N", 0, "candidates of each kernel, those first that the model finds fastest (default: 12; 1000 are all)", 0 },
    { "devices", DEVICES, "LIST", 0, "CUDA devices that share the problems, comma-separated (default: 0)", 0 },
    { "regime", REGIME, "NAME", 0, "sustained: runs follow each other; burst: the device idles before each (default: sustained)", 0 },
    { "numerics", NUMERICS, 0, 0, "also what changes a row's bits", 0 },
    { "resume", RESUME, 0, 0, "leave out what has a record of this machine that was not interrupted", 0 },
    { "dry-run", DRY_RUN, 0, 0, "print the candidates and time nothing", 0 },
    { "verify", VERIFY, 0, 0, "time records beside the best; exit with 1 where one loses more than 2 %", 0 },
    { "hang", HANG, "SECONDS", 0, "end a kernel that runs for so long, and never try it again (default: 30)", 0 },
    { 0, 0, 0, 0, "What is printed:", 3 },
    { "plot", PLOT, "FILE.svg", 0, "draw how much faster the tunings are", 0 },
    { "json", JSON, 0, 0, "print JSON, with every candidate", 0 },
    { "quiet", QUIET, 0, 0, "print errors only", 0 },
    { 0 }
};

static void add(struct argp_state *state, char **list, size_t *bytes, const char *text)
{
    if (argz_add(list, bytes, text) != 0)
        argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
}

static int64_t parse_bytes(struct argp_state *state, const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (end == text || end[unit != NULL] || value < 1 || value > INT64_MAX >> shift)
        argp_error(state, "--memory: got '%s', wanted a number of bytes, as 8G", text);
    return (int64_t)value << shift;
}

static void parse_devices(struct argp_state *state, flp_tune_command *command, char *text)
{
    char *rest = NULL;
    command->device_count = 0;
    for (char *word = strtok_r(text, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int device = (int)flp_console_integer(state, "devices", word, 0, 1023);
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

static void check(struct argp_state *state, const flp_tune_command *command)
{
    if (!command->problems && !command->models && !command->untuned && !command->probe)
        argp_error(state, "wanted --problem, --model, --untuned or --probe");
    if (command->verify + command->dry_run + command->resume > 1)
        argp_error(state, "--verify, --dry-run and --resume exclude each other");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    flp_tune_command *command = state->input;
    switch (key) {
    case PROBLEM:
        add(state, &command->problems, &command->problems_bytes, argument);
        break;
    case MODEL:
        add(state, &command->models, &command->models_bytes, argument);
        break;
    case UNTUNED:
        command->untuned = 1;
        break;
    case PROBE:
        command->probe = 1;
        break;
    case BUDGET:
        command->budget_seconds = flp_console_positive(state, "budget", argument);
        break;
    case MEMORY:
        command->memory_bytes = parse_bytes(state, argument);
        break;
    case JOBS:
        command->jobs = (int)flp_console_integer(state, "jobs", argument, 0, 256);
        break;
    case LIMIT:
        command->limit = (int)flp_console_integer(state, "limit", argument, 1, 1000);
        break;
    case DEVICES:
        parse_devices(state, command, argument);
        break;
    case REGIME:
        command->regime = (flp_regime)flp_console_choice(state, "regime", argument, flp_regime_names);
        break;
    case NUMERICS:
        command->numerics = 1;
        break;
    case RESUME:
        command->resume = 1;
        break;
    case DRY_RUN:
        command->dry_run = 1;
        break;
    case VERIFY:
        command->verify = 1;
        break;
    case HANG:
        command->hang_seconds = flp_console_positive(state, "hang", argument);
        break;
    case PLOT:
        command->plot = argument;
        break;
    case JSON:
        command->json = 1;
        break;
    case QUIET:
        command->quiet = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': wanted options only", argument);
        break;
    case ARGP_KEY_END:
        check(state, command);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void flp_tune_command_parse(int argc, char **argv, flp_tune_command *command)
{
    static const struct argp arguments = { table,
                                           parse,
                                           0,
                                           "Times the kernels that could answer a problem, each once it agrees with the reference, and records the fastest, "
                                           "which plans of that problem then take. Interrupted, it keeps what it has learned.",
                                           flp_console_help,
                                           0,
                                           0 };
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    memset(command, 0, sizeof *command);
    command->device_count = 1;
    command->hang_seconds = 30;
    command->jobs = cores > 2 ? (int)(cores < 65 ? cores - 1 : 64) : 1;
    argp_parse(&arguments, argc, argv, 0, NULL, command);
    if (command->probe && command->budget_seconds == 0)
        command->budget_seconds = 60;
}

void flp_tune_command_free(flp_tune_command *command)
{
    free(command->problems);
    free(command->models);
}
