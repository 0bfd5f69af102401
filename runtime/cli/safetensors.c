/* The safetensors format: 8 bytes of header length, a JSON header, the tensors back to back. */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/status.h"
#include "base/text.h"
#include "cli/tensor.h"

#define LARGEST_HEADER 100000000 /* the format's own limit */
#define NAMES_IN_A_MESSAGE 8

typedef struct {
    const char *name;
    int64_t begin, end;
} range;

static int by_place(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

static flp_status read_range(const char *name, json_t *entry, range *place)
{
    json_t *offsets = json_object_get(entry, "data_offsets");
    json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: '%s' has no data_offsets of two whole numbers", name);
    *place = (range){ name, json_integer_value(begin), json_integer_value(end) };
    if (place->begin < 0 || place->end < place->begin)
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: data_offsets of '%s' are %" PRId64 ", %" PRId64 ", wanted 0 <= begin <= end", name, place->begin,
                               place->end);
    return FLP_OK;
}

/* The tensors must fill the data without overlap and without a hole, as the format asks: a file that does not is damaged. */
static flp_status check_ranges(range *places, size_t count, size_t data_bytes)
{
    qsort(places, count, sizeof *places, by_place);
    int64_t reached = 0;
    for (size_t i = 0; i < count; i++) {
        if (places[i].begin < reached)
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: '%s' and '%s' overlap", places[i - 1].name, places[i].name);
        if (places[i].begin > reached)
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: %" PRId64 " bytes before '%s' belong to no tensor", places[i].begin - reached, places[i].name);
        reached = places[i].end;
    }
    if ((size_t)reached == data_bytes)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: the tensors take %" PRId64 " bytes and the file holds %zu",
                           (size_t)reached > data_bytes ? "truncated" : "too long", reached, data_bytes);
}

static flp_status check_header(json_t *header, size_t data_bytes)
{
    range *places = calloc(json_object_size(header) + 1, sizeof *places);
    if (places == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%zu entries of the header", json_object_size(header));
    flp_status status = FLP_OK;
    size_t count = 0;
    const char *name;
    json_t *entry;
    json_object_foreach (header, name, entry) {
        status = read_range(name, entry, &places[count++]);
        if (status != FLP_OK)
            goto done;
    }
    status = check_ranges(places, count, data_bytes);
done:
    free(places);
    return status;
}

static flp_status refuse_name(json_t *header, const char *wanted, const char *why)
{
    flp_text names = { 0 };
    size_t count = 0;
    const char *name;
    json_t *entry;
    json_object_foreach (header, name, entry) {
        if (count < NAMES_IN_A_MESSAGE)
            flp_text_append(&names, "%s%s", count ? ", " : "", name);
        count++;
    }
    if (count > NAMES_IN_A_MESSAGE)
        flp_text_append(&names, ", ... (%zu in all)", count);
    flp_status status =
        flp_status_fail(FLP_BAD_ARGUMENT, "%s%s%s; it holds: %s", why, wanted ? " " : "", wanted ? wanted : "", names.data ? names.data : "nothing");
    flp_text_free(&names);
    return status;
}

static flp_status find_entry(json_t *header, const char *name, const char **found, json_t **entry)
{
    *found = name;
    *entry = NULL;
    if (name != NULL) {
        *entry = json_object_get(header, name);
        return *entry != NULL ? FLP_OK : refuse_name(header, name, "no tensor named");
    }
    const char *key;
    json_t *value;
    json_object_foreach (header, key, value) {
        if (*entry != NULL)
            return refuse_name(header, NULL, "add :TENSOR to the name, for the file holds several");
        *entry = value;
        *found = key;
    }
    return *entry != NULL ? FLP_OK : refuse_name(header, NULL, "no tensor");
}

static flp_status read_entry(const char *name, json_t *entry, flp_tensor *tensor)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    json_t *shape = json_object_get(entry, "shape");
    if (dtype == NULL || !json_is_array(shape))
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: '%s' has no dtype or no shape", name);
    tensor->element = flp_tensor_element_of_safetensors(dtype);
    if (tensor->element == NULL)
        return flp_status_fail(FLP_BAD_ARGUMENT, "'%s' has dtype %s, wanted BF16, F16, F32 or integers", name, dtype);
    tensor->dtype = tensor->element->dtype;
    if (json_array_size(shape) > FLP_TENSOR_RANK)
        return flp_status_fail(FLP_BAD_ARGUMENT, "'%s' has %zu dimensions, wanted at most %d", name, json_array_size(shape), FLP_TENSOR_RANK);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        json_t *extent = json_array_get(shape, (size_t)i);
        if (!json_is_integer(extent))
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: the shape of '%s' holds something other than whole numbers", name);
        tensor->shape[i] = json_integer_value(extent);
    }
    return flp_tensor_measure(tensor->element->bytes, tensor->rank, tensor->shape, &tensor->bytes);
}

static flp_status locate(json_t *header, const char *wanted, const char *data, size_t data_bytes, flp_tensor *tensor)
{
    json_object_del(header, "__metadata__"); /* the one entry that is no tensor */
    flp_status status = check_header(header, data_bytes);
    if (status != FLP_OK)
        return status;
    const char *name;
    json_t *entry;
    status = find_entry(header, wanted, &name, &entry);
    if (status != FLP_OK)
        return status;
    status = read_entry(name, entry, tensor);
    if (status != FLP_OK)
        return status;
    range place;
    status = read_range(name, entry, &place);
    if (status != FLP_OK)
        return status;
    if ((size_t)(place.end - place.begin) != tensor->bytes)
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: the shape of '%s' takes %zu bytes and its data_offsets span %" PRId64, name, tensor->bytes,
                               place.end - place.begin);
    tensor->data = data + place.begin;
    return FLP_OK;
}

flp_status flp_safetensors_header(const void *bytes, size_t count, json_t **header, size_t *data_at)
{
    uint64_t length;
    if (count < sizeof length)
        return flp_status_fail(FLP_BAD_ARGUMENT, "truncated: %zu bytes, the header's length takes 8", count);
    memcpy(&length, bytes, sizeof length);
    length = le64toh(length);
    if (length > LARGEST_HEADER)
        return flp_status_fail(FLP_BAD_ARGUMENT, "not a safetensors file: a header of %" PRIu64 " bytes, wanted at most %d", length, LARGEST_HEADER);
    if (length > count - sizeof length)
        return flp_status_fail(FLP_BAD_ARGUMENT, "truncated: the header has %" PRIu64 " bytes and %zu follow", length, count - sizeof length);
    json_error_t error;
    *header = json_loadb((const char *)bytes + sizeof length, length, JSON_REJECT_DUPLICATES, &error);
    if (*header == NULL)
        return error.text[0] ? flp_status_fail(FLP_BAD_ARGUMENT, "header: not JSON: %s (byte %d)", error.text, error.position)
                             : flp_status_fail(FLP_OUT_OF_MEMORY, "the header of %" PRIu64 " bytes", length);
    *data_at = sizeof length + length;
    if (json_is_object(*header))
        return FLP_OK;
    json_decref(*header);
    *header = NULL;
    return flp_status_fail(FLP_BAD_ARGUMENT, "header: not a JSON object");
}

flp_status flp_safetensors_parse(const void *bytes, size_t count, const char *name, flp_tensor *tensor)
{
    json_t *header = NULL;
    size_t data_at;
    flp_status status = flp_safetensors_header(bytes, count, &header, &data_at);
    if (status == FLP_OK)
        status = locate(header, name, (const char *)bytes + data_at, count - data_at, tensor);
    json_decref(header);
    return status;
}
