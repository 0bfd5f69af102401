/* The command line of fusedlogp score. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include "cli/console.h"
#include "cli/result_file.h"
#include "cli/score.h"

typedef enum { TEXT, RESULT, POSITIVE, INT64, SHARD, DEVICE, INT, CHOICE, FLAG } kind;

/* An option, how its value is read and where it goes. Without a name it is a heading. */
typedef struct {
    const char *name, *value, *text;
    kind kind;
    size_t at;                /* in flp_score_options; from DEVICE on it is an int there */
    int64_t least, most;      /* of a number; a flag is most */
    const char *const *words; /* of a choice, in the order of the enumeration; NULL behind the last */
} option;

#define AT(field) offsetof(flp_score_options, field)

static const char *const layouts[] = { "vd", "dv", NULL }, *const backends[] = { "auto", "sm_90a", "portable", "cpu", NULL };
static const option known[] = {
    { .text = "Tensors (FILE.npy, FILE.safetensors:NAME, or FILE.safetensors with one tensor):" },
    { "model", "DIR", "take weight, bias, vocabulary and softcap from this model (config.json, safetensors)", TEXT, .at = AT(model) },
    { "hidden", "TENSOR", "hidden states [N, D] or [B, T, D], bf16, fp16 or fp32", TEXT, .at = AT(hidden) },
    { "weight", "TENSOR", "the head's weight [V, D] (or [D, V], see --layout)", TEXT, .at = AT(weight) },
    { "logits", "TENSOR", "instead of hidden and weight: the logits [N, V] or [B, T, V]", TEXT, .at = AT(logits) },
    { "target", "TENSOR", "token ids [N] or [B, T], integers", TEXT, .at = AT(target) },
    { "shift", NULL, "a state is scored against the next token of its sequence", FLAG, .at = AT(shift), .most = 1 },
    { "bias", "TENSOR", "the head's bias [V], bf16, fp16 or fp32 (default: none)", TEXT, .at = AT(bias) },
    { "layout", "vd|dv", "how the weight lies in memory (default: vd)", CHOICE, .at = AT(layout), .words = layouts },
    { "vocab", "V", "real vocabulary where weight or logits are padded (default: theirs)", INT64, .at = AT(vocab), 1, INT32_MAX },
    { .text = "Arithmetic:" },
    { "temperature", "X", "divide the logits by X (default: 1)", POSITIVE, .at = AT(temperature) },
    { "softcap", "C", "replace a logit z by C tanh(z / C) (default: none)", POSITIVE, .at = AT(softcap) },
    { "ignore-index", "I", "rows with this target are not scored (default: -100)", INT64, .at = AT(ignore_index), INT64_MIN, INT64_MAX },
    { "exact", NULL, "fp32 inputs by fp32 multiply-add, no tensor cores", FLAG, .at = AT(precision), .most = FLP_PRECISION_EXACT },
    { .text = "Results (FILE.npy, FILE.csv or FILE.json; - is npy on standard output):" },
    { "out", "FILE", "log-probability of every token", RESULT, .at = AT(out) },
    { "lse", "FILE", "log-sum-exp of every row", RESULT, .at = AT(lse) },
    { "entropy", "FILE", "entropy of every row's probabilities, in nats", RESULT, .at = AT(entropy) },
    { "argmax", "FILE", "most probable token of every row", RESULT, .at = AT(argmax) },
    { .text = "Where and how:" },
    { "backend", "NAME", "auto, sm_90a, portable or cpu (default: auto)", CHOICE, .at = AT(backend), .words = backends },
    { "device", "K", "CUDA device (default: 0); auto: the rank on this machine", DEVICE, .at = AT(device), 0, 1023 },
    { "threads", "T", "threads of the CPU path (default: one a core)", INT, .at = AT(threads), 1, 4096 },
    { "chunk-rows", "N", "rows at a time (default: what the memory allows)", INT64, .at = AT(chunk_rows), 1, INT64_MAX },
    { "shard", "I/N", "score part I, from 0 on, of N; auto: as torchrun, MPI or Slurm say", SHARD, .at = AT(shard) },
    { "strict", NULL, "fail where a row that is scored comes out as NaN", FLAG, .at = AT(strict), .most = 1 },
    { "json", NULL, "print the summary as JSON", FLAG, .at = AT(json), .most = 1 },
    { "quiet", NULL, "print no summary and no progress", FLAG, .at = AT(quiet), .most = 1 },
};
enum { OPTIONS = sizeof known / sizeof known[0], FIRST_KEY = 256 /* no character's */ };

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

static int read_device(struct argp_state *state, const option *option, const char *text)
{
    flp_score_options *options = state->input;
    options->device_wraps = strcmp(text, "auto") == 0;
    return options->device_wraps ? flp_shard_local_rank(state, option->name) : (int)flp_console_integer(state, option->name, text, option->least, option->most);
}

static int read_int(struct argp_state *state, const option *option, const char *text)
{
    if (option->kind == DEVICE)
        return read_device(state, option, text);
    if (option->kind == CHOICE)
        return flp_console_choice(state, option->name, text, option->words);
    return (int)(option->kind == FLAG ? option->most : flp_console_integer(state, option->name, text, option->least, option->most));
}

static void read_value(struct argp_state *state, const option *option, const char *text)
{
    void *to = (char *)state->input + option->at;
    if (option->kind == TEXT)
        *(const char **)to = text;
    else if (option->kind == RESULT)
        *(const char **)to = result_path(state, option->name, text);
    else if (option->kind == POSITIVE)
        *(double *)to = flp_console_positive(state, option->name, text);
    else if (option->kind == INT64)
        *(int64_t *)to = flp_console_integer(state, option->name, text, option->least, option->most);
    else if (option->kind == SHARD)
        *(flp_shard *)to = flp_shard_parse(state, text);
    else
        *(int *)to = read_int(state, option, text);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    if (key >= FIRST_KEY && key < FIRST_KEY + OPTIONS) {
        read_value(state, &known[key - FIRST_KEY], argument);
    } else if (key == ARGP_KEY_ARG) {
        argp_error(state, "'%s': wanted options only", argument);
    } else if (key == ARGP_KEY_END) {
        check_tensors(state, state->input);
        check_summary(state, state->input);
        name_shards(state, state->input);
    } else {
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void flp_score_options_parse(int argc, char **argv, flp_score_options *options)
{
    struct argp_option table[OPTIONS + 1] = { { 0 } };
    const struct argp arguments = { table,
                                    parse,
                                    0,
                                    "Computes the log-probability of every target token under softmax(hidden . weight^T + bias) without storing the "
                                    "logits, or under softmax(logits), and prints their mean and the perplexity.",
                                    flp_console_help,
                                    0,
                                    0 };
    int group = 0;
    for (int i = 0; i < OPTIONS; i++)
        table[i] = (struct argp_option){ known[i].name, known[i].name ? FIRST_KEY + i : 0, known[i].value, 0, known[i].text, known[i].name ? 0 : ++group };
    memset(options, 0, sizeof *options);
    options->ignore_index = -100;
    argp_parse(&arguments, argc, argv, 0, NULL, options);
}
