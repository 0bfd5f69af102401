/* Reads a Hugging Face config.json. Some model families use other names for a key, and a multimodal model has its language model's keys in an inner object. */
#include "cli/model_config.h"
#include <argz.h>

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/dtype.h"
#include "base/file.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "core/problem.h"

enum { LEVELS = 4, LARGEST_SIZE = INT32_MAX };

/* The objects in which a key is looked for, the innermost first. */
typedef struct {
    json_t *level[LEVELS];
    int count;
} scopes;

/* Defaults of some families' classes: transformers leaves out of an inner object the keys that have their class's default. */
static const struct {
    const char *model_type;
    int64_t hidden, vocab;
    double softcap;
} defaults[] = {
    { "llama", 4096, 32000, 0 }, { "mistral", 4096, 32000, 0 }, { "mixtral", 4096, 32000, 0 },  { "qwen2", 4096, 151936, 0 },
    { "phi3", 3072, 32064, 0 },  { "gemma", 3072, 256000, 0 },  { "gemma2", 2304, 256000, 30 }, { "gemma3_text", 2304, 262208, 0 },
};

static json_t *find_inner(json_t *object)
{
    static const char *const names[] = { "text_config", "language_config", "llm_config", "thinker_config" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_is_object(json_object_get(object, names[i])))
            return json_object_get(object, names[i]);
    return NULL;
}

static scopes open_scopes(json_t *outer)
{
    scopes found = { .count = 0 };
    json_t *inner_first[LEVELS];
    int depth = 0;
    for (json_t *object = outer; object != NULL && depth < LEVELS; object = find_inner(object))
        inner_first[depth++] = object;
    while (depth > 0)
        found.level[found.count++] = inner_first[--depth];
    return found;
}

/* names: what several families call the same key; NULL ends them. A null counts as absent. */
static json_t *find(const scopes *from, const char *const *names, const char **name)
{
    for (int level = 0; level < from->count; level++)
        for (int i = 0; names[i] != NULL; i++) {
            json_t *value = json_object_get(from->level[level], names[i]);
            if (value != NULL && !json_is_null(value)) {
                *name = names[i];
                return value;
            }
        }
    *name = names[0];
    return NULL;
}

static flp_status refuse(const char *name, json_t *value, const char *wanted)
{
    char *got = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    flp_status status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %.80s, wanted %s", name, got ? got : "another type", wanted);
    free(got);
    return status;
}

/* Leaves *number alone where the key is absent, as does read_positive. */
static flp_status read_size(const scopes *from, const char *const *names, int64_t *number)
{
    const char *name;
    json_t *value = find(from, names, &name);
    if (value == NULL)
        return FLP_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > LARGEST_SIZE)
        return refuse(name, value, "a whole number from 1 to 2147483647");
    *number = json_integer_value(value);
    return FLP_OK;
}

static flp_status read_positive(const scopes *from, const char *const *names, double *number)
{
    const char *name;
    json_t *value = find(from, names, &name);
    if (value == NULL)
        return FLP_OK;
    if (!json_is_number(value) || !(json_number_value(value) > 0) || !isfinite(json_number_value(value)))
        return refuse(name, value, "a number above 0");
    *number = json_number_value(value);
    return FLP_OK;
}

static void read_word(const scopes *from, const char *key, char *word, size_t bytes)
{
    const char *const names[] = { key, NULL };
    const char *name;
    const char *text = json_string_value(find(from, names, &name));
    snprintf(word, bytes, "%s", text ? text : "");
}

static void take_defaults(flp_model_config *config)
{
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (strcmp(config->model_type, defaults[i].model_type) == 0) {
            config->hidden = defaults[i].hidden;
            config->vocab = defaults[i].vocab;
            config->softcap = defaults[i].softcap;
        }
}

