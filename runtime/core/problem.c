/* Checks and fills in problems and packs dispatch keys by an operator's table of fields. */
#include "core/problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/int64.h"
#include "base/dtype.h"
#include "base/status.h"
#include "core/operator.h"

/* ---- what 0 stands for ---- */

static int choice_of(const flp_field *field, const char *problem)
{
    const int given = flp_problem_int(problem, field->at);

    if (given || !field->otherwise)
        return given;
    return field->otherwise == FLP_FIELD_AS_DTYPE ? flp_problem_int(problem, 0) : field->otherwise;
}

static int is_transposed(const flp_field *field, const char *problem)
{
    return field->transposed_at && flp_problem_int(problem, field->transposed_at);
}

static int64_t columns_of(const flp_field *field, const char *problem)
{
    return flp_problem_int64(problem, is_transposed(field, problem) ? field->rows_at : field->columns_at);
}

static int64_t default_stride(const flp_field *field, const char *problem)
{
    const int64_t like = field->like_at ? flp_problem_int64(problem, field->like_at) : 0;

    return like ? like : columns_of(field, problem);
}

static int64_t stride_of(const flp_field *field, const char *problem)
{
    const int64_t given = flp_problem_int64(problem, field->at);

    return given || flp_problem_int(problem, field->dtype_at) == FLP_NONE ? given : default_stride(field, problem);
}

int flp_problem_is_default(const flp_field *field, const void *normal)
{
    const char *problem = normal, *value = problem + field->at;

    switch (field->kind) {
    case FLP_FIELD_CHOICE:
    case FLP_FIELD_BITS:
    case FLP_FIELD_SIZE:
        return 0;
    case FLP_FIELD_DTYPE:
        return flp_problem_int(problem, field->at) == (field->otherwise == FLP_FIELD_AS_DTYPE ? flp_problem_int(problem, 0) : field->otherwise);
    case FLP_FIELD_STRIDE:
        return flp_problem_int(problem, field->dtype_at) == FLP_NONE || flp_problem_int64(problem, field->at) == default_stride(field, problem);
    case FLP_FIELD_ALIGNMENT:
        return flp_problem_int(problem, field->at) == FLP_PROBLEM_ALIGNMENT;
    case FLP_FIELD_COUNT:
        return flp_problem_int64(problem, field->at) == 0;
    case FLP_FIELD_NUMBER:
        return *(const double *)(const void *)value == 0;
    case FLP_FIELD_NAME:
        return *value == 0;
    }
    return 0;
}

/* ---- checks ---- */

flp_status flp_problem_check_range(const char *field, int64_t got, int64_t low, int64_t high)
{
    if (got >= low && got <= high)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted %" PRId64 " .. %" PRId64, field, got, low, high);
}

static int allows(const flp_field *field, int value)
{
    return (unsigned)value < 8 && field->allowed >> value & 1;
}

static int may_be_empty(const flp_field *field, const char *normal)
{
    return field->empty_at > 0 && flp_problem_int64(normal, field->empty_at) > 0;
}

static flp_status fill_choice(const flp_field *field, char *normal)
{
    const int value = choice_of(field, normal);

    if (!allows(field, value))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted %s", field->name, value, field->wanted);
    *(int *)(void *)(normal + field->at) = value;
    return FLP_OK;
}

static flp_status fill_stride(const flp_field *field, char *normal)
{
    const int64_t stride = stride_of(field, normal), columns = columns_of(field, normal);
    const flp_dtype dtype = (flp_dtype)flp_problem_int(normal, field->dtype_at);
    const int64_t rows = field->rows_at ? flp_problem_int64(normal, is_transposed(field, normal) ? field->columns_at : field->rows_at) : FLP_PROBLEM_ROWS_MAX;
    int64_t bytes;

    if (dtype == FLP_NONE)
        return FLP_OK;
    if (stride < columns)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted 0 or at least the row's %" PRId64 " elements", field->name, stride, columns);
    /* Of no rows, a stride is that of one: workspaces have some, too. */
    if (__builtin_mul_overflow(stride, flp_int64_larger(rows, 1), &bytes) || __builtin_mul_overflow(bytes, flp_dtype_bytes(dtype), &bytes))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted %" PRId64 " rows of that size to stay below 2^63 bytes", field->name, stride,
                               rows);
    *(int64_t *)(void *)(normal + field->at) = stride;
    return FLP_OK;
}

/* More alignment than the widest load changes nothing. */
static flp_status fill_alignment(const flp_field *field, char *normal)
{
    const int given = flp_problem_int(normal, field->at), least = flp_dtype_bytes((flp_dtype)flp_problem_int(normal, 0));
    const int alignment = given ? given : FLP_PROBLEM_ALIGNMENT;

    if (alignment < least || (alignment & (alignment - 1)))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted 0 or a power of two from %d bytes, one element", field->name, alignment, least);
    *(int *)(void *)(normal + field->at) = alignment < FLP_PROBLEM_ALIGNMENT ? alignment : FLP_PROBLEM_ALIGNMENT;
    return FLP_OK;
}

