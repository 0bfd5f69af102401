/* The program fusedlogp-gen: its command line. */
#include <argz.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "cli/console.h"
#include "cli/gen.h"
#include "cli/options.h"
#include "cpu/thread_pool.h"

#define AT(field) offsetof(flp_gen_options, field)

static void read_archs(struct argp_state *state, void *into, const flp_option *option, const char *text)
{
    flp_gen_options *options = into;
    (void)option;
    if (argz_add_sep(&options->archs, &options->archs_bytes, text, ',') != 0)
        argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
}

/* Repeating a list option adds to its list. */
static void extend_list(struct argp_state *state, void *into, const flp_option *option, const char *more)
{
    char **list = (void *)((char *)into + option->at);
    flp_text text = { 0 };
    flp_text_append(&text, "%s%s%s", *list ? *list : "", *list ? "," : "", more);
    if (text.failed)
        argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
    free(*list);
    *list = text.data;
}

/* Reads --emit, --list and --check; option->least is the action. */
static void choose_action(struct argp_state *state, void *into, const flp_option *option, const char *argument)
{
    flp_gen_options *options = into;
    if (options->action != FLP_GEN_PREBUILD && (int64_t)options->action != option->least)
        argp_error(state, "--list, --emit and --check exclude each other");
    options->action = (flp_gen_action)option->least;
    if (options->action == FLP_GEN_EMIT)
        options->emit = argument;
}

/* The actions that are of kernels, chosen by these options. */
#define KERNELS (FLP_OPTION_OF(FLP_GEN_PREBUILD) | FLP_OPTION_OF(FLP_GEN_EMIT) | FLP_OPTION_OF(FLP_GEN_LIST) | FLP_OPTION_OF(FLP_GEN_CHECK))

static const flp_option table[] = {
    { "arch", "ARCH", "architecture, e.g. sm_90a; may be given several times; sm_90a@host with --emit and --list: plain C++", FLP_OPTION_OWN,
      .read = read_archs, .group = 1, .actions = KERNELS },
    { "dtype", "LIST", "dtypes, comma-separated: bf16,f16,f32 (default: all)", FLP_OPTION_OWN, .at = AT(dtypes), .read = extend_list, .group = 1,
      .actions = KERNELS },
    { "d", "LIST", "hidden sizes, comma-separated (default: the usual ones)", FLP_OPTION_OWN, .at = AT(hidden_sizes), .read = extend_list, .group = 1,
      .actions = KERNELS },
    { "problem", "STR", "instead of the usual problems this one, by its canonical string; may be given several times", FLP_OPTION_LIST, .at = AT(problems),
      .bytes_at = AT(problems_bytes), .group = 1, .actions = KERNELS },
    { "any-rows", NULL, "also what calls of fewer rows than each --problem's take", FLP_OPTION_FLAG, .at = AT(any_rows), .group = 1, .actions = KERNELS },
    { "model", "CONFIG", "a model's config.json or its folder: instead of the usual problems those below; may be given several times", FLP_OPTION_LIST,
      .at = AT(models), .bytes_at = AT(models_bytes), .group = 1, .actions = KERNELS },
    { "numerics", NULL, "also what records decide on a row's bits, for programs that follow them (FLP_CONTEXT_TUNED_BITS)", FLP_OPTION_FLAG, .at = AT(numerics),
      .group = 1, .actions = KERNELS },
    { "ptx", NULL, "also the portable kernels whose PTX GPUs newer than the library or than an NVRTC run: those of sm_86", FLP_OPTION_FLAG, .at = AT(ptx),
      .group = 1, .actions = KERNELS },
    { "token-loss", "FILE.lua", "also the kernels of this token loss, which the file's name names; may be given several times", FLP_OPTION_LIST,
      .at = AT(token_losses), .bytes_at = AT(token_losses_bytes), .group = 1, .actions = KERNELS },
    { "out", "DIR", "kernel directory (default: the user's cache)", FLP_OPTION_TEXT, .at = AT(out), .group = 2,
      .actions = ~(FLP_OPTION_OF(FLP_GEN_EMIT) | FLP_OPTION_OF(FLP_GEN_LIST)) },
    { "emit", "DIR", "write sources and manifests to DIR and compile nothing", FLP_OPTION_OWN, .least = FLP_GEN_EMIT, .read = choose_action, .group = 2 },
    { "list", NULL, "print the variants and compile nothing", FLP_OPTION_OWN, .least = FLP_GEN_LIST, .read = choose_action, .group = 2 },
    { "check", NULL, "print the variants that programs here would not find on disk, and compile nothing", FLP_OPTION_OWN, .least = FLP_GEN_CHECK,
      .read = choose_action, .group = 2 },
    { "jobs", "N", "compilations at a time (default: one a core)", FLP_OPTION_INT, .at = AT(jobs), 1, FLP_THREAD_POOL_MOST, .group = 3,
      .actions = FLP_OPTION_OF(FLP_GEN_PREBUILD) },
    { "json", NULL, "print JSON", FLP_OPTION_FLAG, .at = AT(json), .group = 3 },
    { "quiet", NULL, "print errors only", FLP_OPTION_FLAG, .at = AT(quiet), .group = 3 },
    { 0 }
};

