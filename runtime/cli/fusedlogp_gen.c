/* The program fusedlogp-gen: its command line. */
#include <argz.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "cli/console.h"
#include "cli/gen.h"

enum { ARCH = 256, DTYPE, HIDDEN, TOKEN_LOSS, OUT, EMIT, LIST, CHECK, PROBLEM, ANY_ROWS, MODEL, PTX, JOBS, JSON, QUIET };

static const struct argp_option table[] = {
    { "arch", ARCH, "ARCH", 0, "architecture, e.g. sm_90a; may be given several times; sm_90a@host with --emit and --list: plain C++", 1 },
    { "dtype", DTYPE, "LIST", 0, "dtypes, comma-separated: bf16,f16,f32 (default: all)", 1 },
    { "d", HIDDEN, "LIST", 0, "hidden sizes, comma-separated (default: the usual ones)", 1 },
    { "problem", PROBLEM, "STR", 0, "instead of the usual problems this one, by its canonical string; may be given several times", 1 },
    { "any-rows", ANY_ROWS, 0, 0, "also what calls of fewer rows than each --problem's take", 1 },
    { "model", MODEL, "CONFIG", 0, "a model's config.json or its folder: instead of the usual problems those below; may be given several times", 1 },
    { "ptx", PTX, 0, 0, "also the portable kernels whose PTX GPUs newer than the library or than an NVRTC run: those of sm_86", 1 },
    { "token-loss", TOKEN_LOSS, "FILE.lua", 0, "also the kernels of this token loss, which the file's name names; may be given several times", 1 },
    { "out", OUT, "DIR", 0, "kernel directory (default: the user's cache)", 2 },
    { "emit", EMIT, "DIR", 0, "write sources and manifests to DIR and compile nothing", 2 },
    { "list", LIST, 0, 0, "print the variants and compile nothing", 2 },
    { "check", CHECK, 0, 0, "print the variants that programs here would not find on disk, and compile nothing", 2 },
    { "jobs", JOBS, "N", 0, "compilations at a time (default: one a core)", 3 },
    { "json", JSON, 0, 0, "print JSON", 3 },
    { "quiet", QUIET, 0, 0, "print errors only", 3 },
    { 0 }
};

/* Repeating a list option adds to its list. */
static void extend_list(struct argp_state *state, char **list, const char *more)
{
    flp_text text = { 0 };
    flp_text_append(&text, "%s%s%s", *list ? *list : "", *list ? "," : "", more);
    if (text.failed)
        argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
    free(*list);
    *list = text.data;
}

static void parse_words(struct argp_state *state, flp_gen_options *options)
{
    int count = state->argc - state->next + 1;
    char **words = state->argv + state->next - 1;
    if (count == 2 && strcmp(words[0], "cache") == 0 && strcmp(words[1], "list") == 0)
        options->action = FLP_GEN_CACHE_LIST;
    else if (count == 2 && strcmp(words[0], "cache") == 0 && strcmp(words[1], "clear") == 0)
        options->action = FLP_GEN_CACHE_CLEAR;
    else
        argp_error(state, "'%s': wanted options, 'cache list' or 'cache clear'", words[0]);
    state->next = state->argc;
}

static void choose_action(struct argp_state *state, flp_gen_options *options, flp_gen_action action)
{
    if (options->action != FLP_GEN_PREBUILD && options->action != action)
        argp_error(state, "--list, --emit and --check exclude each other");
    options->action = action;
}

static void check_problems(struct argp_state *state, const flp_gen_options *options)
{
    if (options->problems != NULL && (options->dtypes != NULL || options->hidden_sizes != NULL))
        argp_error(state, "--problem says its dtype and sizes itself; --dtype and --d are for the usual problems");
    if (options->models != NULL && options->hidden_sizes != NULL)
        argp_error(state, "--model says its hidden size itself; --d is for the usual problems");
    if (options->any_rows && options->problems == NULL)
        argp_error(state, "--any-rows is for --problem");
}

