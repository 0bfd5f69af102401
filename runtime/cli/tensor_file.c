/* Opens a tensor file, chooses the format by the extension and maps the bytes. */
#include "cli/tensor.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

#define EXTENSION ".safetensors"

static int is_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && !S_ISDIR(facts.st_mode);
}

/* The colon in spec at which the name of a tensor begins: behind the first file that is there; where none is, behind the first that is named. NULL: spec names
 * no tensor. A folder's and a tensor's name may hold anything. */
static char *find_colon(char *spec)
{
    char *first = NULL;
    const int ends = ends_with(spec, ".npy") || ends_with(spec, EXTENSION);
    if (ends && is_file(spec))
        return NULL;
    for (char *at = strstr(spec, EXTENSION ":"); at != NULL; at = strstr(at + 1, EXTENSION ":")) {
        char *colon = at + strlen(EXTENSION);
        if (at == spec)
            continue;
        first = first ? first : colon;
        *colon = 0;
        const int is_there = is_file(spec);
        *colon = ':';
        if (is_there)
            return colon;
    }
    return ends ? NULL : first;
}

/* Cuts spec into path (in place) and *name, NULL where none is given. Returns 0 where the extension is unknown. */
static int split_spec(char *spec, const char **name, int *is_npy)
{
    char *colon = find_colon(spec);
    *name = NULL;
    *is_npy = colon == NULL && ends_with(spec, ".npy");
    if (colon != NULL) {
        *colon = 0;
        *name = colon + 1;
    }
    return colon != NULL || *is_npy || ends_with(spec, EXTENSION);
}

/* A u64 is read as an i64 without a conversion, so each value must fit. */
static flp_status check_u64(const flp_tensor *tensor)
{
    for (size_t i = 0; strcmp(tensor->element->name, "u64") == 0 && i < tensor->bytes / sizeof(uint64_t); i++) {
        uint64_t value;
        memcpy(&value, (const char *)tensor->data + i * sizeof value, sizeof value);
        if (value > INT64_MAX)
            return flp_status_fail(FLP_BAD_ARGUMENT, "element %zu is %" PRIu64 ", wanted at most %" PRId64, i, value, INT64_MAX);
    }
    return FLP_OK;
}

/* Converts integers of types that the library does not have. */
static flp_status widen_data(flp_tensor *tensor)
{
    const flp_tensor_element *element = tensor->element;
    size_t count = tensor->bytes / (size_t)element->bytes;
    if (element->widen == NULL || tensor->bytes == 0)
        return check_u64(tensor);
    size_t bytes = count * (size_t)flp_dtype_bytes(tensor->dtype);
    tensor->copy = malloc(bytes);
    if (tensor->copy == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%zu bytes for a copy of a tensor of %s as %s", bytes, element->name, flp_dtype_name(tensor->dtype));
    element->widen(tensor->data, count, tensor->copy);
    tensor->data = tensor->copy;
    tensor->bytes = bytes;
    return FLP_OK;
}

/* A safetensors header may have any length, so its data may lie anywhere. */
static flp_status align_data(flp_tensor *tensor)
{
    if ((uintptr_t)tensor->data % (unsigned)flp_dtype_bytes(tensor->dtype) == 0 || tensor->bytes == 0)
        return FLP_OK;
    tensor->copy = malloc(tensor->bytes);
    if (tensor->copy == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%zu bytes for a copy of a tensor that is not aligned to its elements", tensor->bytes);
    tensor->data = memcpy(tensor->copy, tensor->data, tensor->bytes);
    return FLP_OK;
}

/* Messages start with the file's name. */
static flp_status open_file(const char *path, int is_npy, const char *name, flp_tensor *tensor)
{
    flp_status status = flp_mapped_file_open(path, &tensor->file);
    if (status == FLP_OK)
        status = is_npy ? flp_npy_parse(tensor->file.bytes, tensor->file.count, tensor)
                        : flp_safetensors_parse(tensor->file.bytes, tensor->file.count, name, tensor);
    if (status == FLP_OK)
        status = widen_data(tensor);
    if (status == FLP_OK)
        status = align_data(tensor);
    if (status == FLP_OK)
        return FLP_OK;
    flp_status_prefix(status, "%s", path);
    flp_tensor_file_close(tensor);
    return status;
}

flp_status flp_tensor_file_open_named(const char *path, const char *name, flp_tensor *tensor)
{
    memset(tensor, 0, sizeof *tensor);
    return open_file(path, 0, name, tensor);
}

flp_status flp_tensor_file_open(const char *spec, flp_tensor *tensor)
{
    memset(tensor, 0, sizeof *tensor);
    char *path = flp_text_duplicate(spec);
    if (path == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s", spec);
    const char *name;
    int is_npy;
    flp_status status = split_spec(path, &name, &is_npy)
                            ? open_file(path, is_npy, name, tensor)
                            : flp_status_fail(FLP_BAD_ARGUMENT, "%s: wanted a name that ends in .npy or .safetensors, or FILE.safetensors:TENSOR", path);
    free(path);
    return status;
}

void flp_tensor_file_close(flp_tensor *tensor)
{
    flp_mapped_file_close(&tensor->file);
    free(tensor->copy);
    memset(tensor, 0, sizeof *tensor);
}