static void parse_words(struct argp_state *state, void *into, char *word)
{
    flp_gen_options *options = into;
    int count = state->argc - state->next + 1;
    char **words = state->argv + state->next - 1;
    if (options->action != FLP_GEN_PREBUILD)
        argp_error(state, "'%s': wanted options only beside --list, --emit or --check", word);
    if (count == 2 && strcmp(words[0], "cache") == 0 && strcmp(words[1], "list") == 0)
        options->action = FLP_GEN_CACHE_LIST;
    else if (count == 2 && strcmp(words[0], "cache") == 0 && strcmp(words[1], "clear") == 0)
        options->action = FLP_GEN_CACHE_CLEAR;
    else
        argp_error(state, "'%s': wanted options, 'cache list' or 'cache clear'", words[0]);
    state->next = state->argc;
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

static const char *name_action(int action)
{
    static const char *const names[] = { [FLP_GEN_PREBUILD] = "a prebuild", [FLP_GEN_EMIT] = "--emit",           [FLP_GEN_LIST] = "--list",
                                         [FLP_GEN_CHECK] = "--check",       [FLP_GEN_CACHE_LIST] = "cache list", [FLP_GEN_CACHE_CLEAR] = "cache clear" };
    return (size_t)action < sizeof names / sizeof names[0] ? names[action] : NULL;
}

static void finish(struct argp_state *state, void *into)
{
    const flp_gen_options *options = into;
    if (options->problems != NULL && (options->dtypes != NULL || options->hidden_sizes != NULL))
        argp_error(state, "--problem says its dtype and sizes itself; --dtype and --d are for the usual problems");
    if (options->models != NULL && options->hidden_sizes != NULL)
        argp_error(state, "--model says its hidden size itself; --d is for the usual problems");
    if (options->any_rows && options->problems == NULL)
        argp_error(state, "--any-rows is for --problem");
    if (options->numerics && !flp_gen_has_problems(options))
        argp_error(state, "--numerics is for --problem and --model");
    flp_options_check_action(state, (int)options->action, name_action);
    if (options->action == FLP_GEN_PREBUILD || options->action == FLP_GEN_CHECK)
        check_prebuild(state, options);
}

int main(int argc, char **argv)
{
    static const flp_command_line line = {
        table, "\ncache list\ncache clear",
        "Compiles the useful kernels of an architecture into the cache, so that programs start without compiling. Needs no GPU.\v"
        "--model reads hidden size, vocabulary, dtype (--dtype goes before it) and final softcap, and means, for any number of rows up to 65536: linear_logp "
        "with lse, with argmax and with entropy; linear_logp_backward by hidden and weight, also with a gradient by entropy; linear_cross_entropy with "
        "and without these gradients; both also with a main gradient of weight that is added to in fp32; and scale, for gradients. Label smoothing, token losses, bias and [D, V] are "
        "for --problem. Problems take their kernels without a tuning, those of GPUs with slow memory, and with the tunings that this machine's records have of them.\n\n"
        "Exit status: 0 success, 1 failure at run time, 2 usage, 3 no NVRTC or no kernel for what was asked, 4 a model's config.json or a token loss is not acceptable, 5 --check: some are missing.",
        parse_words, finish
    };
    static int (*const actions[])(const flp_gen_options *) = {
        [FLP_GEN_PREBUILD] = flp_gen_prebuild_run, [FLP_GEN_EMIT] = flp_gen_emit_run,         [FLP_GEN_LIST] = flp_gen_list_run,
        [FLP_GEN_CHECK] = flp_gen_check_run,       [FLP_GEN_CACHE_LIST] = flp_gen_cache_list, [FLP_GEN_CACHE_CLEAR] = flp_gen_cache_clear
    };
    flp_gen_options options = { 0 };
    flp_console_start("fusedlogp-gen");
    flp_options_parse(&line, argc, argv, &options);
    int code = flp_gen_models_read(&options);
    if (code == FLP_EXIT_OK)
        code = flp_gen_token_losses_check(&options);
    if (code == FLP_EXIT_OK) {
        code = actions[options.action](&options);
        /* The files of models and token losses have been read and were acceptable, so what the library refuses now came from the command line. */
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
