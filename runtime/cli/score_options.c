/* The command line of fusedlogp score. */
#include <inttypes.h>
#include <string.h>
#include "cli/console.h"
#include "cli/result_file.h"
#include "cli/score.h"

enum {
    MODEL = 256,
    HIDDEN,
    WEIGHT,
    LOGITS,
    TARGET,
    SHIFT,
    BIAS,
    LAYOUT,
    VOCAB,
    TEMPERATURE,
    SOFTCAP,
    IGNORE_INDEX,
    OUT,
    LSE,
    ENTROPY,
    ARGMAX,
    BACKEND,
    EXACT,
    DEVICE,
    THREADS,
    CHUNK_ROWS,
    SHARD,
    STRICT,
    JSON,
    QUIET
};

static const struct argp_option table[] = { { 0, 0, 0, 0, "Tensors (FILE.npy, FILE.safetensors:NAME, or FILE.safetensors with one tensor):", 1 },
                                            { "model", MODEL, "DIR", 0, "take weight, bias, vocabulary and softcap from this model (config.json, safetensors)",
                                              0 },
                                            { "hidden", HIDDEN, "TENSOR", 0, "hidden states [N, D] or [B, T, D], bf16, fp16 or fp32", 0 },
                                            { "weight", WEIGHT, "TENSOR", 0, "the head's weight [V, D] (or [D, V], see --layout)", 0 },
                                            { "logits", LOGITS, "TENSOR", 0, "instead of hidden and weight: the logits [N, V] or [B, T, V]", 0 },
                                            { "target", TARGET, "TENSOR", 0, "token ids [N] or [B, T], integers", 0 },
                                            { "shift", SHIFT, 0, 0, "a state is scored against the next token of its sequence", 0 },
                                            { "bias", BIAS, "TENSOR", 0, "the head's bias [V], bf16, fp16 or fp32 (default: none)", 0 },
                                            { "layout", LAYOUT, "vd|dv", 0, "how the weight lies in memory (default: vd)", 0 },
                                            { "vocab", VOCAB, "V", 0, "real vocabulary where weight or logits are padded (default: theirs)", 0 },
                                            { 0, 0, 0, 0, "Arithmetic:", 2 },
                                            { "temperature", TEMPERATURE, "X", 0, "divide the logits by X (default: 1)", 0 },
                                            { "softcap", SOFTCAP, "C", 0, "replace a logit z by C tanh(z / C) (default: none)", 0 },
                                            { "ignore-index", IGNORE_INDEX, "I", 0, "rows with this target are not scored (default: -100)", 0 },
                                            { "exact", EXACT, 0, 0, "fp32 inputs by fp32 multiply-add, no tensor cores", 0 },
                                            { 0, 0, 0, 0, "Results (FILE.npy, FILE.csv or FILE.json; - is npy on standard output):", 3 },
                                            { "out", OUT, "FILE", 0, "log-probability of every token", 0 },
                                            { "lse", LSE, "FILE", 0, "log-sum-exp of every row", 0 },
                                            { "entropy", ENTROPY, "FILE", 0, "entropy of every row's probabilities, in nats", 0 },
                                            { "argmax", ARGMAX, "FILE", 0, "most probable token of every row", 0 },
                                            { 0, 0, 0, 0, "Where and how:", 4 },
                                            { "backend", BACKEND, "NAME", 0, "auto, sm_90a, portable or cpu (default: auto)", 0 },
                                            { "device", DEVICE, "K", 0, "CUDA device (default: 0); auto: the rank on this machine", 0 },
                                            { "threads", THREADS, "T", 0, "threads of the CPU path (default: one a core)", 0 },
                                            { "chunk-rows", CHUNK_ROWS, "N", 0, "rows at a time (default: what the memory allows)", 0 },
                                            { "shard", SHARD, "I/N", 0, "score part I, from 0 on, of N; auto: as torchrun, MPI or Slurm say", 0 },
                                            { "strict", STRICT, 0, 0, "fail where a row that is scored comes out as NaN", 0 },
                                            { "json", JSON, 0, 0, "print the summary as JSON", 0 },
                                            { "quiet", QUIET, 0, 0, "print no summary and no progress", 0 },
                                            { 0 } };

static const char *result_path(struct argp_state *state, const char *option, const char *path)
{
    if (!flp_result_file_accepts(path))
        argp_error(state, "--%s: got '%s', wanted a name that ends in .npy, .csv or .json, or -", option, path);
    return path;
}

int flp_score_takes_output(const flp_score_options *options)
{
    const char *const paths[] = { options->out, options->lse, options->entropy, options->argmax };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (paths[i] != NULL && strcmp(paths[i], "-") == 0)
            return 1;
    return 0;
}