static flp_status read_sizes(const scopes *from, flp_model_config *config)
{
    /* OPT's head has its own width. */
    static const char *const hidden[] = { "word_embed_proj_dim", "hidden_size", "n_embd", "d_model", NULL };
    static const char *const vocab[] = { "vocab_size", NULL }, *const multiple[] = { "pad_vocab_size_multiple", NULL };
    static const char *const padded[] = { "padded_vocab_size", NULL };
    int64_t step = 1;
    flp_status status = read_size(from, hidden, &config->hidden);
    if (status == FLP_OK)
        status = read_size(from, padded, &config->weight_rows);
    config->vocab = config->weight_rows ? config->weight_rows : config->vocab;
    if (status == FLP_OK)
        status = read_size(from, vocab, &config->vocab);
    if (status == FLP_OK)
        status = read_size(from, multiple, &step);
    if (status != FLP_OK)
        return status;
    if (config->hidden == 0 || config->vocab == 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: the file has none, and what model_type \"%s\" stands for is not known here",
                               config->hidden == 0 ? hidden[1] : vocab[0], config->model_type);
    if (config->weight_rows == 0)
        config->weight_rows = (config->vocab + step - 1) / step * step;
    if (config->weight_rows < config->vocab)
        return flp_status_fail(FLP_BAD_ARGUMENT, "padded_vocab_size: got %" PRId64 ", wanted at least vocab_size, %" PRId64, config->weight_rows,
                               config->vocab);
    return FLP_OK;
}

static flp_status read_dtype(const scopes *from, flp_dtype *dtype)
{
    static const char *const names[] = { "dtype", "torch_dtype", NULL };
    static const struct {
        const char *name;
        flp_dtype dtype;
    } known[] = { { "bfloat16", FLP_BF16 }, { "float16", FLP_F16 }, { "half", FLP_F16 }, { "float32", FLP_F32 }, { "float", FLP_F32 }, { "auto", FLP_NONE } };
    const char *name;
    json_t *value = find(from, names, &name);
    if (value == NULL)
        return FLP_OK;
    const char *text = json_string_value(value);
    if (text != NULL && strncmp(text, "torch.", 6) == 0)
        text += 6;
    for (size_t i = 0; text != NULL && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(text, known[i].name) == 0) {
            *dtype = known[i].dtype;
            return FLP_OK;
        }
    return refuse(name, value, "\"bfloat16\", \"float16\" or \"float32\"");
}

/* What the families do with logits_scaling. A file without a model_type is taken for one of Granite. */
static const struct {
    const char *prefix; /* of model_type */
    int divides;
} scalings[] = { { "granite", 1 }, { "hyperclovax", 0 } };

/* Multiplies the temperature, by which the logits are divided. */
static flp_status read_scaling(const scopes *from, flp_model_config *config)
{
    static const char *const names[] = { "logits_scaling", NULL };
    double scaling = 1;
    flp_status status = read_positive(from, names, &scaling);
    if (status != FLP_OK || scaling == 1)
        return status;
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++)
        if (!*config->model_type || strncmp(config->model_type, scalings[i].prefix, strlen(scalings[i].prefix)) == 0) {
            config->temperature *= scalings[i].divides ? scaling : 1 / scaling;
            return FLP_OK;
        }
    config->unknown_scaling = scaling;
    return FLP_OK;
}

/* Cohere and Falcon-H1 multiply the logits by a number, MiniCPM divides the hidden states by hidden_size over a number. */
static flp_status read_logits(const scopes *from, flp_model_config *config)
{
    static const char *const softcap[] = { "final_logit_softcapping", "logits_soft_cap", "output_logits_soft_cap", NULL };
    static const char *const factor[] = { "logit_scale", "lm_head_multiplier", NULL };
    static const char *const base[] = { "dim_model_base", NULL };
    double scale = 1, base_size = (double)config->hidden;
    flp_status status = read_positive(from, softcap, &config->softcap);
    if (status == FLP_OK && config->softcap != 0 && !(config->softcap >= FLP_LEAST_SOFTCAP && config->softcap <= FLP_MOST_SOFTCAP)) {
        const char *name;
        json_t *value = find(from, softcap, &name);
        return refuse(name, value, "a number from 2^-126 to 2^126");
    }
    if (status == FLP_OK)
        status = read_scaling(from, config);
    if (status == FLP_OK)
        status = read_positive(from, factor, &scale);
    if (status == FLP_OK)
        status = read_positive(from, base, &base_size);
    config->temperature *= (double)config->hidden / base_size / scale;
    return status;
}

static flp_status read_tied(const scopes *from, int *tied)
{
    static const char *const names[] = { "tie_word_embeddings", NULL };
    const char *name;
    json_t *value = find(from, names, &name);
    if (value != NULL && !json_is_boolean(value))
        return refuse(name, value, "true or false");
    *tied = value == NULL ? -1 : json_is_true(value);
    return FLP_OK;
}

