/* The file of one shard: a safetensors file whose metadata says what it is a part of. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/output_file.h"
#include "cli/tensor.h"
#include "cli/shard.h"

#define FORMAT "fusedlogp shard 1"
/* The header's length is a multiple of this, so that the data after it is aligned to elements of every type. */
#define ALIGNMENT 8

/* ---- writing ---- */

static int64_t rows_of(const flp_shard_facts *facts)
{
    const flp_shard *shard = &facts->shard;
    return flp_shard_begin(shard, shard->index + 1, facts->shape.rows) - flp_shard_begin(shard, shard->index, facts->shape.rows);
}

static json_t *number(int64_t value)
{
    return json_sprintf("%" PRId64, value);
}

/* The facts as metadata, whose values must be strings in this format. */
static json_t *describe(const flp_shard_facts *facts)
{
    json_t *about = json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:s}", "format", FORMAT, "index", number(facts->shard.index), "count",
                              number(facts->shard.count), "extent0", number(facts->shape.extents[0]), "ignore_index", number(facts->ignore_index), "result",
                              facts->result, "numerics", facts->numerics, "run", facts->run);
    if (facts->shape.rank == 2)
        json_object_set_new(about, "extent1", number(facts->shape.extents[1]));
    return about;
}

static const char *type_name(flp_dtype dtype)
{
    return dtype == FLP_F32 ? "F32" : dtype == FLP_I32 ? "I32" : "I64";
}

