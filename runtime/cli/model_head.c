/* Finds a head's weight and bias by the names that model families give them. */
#include "cli/model_config.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/mapped_file.h"
#include "cli/tensor.h"

#define INDEX "model.safetensors.index.json"
#define SINGLE "model.safetensors"

/* Prefixes of the language model's tensor names: none, or one of those that multimodal models use. */
static const char *const prefixes[] = { "", "language_model.", "model.language_model.", "model.", "thinker.", NULL };
static const char *const heads[] = { "lm_head.weight", "embed_out.weight", "output.weight", "transformer.output_layer.weight", NULL };
static const char *const embeddings[] = { "model.embed_tokens.weight",   "embed_tokens.weight",
                                          "transformer.wte.weight",      "wte.weight",
                                          "gpt_neox.embed_in.weight",    "transformer.word_embeddings.weight",
                                          "word_embeddings.weight",      "model.decoder.embed_tokens.weight",
                                          "decoder.embed_tokens.weight", "backbone.embeddings.weight",
                                          "tok_embeddings.weight",       NULL };

/* "folder/name"; NULL when out of memory. */
static char *join(const char *folder, const char *name)
{
    flp_text path = { 0 };
    flp_text_append(&path, "%s/%s", folder, name);
    if (!path.failed)
        return path.data;
    flp_text_free(&path);
    return NULL;
}

/* ---- which file holds which tensor: an object from names of tensors to those of files ---- */

static flp_status read_index(const char *path, json_t **files)
{
    char *text = NULL;
    size_t bytes;
    json_error_t error;
    flp_status status = flp_file_read(AT_FDCWD, path, &text, &bytes);
    if (status != FLP_OK)
        return status;
    json_t *index = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    free(text);
    *files = json_incref(json_object_get(index, "weight_map"));
    if (index == NULL)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: not JSON: %s (line %d)", path, error.text, error.line);
    else if (!json_is_object(*files))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: wanted an object weight_map, from the names of tensors to those of files", path);
    json_decref(index);
    return status;
}

static flp_status read_single(const char *path, json_t **files)
{
    flp_mapped_file file;
    json_t *header = NULL;
    size_t data_at;
    const char *name;
    json_t *entry;
    flp_status status = flp_mapped_file_open(path, &file);
    if (status == FLP_OK)
        status = flp_safetensors_header(file.bytes, file.count, &header, &data_at);
    *files = json_object();
    json_object_foreach (header, name, entry)
        json_object_set_new(*files, name, json_string(SINGLE));
    json_decref(header);
    flp_mapped_file_close(&file);
    return status == FLP_OK ? status : flp_status_prefix(status, "%s", path);
}

static flp_status read_files(const char *folder, json_t **files)
{
    char *index = join(folder, INDEX), *single = join(folder, SINGLE);
    flp_status status;
    if (index == NULL || single == NULL)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "%s", folder);
    else if (access(index, F_OK) == 0)
        status = read_index(index, files);
    else if (access(single, F_OK) == 0)
        status = read_single(single, files);
    else
        status =
            flp_status_fail(FLP_IO_FAILED, "%s: neither " INDEX " nor " SINGLE " is there (other formats are not read: save_pretrained writes these)", folder);
    free(index);
    free(single);
    return status;
}

/* ---- names ---- */

/* The first of names that exists with any of the prefixes; NULL: none does. */
static const char *find_name(json_t *files, const char *const *names)
{
    char candidate[256];
    for (int i = 0; names[i] != NULL; i++)
        for (int k = 0; prefixes[k] != NULL; k++) {
            snprintf(candidate, sizeof candidate, "%s%s", prefixes[k], names[i]);
            void *found = json_object_iter_at(files, candidate);
            if (found != NULL)
                return json_object_iter_key(found);
        }
    return NULL;
}

/* Makes *spec, "folder/file:name". */
static flp_status locate(const char *folder, json_t *files, const char *name, char **spec)
{
    const char *file = json_string_value(json_object_get(files, name));
    flp_text text = { 0 };
    if (file == NULL || strchr(file, '/') != NULL)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s/" INDEX ": '%s': wanted the name of a file in the same folder", folder, name);
    flp_text_append(&text, "%s/%s:%s", folder, file, name);
    *spec = text.data;
    return text.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "%s", name) : FLP_OK;
}

static flp_status refuse(const char *folder, int tied)
{
    if (tied == 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: config.json has no tied embedding, and there is no %s", folder, heads[0]);
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: there is no %s%s%s, nor one of the names that other families give it", folder, tied == 1 ? "" : heads[0],
                           tied == 1 ? "" : " and no ", embeddings[0]);
}

static flp_status find_tensors(const char *folder, json_t *files, flp_model_head *head)
{
    const char *own = find_name(files, heads), *embedding = find_name(files, embeddings), *weight = own;
    if (head->config.tied == 1 || (head->config.tied == -1 && own == NULL))
        weight = embedding;
    if (weight == NULL)
        return refuse(folder, head->config.tied);
    flp_status status = locate(folder, files, weight, &head->weight);
    if (status != FLP_OK || own == NULL)
        return status;
    char bias[256];
    snprintf(bias, sizeof bias, "%.*s.bias", (int)(strlen(own) - strlen(".weight")), own);
    return json_object_get(files, bias) ? locate(folder, files, bias, &head->bias) : FLP_OK;
}

/* The folder that path is, or that its file lies in; NULL when out of memory. */
static char *folder_of(const char *path)
{
    struct stat facts;
    const char *slash = strrchr(path, '/');
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return strdup(path);
    return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static int is_in(const char *folder, const char *name, const struct stat *file)
{
    char *path = join(folder, name);
    struct stat facts;
    const int is = path != NULL && stat(path, &facts) == 0 && facts.st_dev == file->st_dev && facts.st_ino == file->st_ino;
    free(path);
    return is;
}

/* Whether it is one of the files that hold the model's tensors, of which neighbours mostly are in one. */
static int holds_tensors(const char *folder, const struct stat *file)
{
    json_t *files = NULL, *value;
    const char *tensor, *last = "";
    int holds = 0;
    if (read_files(folder, &files) == FLP_OK)
        json_object_foreach (files, tensor, value) {
            const char *name = json_string_value(value);
            if (holds || name == NULL || strcmp(name, last) == 0)
                continue;
            holds = is_in(folder, name, file);
            last = name;
        }
    json_decref(files);
    return holds;
}

int flp_model_head_reads(const char *path, const struct stat *file)
{
    struct stat facts;
    char *folder = folder_of(path);
    const int is_given = stat(path, &facts) == 0 && facts.st_dev == file->st_dev && facts.st_ino == file->st_ino;
    const int reads = is_given || (folder != NULL && (is_in(folder, "config.json", file) || is_in(folder, INDEX, file) || holds_tensors(folder, file)));
    free(folder);
    return reads;
}

flp_status flp_model_head_find(const char *path, flp_model_head *head)
{
    json_t *files = NULL;
    char *folder = folder_of(path);
    memset(head, 0, sizeof *head);
    flp_status status = folder ? flp_model_config_read(path, &head->config) : flp_status_fail(FLP_OUT_OF_MEMORY, "%s", path);
    if (status == FLP_OK)
        status = read_files(folder, &files);
    if (status == FLP_OK)
        status = find_tensors(folder, files, head);
    json_decref(files);
    free(folder);
    return status;
}

void flp_model_head_free(flp_model_head *head)
{
    free(head->weight);
    free(head->bias);
    memset(head, 0, sizeof *head);
}