static flp_status read_object(json_t *outer, flp_model_config *config)
{
    const scopes from = open_scopes(outer);
    const char *name;
    static const char *const architectures[] = { "architectures", NULL };
    const char *architecture = json_string_value(json_array_get(find(&from, architectures, &name), 0));
    snprintf(config->architecture, sizeof config->architecture, "%s", architecture ? architecture : "");
    read_word(&from, "model_type", config->model_type, sizeof config->model_type);
    if (from.count > 1)
        take_defaults(config);
    flp_status status = read_sizes(&from, config);
    if (status == FLP_OK)
        status = read_dtype(&from, &config->dtype);
    if (status == FLP_OK)
        status = read_logits(&from, config);
    if (status == FLP_OK)
        status = read_tied(&from, &config->tied);
    return status;
}

/* The length of the word at the start of text if Python writes a number that is not finite as that; else 0. */
static size_t length_of_not_finite(const char *text, size_t bytes)
{
    static const char *const words[] = { "-Infinity", "Infinity", "NaN" };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) <= bytes && memcmp(text, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

/* Appends the text with null for each number that is not finite, which JSON has no word for. In a string such a word stays. */
static void append_json(const char *text, size_t bytes, flp_text *json)
{
    int in_string = 0;
    size_t copied = 0;
    for (size_t i = 0; i < bytes; i++) {
        const size_t length = in_string ? 0 : length_of_not_finite(text + i, bytes - i);
        if (length > 0) {
            flp_text_append_bytes(json, text + copied, i - copied);
            flp_text_append(json, "null");
            copied = i + length;
            i = copied - 1;
        } else if (in_string && text[i] == '\\') {
            i++;
        } else if (text[i] == '"') {
            in_string = !in_string;
        }
    }
    flp_text_append_bytes(json, text + copied, bytes - copied);
}

flp_status flp_model_config_parse(const char *text, size_t bytes, flp_model_config *config)
{
    json_error_t error = { .text = "" };
    flp_text json = { 0 };
    append_json(text, bytes, &json);
    json_t *object = json.failed ? NULL : json_loadb(json.data, json.length, JSON_REJECT_DUPLICATES, &error);
    flp_text_free(&json);
    flp_status status;
    *config = (flp_model_config){ .temperature = 1, .tied = -1 };
    if (object == NULL)
        return error.text[0] ? flp_status_fail(FLP_BAD_ARGUMENT, "not JSON: %s (line %d)", error.text, error.line)
                             : flp_status_fail(FLP_OUT_OF_MEMORY, "a configuration of %zu bytes", bytes);
    status = json_is_object(object) ? read_object(object, config) : flp_status_fail(FLP_BAD_ARGUMENT, "not a JSON object");
    json_decref(object);
    return status;
}

flp_status flp_model_config_read(const char *path, flp_model_config *config)
{
    struct stat facts;
    flp_text name = { 0 };
    char *text = NULL;
    size_t bytes;
    flp_text_append(&name, "%s%s", path, stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) ? "/config.json" : "");
    if (name.failed)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s", path);
    flp_status status = flp_file_read(AT_FDCWD, name.data, &text, &bytes);
    if (status == FLP_OK) {
        status = flp_model_config_parse(text, bytes, config);
        if (status != FLP_OK)
            status = flp_status_prefix(status, "%s", name.data);
    }
    free(text);
    flp_text_free(&name);
    return status;
}

flp_status flp_model_config_append_problems(const flp_model_config *config, flp_dtype dtype, const char *const *patterns, char **problems, size_t *bytes)
{
    char softcap[FLP_NUMBER_BYTES + 16] = "", number[FLP_NUMBER_BYTES];
    const char *name = flp_dtype_name(dtype);
    if (config->softcap > 0) {
        flp_number_format(config->softcap, number);
        snprintf(softcap, sizeof softcap, ":softcap%s", number);
    }
    for (int i = 0; patterns[i] != NULL; i++) {
        flp_text text = { 0 };
        flp_text_append(&text, patterns[i], name, config->hidden, config->vocab, softcap, name, name);
        const int failed = text.failed || argz_add(problems, bytes, text.data) != 0;
        flp_text_free(&text);
        if (failed)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "the problems of a model");
    }
    return FLP_OK;
}