static flp_status check_number(const flp_field *field, double value)
{
    if (value == 0 || (value >= field->least && value <= field->most))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %g, wanted %s", field->name, value, field->wanted);
}

static flp_status fill_field(const flp_field *field, char *normal)
{
    switch (field->kind) {
    case FLP_FIELD_CHOICE:
    case FLP_FIELD_DTYPE:
        return fill_choice(field, normal);
    case FLP_FIELD_SIZE:
        return flp_problem_check_range(field->name, flp_problem_int64(normal, field->at), may_be_empty(field, normal) ? 0 : field->low, field->high);
    case FLP_FIELD_STRIDE:
        return fill_stride(field, normal);
    case FLP_FIELD_ALIGNMENT:
        return fill_alignment(field, normal);
    case FLP_FIELD_NUMBER:
        return check_number(field, *(const double *)(const void *)(normal + field->at));
    case FLP_FIELD_BITS:
    case FLP_FIELD_COUNT:
    case FLP_FIELD_NAME:
        break; /* for the operator's own check */
    }
    return FLP_OK;
}

flp_status flp_problem_normalize(const flp_operator *op, const void *problem, void *normal)
{
    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_%s_problem", op->name);
    memcpy(normal, problem, op->problem_bytes);
    FLP_EACH_FIELD (field, op) {
        flp_status status = fill_field(field, normal);
        if (status != FLP_OK)
            return status;
    }
    return op->check ? op->check(normal) : FLP_OK;
}

flp_status flp_problem_check_field(const flp_operator *op, size_t at, const void *problem, int *value)
{
    flp_problem_storage normal;
    flp_status status = FLP_OK;

    memcpy(&normal, problem, op->problem_bytes);
    FLP_EACH_FIELD (field, op)
        if (field->at == (int)at)
            status = fill_field(field, normal.bytes);
    *value = flp_problem_int(normal.bytes, (int)at);
    return status;
}

/* ---- the dispatch key ---- */

int64_t flp_problem_memory_budget(const flp_operator *op, const void *normal)
{
    FLP_EACH_FIELD (field, op)
        if (strcmp(field->name, "memory_budget") == 0)
            return flp_problem_int64(normal, field->at);
    return 0;
}

int flp_problem_pack(const flp_operator *op, const void *given, flp_dispatch_key *key)
{
    const char *problem = given;
    uint64_t *size = key->sizes, choices = 0;
    int known = 1;

    FLP_EACH_FIELD (field, op) {
        switch (field->kind) {
        case FLP_FIELD_CHOICE:
        case FLP_FIELD_DTYPE:
        case FLP_FIELD_BITS: {
            const int value = choice_of(field, problem);
            known &= allows(field, value) && !(field->takes_plan && value);
            choices = choices << flp_field_key_bits(field) | (unsigned)value;
            break;
        }
        case FLP_FIELD_SIZE:
            if (field->at == (int)op->rows_at)
                break;
            *size++ = (uint64_t)flp_problem_int64(problem, field->at);
            break;
        case FLP_FIELD_COUNT:
        case FLP_FIELD_NUMBER:
            memcpy(size++, problem + field->at, sizeof(*size));
            break;
        case FLP_FIELD_STRIDE:
            *size++ = (uint64_t)stride_of(field, problem);
            break;
        case FLP_FIELD_ALIGNMENT:
            break; /* the call's addresses decide */
        case FLP_FIELD_NAME: {
            const size_t length = strnlen(problem + field->at, FLP_TOKEN_LOSS_NAME_BYTES);
            known &= length < FLP_TOKEN_LOSS_NAME_BYTES;
            memcpy(size, problem + field->at, length);
            size += FLP_TOKEN_LOSS_NAME_BYTES / sizeof(*size);
            break;
        }
        }
    }
    key->choices = choices;
    return known;
}

flp_status flp_problem_refuse(const flp_operator *op, const void *problem)
{
    flp_problem_storage normal;
    flp_status status = flp_problem_normalize(op, problem, &normal);

    if (status != FLP_OK)
        return status;
    FLP_EACH_FIELD (field, op)
        if (field->takes_plan && flp_problem_int(normal.bytes, field->at))
            return flp_status_fail(FLP_BAD_ARGUMENT, "problem.%s: got %d, wanted 0: it takes a plan", field->name, flp_problem_int(normal.bytes, field->at));
    return flp_status_fail(FLP_INTERNAL, "an acceptable problem does not fit a dispatch key");
}
