/* Writes results, one value per row, as .npy, .csv or .json, as the file's extension says. */
#include "cli/result_file.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/output_file.h"
#include "cli/tensor.h"

typedef void render(const flp_result_shape *shape, int count, const flp_result_column *columns, flp_text *text);

static int64_t integer_at(const flp_result_column *column, int64_t row)
{
    return column->dtype == FLP_I64 ? ((const int64_t *)column->data)[row] : ((const int32_t *)column->data)[row];
}

double flp_result_mean(const flp_result_column *target, int64_t ignore_index, const float *values, int64_t rows, int64_t *tokens)
{
    double sum = 0;
    *tokens = 0;
    for (int64_t row = 0; row < rows; row++) {
        if (integer_at(target, row) == ignore_index)
            continue;
        sum += (double)values[row];
        ++*tokens;
    }
    return sum / (double)*tokens;
}

double flp_result_printable(double value)
{
    return isnan(value) ? NAN : value;
}

static void render_npy(const flp_result_shape *shape, int count, const flp_result_column *columns, flp_text *text)
{
    const flp_result_column *result = &columns[count - 1];
    char header[FLP_NPY_HEADER_BYTES];
    flp_npy_header(result->dtype, shape->rank, shape->extents, header);
    flp_text_append_bytes(text, header, sizeof header);
    flp_text_append_bytes(text, result->data, (size_t)shape->rows * (size_t)flp_dtype_bytes(result->dtype));
}

static void render_csv(const flp_result_shape *shape, int count, const flp_result_column *columns, flp_text *text)
{
    flp_text_append(text, "row");
    for (int i = 0; i < count; i++)
        flp_text_append(text, ",%s", columns[i].name);
    flp_text_append(text, "\n");
    for (int64_t row = 0; row < shape->rows && !text->failed; row++) {
        flp_text_append(text, "%" PRId64, row);
        for (int i = 0; i < count; i++) {
            if (columns[i].dtype == FLP_F32)
                flp_text_append(text, ",%.9g", flp_result_printable(((const float *)columns[i].data)[row]));
            else
                flp_text_append(text, ",%" PRId64, integer_at(&columns[i], row));
        }
        flp_text_append(text, "\n");
    }
}

static json_t *json_column(const flp_result_column *column, int64_t rows)
{
    json_t *array = json_array();
    for (int64_t row = 0; array != NULL && row < rows; row++) {
        json_t *value;
        if (column->dtype != FLP_F32) {
            value = json_integer(integer_at(column, row));
        } else {
            double real = ((const float *)column->data)[row];
            value = isfinite(real) ? json_real(real) : json_null();
        }
        if (json_array_append_new(array, value) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static void render_json(const flp_result_shape *shape, int count, const flp_result_column *columns, flp_text *text)
{
    json_t *object = json_pack("{s:I}", "rows", (json_int_t)shape->rows);
    int failed = object == NULL;
    for (int i = 0; i < count && !failed; i++)
        failed = json_object_set_new(object, columns[i].name, json_column(&columns[i], shape->rows)) != 0;
    char *bytes = failed ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (bytes != NULL)
        flp_text_append(text, "%s\n", bytes);
    else
        text->failed = 1;
    free(bytes);
    json_decref(object);
}

static render *renderer_of(const char *path)
{
    static const struct {
        const char *extension;
        render *function;
    } known[] = { { ".npy", render_npy }, { ".csv", render_csv }, { ".json", render_json } };
    const char *extension = strrchr(path, '.');
    for (size_t i = 0; extension != NULL && i < sizeof known / sizeof known[0]; i++)
        if (strcmp(extension, known[i].extension) == 0)
            return known[i].function;
    if (strcmp(path, "-") == 0)
        return render_npy;
    /* /dev/stdout and the like have no extension. */
    return strncmp(path, "/dev/", 5) == 0 ? render_csv : NULL;
}

int flp_result_file_accepts(const char *path)
{
    return renderer_of(path) != NULL;
}

flp_status flp_result_file_publish(const char *path, const flp_result_shape *shape, int count, const flp_result_column *columns)
{
    render *function = renderer_of(path);
    if (function == NULL)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: wanted a name that ends in .npy, .csv or .json, or -", path);
    flp_text text = { 0 };
    function(shape, count, columns, &text);
    flp_status status = FLP_OK;
    if (text.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "%s: %" PRId64 " rows", path, shape->rows);
    if (status == FLP_OK)
        status = flp_output_file_write(path, text.data, text.length);
    flp_text_free(&text);
    return status;
}