static char *make_header(const flp_shard_facts *facts, int count, const flp_result_column *columns)
{
    json_t *header = json_pack("{s:o}", "__metadata__", describe(facts));
    int64_t rows = rows_of(facts), begin = 0;
    for (int i = 0; i < count; i++) {
        int64_t end = begin + rows * flp_dtype_bytes(columns[i].dtype);
        json_object_set_new(header, columns[i].name,
                            json_pack("{s:s, s:[I], s:[I, I]}", "dtype", type_name(columns[i].dtype), "shape", (json_int_t)rows, "data_offsets",
                                      (json_int_t)begin, (json_int_t)end));
        begin = end;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

flp_status flp_shard_file_publish(const char *path, const flp_shard_facts *facts, int count, const flp_result_column *columns)
{
    flp_text text = { 0 };
    char *header = make_header(facts, count, columns);
    size_t length = header ? strlen(header) : 0;
    uint64_t padded = htole64((length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    flp_text_append_bytes(&text, &padded, sizeof padded);
    flp_text_append(&text, "%-*s", (int)le64toh(padded), header ? header : "");
    for (int i = 0; i < count; i++)
        flp_text_append_bytes(&text, columns[i].data, (size_t)rows_of(facts) * (size_t)flp_dtype_bytes(columns[i].dtype));
    flp_status status = header == NULL || text.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "%s", path) : flp_output_file_write(path, text.data, text.length);
    free(header);
    flp_text_free(&text);
    return status;
}

/* ---- reading ---- */

static int read_number(json_t *about, const char *key, int64_t *value)
{
    const char *text = json_string_value(json_object_get(about, key));
    char *end = NULL;
    errno = 0;
    *value = text != NULL ? strtoll(text, &end, 10) : 0;
    return text != NULL && end != text && *end == 0 && errno == 0;
}

static int read_word(json_t *about, const char *key, char *word, size_t bytes)
{
    const char *text = json_string_value(json_object_get(about, key));
    return text != NULL && snprintf(word, bytes, "%s", text) < (int)bytes;
}

static int read_facts(json_t *about, flp_shard_facts *facts)
{
    flp_result_shape *shape = &facts->shape;
    const char *format = json_string_value(json_object_get(about, "format"));
    if (format == NULL || strcmp(format, FORMAT) != 0)
        return 0;
    shape->rank = read_number(about, "extent1", &shape->extents[1]) ? 2 : 1;
    if (!read_number(about, "extent0", &shape->extents[0]) || shape->extents[0] < 0 || (shape->rank == 2 && shape->extents[1] < 0))
        return 0;
    if (__builtin_mul_overflow(shape->extents[0], shape->rank == 2 ? shape->extents[1] : 1, &shape->rows))
        return 0;
    return read_number(about, "index", &facts->shard.index) && read_number(about, "count", &facts->shard.count) && facts->shard.index >= 0 &&
           facts->shard.index < facts->shard.count && read_number(about, "ignore_index", &facts->ignore_index) &&
           read_word(about, "result", facts->result, sizeof facts->result) && read_word(about, "numerics", facts->numerics, sizeof facts->numerics) &&
           read_word(about, "run", facts->run, sizeof facts->run);
}

/* The results that a shard may hold, with their dtypes; logp alone has the targets beside it. */
static const struct {
    const char *name;
    flp_dtype dtype;
} results[] = { { "logp", FLP_F32 }, { "lse", FLP_F32 }, { "entropy", FLP_F32 }, { "argmax", FLP_I32 } };

/* FLP_NONE: no result has this name. */
static flp_dtype dtype_of_result(const char *name)
{
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        if (strcmp(results[i].name, name) == 0)
            return results[i].dtype;
    return FLP_NONE;
}

/* dtype: FLP_NONE for targets, which have 32 or 64 bits. Each column maps the file again, so that it can be closed as any tensor. */
static flp_status open_column(const char *path, const char *name, flp_dtype dtype, const flp_shard_facts *facts, flp_tensor *column)
{
    flp_status status = flp_tensor_file_open_named(path, name, column);
    if (status != FLP_OK)
        return status;
    flp_mapped_file_forget(&column->file);
    if (column->rank != 1 || column->shape[0] != rows_of(facts))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: '%s' has not the %" PRId64 " rows of its shard", path, name, rows_of(facts));
    if (dtype != FLP_NONE ? column->dtype != dtype : column->dtype != FLP_I32 && column->dtype != FLP_I64)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: '%s' is %s, wanted %s", path, name, flp_dtype_name(column->dtype),
                               dtype != FLP_NONE ? flp_dtype_name(dtype) : "i32 or i64");
    return FLP_OK;
}

static flp_status read_header(const char *path, flp_shard_file *file, int *has_target)
{
    flp_mapped_file mapped;
    json_t *header = NULL;
    size_t data_at;
    flp_status status = flp_mapped_file_open(path, &mapped);
    if (status == FLP_OK)
        status = flp_safetensors_header(mapped.bytes, mapped.count, &header, &data_at);
    if (status == FLP_OK && !read_facts(json_object_get(header, "__metadata__"), &file->facts))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "not a shard that fusedlogp score --shard wrote");
    *has_target = json_object_get(header, "target") != NULL;
    json_decref(header);
    flp_mapped_file_close(&mapped);
    return status == FLP_OK ? status : flp_status_prefix(status, "%s", path);
}

flp_status flp_shard_file_open(const char *path, flp_shard_file *file)
{
    int has_target = 0;
    memset(file, 0, sizeof *file);
    flp_status status = read_header(path, file, &has_target);
    if (status != FLP_OK)
        return status;
    const flp_dtype dtype = dtype_of_result(file->facts.result);
    if (dtype == FLP_NONE)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: result: got '%s', wanted logp, lse, entropy or argmax", path, file->facts.result);
    if (has_target != (strcmp(file->facts.result, "logp") == 0))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: a shard of %s, wanted it with%s targets", path, file->facts.result, has_target ? "out" : "");
    if (has_target)
        status = open_column(path, "target", FLP_NONE, &file->facts, &file->column[file->columns++]);
    if (status == FLP_OK)
        status = open_column(path, file->facts.result, dtype, &file->facts, &file->column[file->columns++]);
    return status;
}

void flp_shard_file_close(flp_shard_file *file)
{
    for (int i = 0; i < file->columns; i++)
        flp_tensor_file_close(&file->column[i]);
    memset(file, 0, sizeof *file);
}
