/* The command line of fusedlogp score. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include "cli/console.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/score.h"
#include "core/problem.h"
#include "cpu/thread_pool.h"
#include "params/types.h"

#define AT(field) offsetof(flp_score_options, field)

static const char *const layouts[] = { "vd", "dv", NULL }, *const backends[] = { "auto", "sm_90a", "portable", "cpu", NULL };
static void read_device(struct argp_state *state, void *into, const flp_option *option, const char *text)
{
    flp_score_options *options = into;
    options->device_wraps = strcmp(text, "auto") == 0;
    options->device =
        options->device_wraps ? flp_shard_local_rank(state, option->name) : (int)flp_console_integer(state, option->name, text, option->least, option->most);
}

static void read_shard(struct argp_state *state, void *into, const flp_option *option, const char *text)
{
    (void)option;
    ((flp_score_options *)into)->shard = flp_shard_parse(state, text);
}

static const flp_option table[] = {
    { .text = "Tensors (FILE.npy, FILE.safetensors:NAME, or FILE.safetensors with one tensor):", .group = 1 },
    { "model", "CONFIG", "take weight, bias, vocabulary and softcap from this config.json, or its folder, and the safetensors there", FLP_OPTION_TEXT,
      .at = AT(model) },
    { "hidden", "TENSOR", "hidden states [N, D] or [B, T, D], bf16, fp16 or fp32", FLP_OPTION_TEXT, .at = AT(hidden) },
    { "weight", "TENSOR", "the head's weight [V, D] (or [D, V], see --layout)", FLP_OPTION_TEXT, .at = AT(weight) },
    { "logits", "TENSOR", "instead of hidden and weight: the logits [N, V] or [B, T, V]", FLP_OPTION_TEXT, .at = AT(logits) },
    { "target", "TENSOR", "token ids [N] or [B, T], integers", FLP_OPTION_TEXT, .at = AT(target) },
    { "shift", NULL, "a state is scored against the next token of its sequence", FLP_OPTION_FLAG, .at = AT(shift) },
    { "bias", "TENSOR", "the head's bias [V], bf16, fp16 or fp32 (default: none)", FLP_OPTION_TEXT, .at = AT(bias) },
    { "layout", "vd|dv", "how the weight lies in memory (default: vd)", FLP_OPTION_CHOICE, .at = AT(layout), .words = layouts },
    { "vocab", "V", "real vocabulary where weight or logits are padded (default: theirs)", FLP_OPTION_INT64, .at = AT(vocab), 1, INT32_MAX },
    { .text = "Arithmetic:", .group = 2 },
    { "temperature", "X", "divide the logits by X (default: 1)", FLP_OPTION_POSITIVE, .at = AT(temperature), .from = FLP_LEAST_TEMPERATURE,
      .to = FLP_MOST_TEMPERATURE },
    { "softcap", "C", "replace a logit z by C tanh(z / C) (default: none)", FLP_OPTION_POSITIVE, .at = AT(softcap), .from = FLP_LEAST_SOFTCAP,
      .to = FLP_MOST_SOFTCAP },
    { "ignore-index", "I", "rows with this target are not scored (default: -100)", FLP_OPTION_INT64, .at = AT(ignore_index), INT64_MIN, INT64_MAX },
    { "exact", NULL, "fp32 inputs by fp32 multiply-add, no tensor cores", FLP_OPTION_FLAG, .at = AT(precision), .least = FLP_PRECISION_EXACT },
    { .text = "Results (FILE.npy, FILE.csv or FILE.json; - is npy on standard output):", .group = 3 },
    { "out", "FILE", "log-probability of every token", FLP_OPTION_RESULT, .at = AT(out) },
    { "lse", "FILE", "log-sum-exp of every row", FLP_OPTION_RESULT, .at = AT(lse) },
    { "entropy", "FILE", "entropy of every row's probabilities, in nats", FLP_OPTION_RESULT, .at = AT(entropy) },
    { "argmax", "FILE", "most probable token of every row", FLP_OPTION_RESULT, .at = AT(argmax) },
    { .text = "Where and how:", .group = 4 },
    { "backend", "NAME", "auto, sm_90a, portable or cpu (default: auto)", FLP_OPTION_CHOICE, .at = AT(backend), .words = backends },
    { "device", "K", "CUDA device (default: 0); auto: the rank on this machine", FLP_OPTION_OWN, 0, 0, 1023, .read = read_device },
    { "threads", "T", "threads of the CPU path (default: one a core)", FLP_OPTION_INT, .at = AT(threads), 1, FLP_THREAD_POOL_MOST },
    { "chunk-rows", "N", "rows at a time (default: what the memory allows)", FLP_OPTION_INT64, .at = AT(chunk_rows), 1, INT64_MAX },
    { "shard", "I/N", "score part I, from 0 on, of N; auto: as torchrun, MPI or Slurm say", FLP_OPTION_OWN, .read = read_shard },
    { "strict", NULL, "fail where a row that is scored comes out as NaN", FLP_OPTION_FLAG, .at = AT(strict) },
    { "json", NULL, "print the summary as JSON", FLP_OPTION_FLAG, .at = AT(json) },
    { "quiet", NULL, "print no summary and no progress", FLP_OPTION_FLAG, .at = AT(quiet) },
    { 0 }
};

const char *flp_score_on_output(const flp_score_options *options)
{
    const char *const paths[] = { options->out, options->lse, options->entropy, options->argmax };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (paths[i] != NULL && flp_output_file_is_standard_output(paths[i]))
            return paths[i];
    return NULL;
}

/* Wanted are hidden and a head, by options or by a model, or else logits, with which no option of the head makes sense. */
static void check_tensors(struct argp_state *state, const flp_score_options *options)
{
    const char *other = options->model                               ? "model"
                        : options->hidden                            ? "hidden"
                        : options->weight                            ? "weight"
                        : options->bias                              ? "bias"
                        : options->layout != FLP_VOCAB_HIDDEN        ? "layout"
                        : options->precision != FLP_PRECISION_TENSOR ? "exact"
                                                                     : NULL;
    if (options->logits != NULL && other != NULL)
        argp_error(state, "--logits: wanted without --%s", other);
    other = options->weight ? "weight" : options->bias ? "bias" : options->layout != FLP_VOCAB_HIDDEN ? "layout" : NULL;
    if (options->model != NULL && other != NULL)
        argp_error(state, "--model: wanted without --%s", other);
    if (options->logits == NULL && options->hidden == NULL)
        argp_error(state, "--hidden is missing: wanted it, with --weight or --model, or --logits");
    if (options->logits == NULL && options->weight == NULL && options->model == NULL)
        argp_error(state, "--weight is missing: wanted it or --model beside --hidden, or --logits alone");
    if (options->target == NULL)
        argp_error(state, "--target is missing");
}