static void check_prebuild(struct argp_state *state, const flp_gen_options *options)
{
    const char *arch = NULL;
    if (options->archs == NULL)
        argp_error(state, "--arch is missing (--list shows what there is)");
    while ((arch = argz_next(options->archs, options->archs_bytes, arch)) != NULL)
        if (strstr(arch, "@host") != NULL)
            argp_error(state, "--arch %s: its kernels are C++ sources, which --emit writes; nothing is prebuilt", arch);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    flp_gen_options *options = state->input;
    switch (key) {
    case ARCH:
        if (argz_add_sep(&options->archs, &options->archs_bytes, argument, ',') != 0)
            argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
        break;
    case DTYPE:
        extend_list(state, &options->dtypes, argument);
        break;
    case HIDDEN:
        extend_list(state, &options->hidden_sizes, argument);
        break;
    case TOKEN_LOSS:
        if (argz_add(&options->token_losses, &options->token_losses_bytes, argument) != 0)
            argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
        break;
    case OUT:
        options->out = argument;
        break;
    case EMIT:
        options->emit = argument;
        choose_action(state, options, FLP_GEN_EMIT);
        break;
    case LIST:
        choose_action(state, options, FLP_GEN_LIST);
        break;
    case CHECK:
        choose_action(state, options, FLP_GEN_CHECK);
        break;
    case PROBLEM:
        if (argz_add(&options->problems, &options->problems_bytes, argument) != 0)
            argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
        break;
    case MODEL:
        if (argz_add(&options->models, &options->models_bytes, argument) != 0)
            argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
        break;
    case PTX:
        options->ptx = 1;
        break;
    case ANY_ROWS:
        options->any_rows = 1;
        break;
    case JOBS:
        options->jobs = (int)flp_console_integer(state, "jobs", argument, 1, 4096);
        break;
    case JSON:
        options->json = 1;
        break;
    case QUIET:
        options->quiet = 1;
        break;
    case ARGP_KEY_ARG:
        if (options->action != FLP_GEN_PREBUILD)
            argp_error(state, "'%s': wanted options only beside --list, --emit or --check", argument);
        parse_words(state, options);
        break;
    case ARGP_KEY_END:
        check_problems(state, options);
        if (options->action == FLP_GEN_PREBUILD || options->action == FLP_GEN_CHECK)
            check_prebuild(state, options);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp arguments = {
        table,
        parse,
        "\ncache list\ncache clear",
        "Compiles the useful kernels of an architecture into the cache, so that programs start without compiling. Needs no GPU.\v"
        "--model reads hidden size, vocabulary, dtype (--dtype goes before it) and final softcap, and means, for any number of rows up to 65536: linear_logp "
        "with lse, with argmax and with entropy; linear_logp_backward by hidden and weight, also with a gradient by entropy; linear_cross_entropy with "
        "and without these gradients; both also with a main gradient of weight that is added to in fp32. Label smoothing, token losses, bias and [D, V] are "
        "for --problem.\n\n"
        "Exit status: 0 success, 1 failure at run time, 2 usage, 3 no NVRTC or no kernel for what was asked, 4 a model's config.json is not acceptable, 5 --check: some are missing.",
        flp_console_help,
        0,
        0
    };
    static int (*const actions[])(const flp_gen_options *) = {
        [FLP_GEN_PREBUILD] = flp_gen_prebuild_run, [FLP_GEN_EMIT] = flp_gen_emit_run,         [FLP_GEN_LIST] = flp_gen_list_run,
        [FLP_GEN_CHECK] = flp_gen_check_run,       [FLP_GEN_CACHE_LIST] = flp_gen_cache_list, [FLP_GEN_CACHE_CLEAR] = flp_gen_cache_clear
    };
    flp_gen_options options = { 0 };
    flp_console_start("fusedlogp-gen");
    argp_parse(&arguments, argc, argv, 0, NULL, &options);
    int code = flp_gen_models_read(&options);
    if (code == FLP_EXIT_OK) {
        code = actions[options.action](&options);
        /* The files of models have been read, and nothing is wrong with them: what the library refuses now came from the command line. */
        if (code == FLP_EXIT_BAD_INPUT)
            code = FLP_EXIT_USAGE;
    }
    free(options.archs);
    free(options.dtypes);
    free(options.hidden_sizes);
    free(options.problems);
    free(options.models);
    free(options.model_problems);
    free(options.token_losses);
    return flp_console_finish(code);
}
