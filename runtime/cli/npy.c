/* NumPy's .npy format, versions 1 to 3: the magic, a header that is a Python dict literal, the elements. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/status.h"
#include "cli/tensor.h"

typedef struct {
    const char *at, *end;
} cursor;

static void skip_space(cursor *text)
{
    while (text->at < text->end && (*text->at == ' ' || *text->at == '\n' || *text->at == '\t'))
        text->at++;
}

static int take(cursor *text, char wanted)
{
    skip_space(text);
    if (text->at == text->end || *text->at != wanted)
        return 0;
    text->at++;
    return 1;
}

static int take_word(cursor *text, const char *word)
{
    size_t length = strlen(word);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, word, length) != 0)
        return 0;
    text->at += length;
    return 1;
}

/* A quoted string without escapes, which is all that NumPy writes here. */
static int take_string(cursor *text, char *value, size_t bytes)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return 0;
    char quote = *text->at++;
    size_t length = 0;
    while (text->at < text->end && *text->at != quote && length + 1 < bytes)
        value[length++] = *text->at++;
    value[length] = 0;
    return take(text, quote);
}

static int take_extent(cursor *text, int64_t *extent)
{
    skip_space(text);
    const char *start = text->at;
    for (*extent = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
        if (__builtin_mul_overflow(*extent, 10, extent) || __builtin_add_overflow(*extent, *text->at - '0', extent))
            return 0;
    return text->at > start;
}

static flp_status take_shape(cursor *text, flp_tensor *tensor)
{
    if (!take(text, '('))
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'shape' is not a tuple");
    tensor->rank = 0;
    while (!take(text, ')')) {
        if (tensor->rank == FLP_TENSOR_RANK)
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'shape' has more than %d extents", FLP_TENSOR_RANK);
        if (!take_extent(text, &tensor->shape[tensor->rank++]))
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'shape' holds something other than whole numbers below 2^63");
        if (!take(text, ',')) {
            if (take(text, ')'))
                break;
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'shape' is not closed");
        }
    }
    return FLP_OK;
}

static flp_status find_element(const char *descr, flp_tensor *tensor)
{
    tensor->element = flp_tensor_element_of_npy(descr);
    if (tensor->element == NULL && descr[0] == '>')
        return flp_status_fail(FLP_BAD_ARGUMENT, "dtype '%s' is big endian, wanted little endian", descr);
    if (tensor->element == NULL)
        return flp_status_fail(FLP_BAD_ARGUMENT, "dtype '%s', wanted <f4, <f2, <V2 (bf16) or integers", descr);
    tensor->dtype = tensor->element->dtype;
    return FLP_OK;
}

static flp_status parse_header(cursor text, flp_tensor *tensor)
{
    char key[32], descr[64];
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;
    if (!take(&text, '{'))
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: not a dict");
    while (!take(&text, '}')) {
        if (!take_string(&text, key, sizeof key) || !take(&text, ':'))
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: wanted a quoted key and a colon");
        if (strcmp(key, "descr") == 0) {
            if (!take_string(&text, descr, sizeof descr))
                return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'descr' is not a plain dtype (structured arrays are not read)");
            seen |= DESCR;
        } else if (strcmp(key, "fortran_order") == 0) {
            if (take_word(&text, "True"))
                return flp_status_fail(FLP_BAD_ARGUMENT, "the array is in Fortran order, wanted C order (numpy.ascontiguousarray)");
            if (!take_word(&text, "False"))
                return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'fortran_order' is neither True nor False");
            seen |= ORDER;
        } else if (strcmp(key, "shape") == 0) {
            flp_status status = take_shape(&text, tensor);
            if (status != FLP_OK)
                return status;
            seen |= SHAPE;
        } else {
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: unknown key '%s'", key);
        }
        if (!take(&text, ',')) {
            if (take(&text, '}'))
                break;
            return flp_status_fail(FLP_BAD_ARGUMENT, "header: wanted a comma or the end of the dict behind '%s'", key);
        }
    }
    if (seen != (DESCR | ORDER | SHAPE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "header: 'descr', 'fortran_order' or 'shape' is missing");
    return find_element(descr, tensor);
}

flp_status flp_npy_parse(const void *bytes, size_t count, flp_tensor *tensor)
{
    const unsigned char *file = bytes;
    if (count < 10 || memcmp(file, "\x93NUMPY", 6) != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "not a .npy file: the magic is missing");
    if (file[6] < 1 || file[6] > 3)
        return flp_status_fail(FLP_BAD_ARGUMENT, ".npy version %d, wanted 1, 2 or 3", file[6]);
    size_t start = file[6] == 1 ? 10 : 12;
    size_t length = file[8] | (size_t)file[9] << 8;
    if (start == 12) {
        if (count < start)
            return flp_status_fail(FLP_BAD_ARGUMENT, "truncated: %zu bytes, the header's length is missing", count);
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    }
    if (length > count - start)
        return flp_status_fail(FLP_BAD_ARGUMENT, "truncated: the header has %zu bytes and %zu follow", length, count - start);
    flp_status status = parse_header((cursor){ (const char *)file + start, (const char *)file + start + length }, tensor);
    if (status != FLP_OK)
        return status;
    status = flp_tensor_measure(tensor->element->bytes, tensor->rank, tensor->shape, &tensor->bytes);
    if (status != FLP_OK)
        return status;
    size_t held = count - start - length;
    if (tensor->bytes != held)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: the shape takes %zu bytes and the file holds %zu", tensor->bytes > held ? "truncated" : "too long",
                               tensor->bytes, held);
    tensor->data = file + start + length;
    return FLP_OK;
}

void flp_npy_header(flp_dtype dtype, int rank, const int64_t *shape, char header[FLP_NPY_HEADER_BYTES])
{
    char dict[FLP_NPY_HEADER_BYTES];
    int length = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype == FLP_F32 ? "<f4" : "<i4");
    for (int i = 0; i < rank; i++)
        length += snprintf(dict + length, sizeof dict - (size_t)length, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
    length += snprintf(dict + length, sizeof dict - (size_t)length, "%s), }", rank == 1 ? "," : "");
    memset(header, ' ', FLP_NPY_HEADER_BYTES);
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10); /* version 1.0, 118 bytes of dict and padding */
    memcpy(header + 10, dict, (size_t)length);
    header[FLP_NPY_HEADER_BYTES - 1] = '\n';
}