/* Gives the results of a shard file names of their own, for fusedlogp merge to join. */
static void name_shards(struct argp_state *state, flp_score_options *options)
{
    const char **const paths[] = { &options->out, &options->lse, &options->entropy, &options->argmax };
    const flp_shard *shard = &options->shard;
    for (size_t i = 0; shard->count > 0 && i < sizeof paths / sizeof paths[0]; i++) {
        if (*paths[i] == NULL)
            continue;
        flp_output_file file;
        flp_output_file_find(*paths[i], &file); /* what it refuses has its kind, too */
        if (file.kind == FLP_OUTPUT_STDOUT || file.kind == FLP_OUTPUT_STREAM)
            argp_error(state, "--shard: wanted results in files, got %s", *paths[i]);
        int length = snprintf(options->shard_path[i], PATH_MAX, "%s.shard-%" PRId64 "-of-%" PRId64, *paths[i], shard->index, shard->count);
        if (length >= PATH_MAX)
            argp_error(state, "--shard: %s: the name is too long", *paths[i]);
        *paths[i] = options->shard_path[i];
    }
}

/* A JSON summary on standard output would be mixed with a result that is written there. */
static void check_summary(struct argp_state *state, const flp_score_options *options)
{
    if (options->json && flp_score_on_output(options) != NULL)
        argp_error(state, "--json: wanted without a result on standard output, where the JSON goes; got %s", flp_score_on_output(options));
}

static void finish(struct argp_state *state, void *options)
{
    check_tensors(state, options);
    name_shards(state, options);
    check_summary(state, options);
}

void flp_score_options_parse(int argc, char **argv, flp_score_options *options)
{
    static const flp_command_line line = { table, NULL,
                                           "Computes the log-probability of every target token under softmax(hidden . weight^T + bias) without storing the "
                                           "logits, or under softmax(logits), and prints their mean and the perplexity.",
                                           NULL, finish };
    memset(options, 0, sizeof *options);
    options->ignore_index = -100;
    flp_options_parse(&line, argc, argv, options);
}