/* hidden and weight, or logits, which leave the head's options nothing to say. */
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
        argp_error(state, "--hidden is missing");
    if (options->logits == NULL && options->weight == NULL && options->model == NULL)
        argp_error(state, "--weight is missing");
    if (options->target == NULL)
        argp_error(state, "--target is missing");
}

/* A shard's results are files of their own, for fusedlogp merge. */
static void name_shards(struct argp_state *state, flp_score_options *options)
{
    const char **const paths[] = { &options->out, &options->lse, &options->entropy, &options->argmax };
    const flp_shard *shard = &options->shard;
    for (size_t i = 0; shard->count > 0 && i < sizeof paths / sizeof paths[0]; i++) {
        if (*paths[i] == NULL)
            continue;
        if (strcmp(*paths[i], "-") == 0 || strncmp(*paths[i], "/dev/", 5) == 0)
            argp_error(state, "--shard: wanted results in files, got %s", *paths[i]);
        int length = snprintf(options->shard_path[i], PATH_MAX, "%s.shard-%" PRId64 "-of-%" PRId64, *paths[i], shard->index, shard->count);
        if (length >= PATH_MAX)
            argp_error(state, "--shard: %s: the name is too long", *paths[i]);
        *paths[i] = options->shard_path[i];
    }
}

/* What is on standard output beside a result would be part of it. */
static void check_summary(struct argp_state *state, const flp_score_options *options)
{
    if (options->json && flp_score_takes_output(options))
        argp_error(state, "--json: wanted without a result that is -, for both would be on standard output");
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    static const char *const layouts[] = { "vd", "dv", NULL };
    static const char *const backends[] = { "auto", "sm_90a", "portable", "cpu", NULL }; /* the order of flp_backend */
    flp_score_options *options = state->input;
    switch (key) {
    case MODEL:
        options->model = argument;
        break;
    case HIDDEN:
        options->hidden = argument;
        break;
    case WEIGHT:
        options->weight = argument;
        break;
    case LOGITS:
        options->logits = argument;
        break;
    case TARGET:
        options->target = argument;
        break;
    case SHIFT:
        options->shift = 1;
        break;
    case BIAS:
        options->bias = argument;
        break;
    case LAYOUT:
        options->layout = flp_console_choice(state, "layout", argument, layouts) ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN;
        break;
    case VOCAB:
        options->vocab = flp_console_integer(state, "vocab", argument, 1, INT32_MAX);
        break;
    case TEMPERATURE:
        options->temperature = flp_console_positive(state, "temperature", argument);
        break;
    case SOFTCAP:
        options->softcap = flp_console_positive(state, "softcap", argument);
        break;
    case IGNORE_INDEX:
        options->ignore_index = flp_console_integer(state, "ignore-index", argument, INT64_MIN, INT64_MAX);
        break;
    case OUT:
        options->out = result_path(state, "out", argument);
        break;
    case LSE:
        options->lse = result_path(state, "lse", argument);
        break;
    case ENTROPY:
        options->entropy = result_path(state, "entropy", argument);
        break;
    case ARGMAX:
        options->argmax = result_path(state, "argmax", argument);
        break;
    case BACKEND:
        options->backend = (flp_backend)flp_console_choice(state, "backend", argument, backends);
        break;
    case EXACT:
        options->precision = FLP_PRECISION_EXACT;
        break;
    case DEVICE:
        options->device_wraps = strcmp(argument, "auto") == 0;
        options->device = options->device_wraps ? flp_shard_local_rank(state, "device") : (int)flp_console_integer(state, "device", argument, 0, 1023);
        break;
    case THREADS:
        options->threads = (int)flp_console_integer(state, "threads", argument, 1, 4096);
        break;
    case CHUNK_ROWS:
        options->chunk_rows = flp_console_integer(state, "chunk-rows", argument, 1, INT64_MAX);
        break;
    case SHARD:
        options->shard = flp_shard_parse(state, argument);
        break;
    case STRICT:
        options->strict = 1;
        break;
    case JSON:
        options->json = 1;
        break;
    case QUIET:
        options->quiet = 1;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': wanted options only", argument);
        break;
    case ARGP_KEY_END:
        check_tensors(state, options);
        check_summary(state, options);
        name_shards(state, options);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void flp_score_options_parse(int argc, char **argv, flp_score_options *options)
{
    static const struct argp arguments = { table,
                                           parse,
                                           0,
                                           "Computes the log-probability of every target token under softmax(hidden . weight^T + bias) without storing the "
                                           "logits, or under softmax(logits), and prints their mean and the perplexity.",
                                           flp_console_help,
                                           0,
                                           0 };
    memset(options, 0, sizeof *options);
    options->ignore_index = -100;
    argp_parse(&arguments, argc, argv, 0, NULL, options);
}
