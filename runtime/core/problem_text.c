/* Writes and reads canonical strings by an operator's table of fields. */
#include "core/problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/dtype.h"
#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "core/operator.h"

static int has_words(const flp_field *field)
{
    return field->kind == FLP_FIELD_CHOICE || field->kind == FLP_FIELD_BITS;
}

/* ---- writing ---- */

static void append_value(const flp_field *field, const void *value, flp_text *text)
{
    char number[FLP_NUMBER_BYTES];

    switch (field->kind) {
    case FLP_FIELD_CHOICE:
    case FLP_FIELD_BITS:
        break;
    case FLP_FIELD_SIZE:
    case FLP_FIELD_COUNT:
    case FLP_FIELD_STRIDE:
        flp_text_append(text, ":%s%" PRId64, field->prefix, *(const int64_t *)value);
        break;
    case FLP_FIELD_ALIGNMENT:
        flp_text_append(text, ":%s%d", field->prefix, *(const int *)value);
        break;
    case FLP_FIELD_NUMBER:
        flp_number_format(*(const double *)value, number);
        flp_text_append(text, ":%s%s", field->prefix, number);
        break;
    case FLP_FIELD_DTYPE:
        flp_text_append(text, ":%s%s", field->prefix, flp_dtype_name(*(const flp_dtype *)value));
        break;
    case FLP_FIELD_NAME:
        flp_text_append(text, ":%s%s", field->prefix, (const char *)value);
        break;
    }
}

static void append_words(const flp_field *field, const void *value, flp_text *text)
{
    const unsigned bits = field->kind == FLP_FIELD_BITS ? *(const unsigned *)value : 1u << *(const int *)value;

    for (int i = 0; i < FLP_FIELD_WORDS; i++)
        if (field->words[i] && bits >> i & 1)
            flp_text_append(text, ":%s", field->words[i]);
}

static void append_problem(const flp_operator *op, const char *normal, flp_text *text)
{
    flp_text_append(text, "%s", op->name);
    FLP_EACH_FIELD (field, op) {
        if (has_words(field))
            append_words(field, normal + field->at, text);
        else if (field->prefix && !flp_problem_is_default(field, normal))
            append_value(field, normal + field->at, text);
    }
}

flp_status flp_problem_text_write(const flp_operator *op, const void *problem, char *text, size_t bytes)
{
    flp_problem_storage normal;
    flp_text built = { 0 };
    flp_status status;

    if (!text)
        return flp_status_fail(FLP_BAD_ARGUMENT, "text: got NULL, wanted a buffer");
    status = flp_problem_normalize(op, problem, &normal);
    if (status != FLP_OK)
        return status;
    append_problem(op, normal.bytes, &built);
    if (built.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a problem's string");
    else if (built.length >= bytes)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "bytes: got %zu, wanted at least %zu for \"%s\"", bytes, built.length + 1, built.data);
    else
        memcpy(text, built.data, built.length + 1);
    flp_text_free(&built);
    return status;
}

flp_status flp_problem_text_format(const flp_operator *op, const void *problem, char *text, size_t bytes, const flp_sizes *sizes)
{
    flp_problem_storage own;
    flp_status status = FLP_OK;

    problem = flp_sized_take(op->problem_struct, sizes, problem, &own, &status);
    return status == FLP_OK ? flp_problem_text_write(op, problem, text, bytes) : status;
}

/* ---- reading ---- */

static int read_word(const flp_field *field, const char *text, void *value)
{
    for (int i = 0; i < FLP_FIELD_WORDS; i++)
        if (field->words[i] && strcmp(field->words[i], text) == 0) {
            if (field->kind == FLP_FIELD_BITS)
                *(unsigned *)value |= 1u << i;
            else
                *(int *)value = i;
            return 1;
        }
    return 0;
}

/* 1 where text is the part of this field, with a well-formed value. flp_problem_normalize checks later whether the value is acceptable. */
static int read_field(const flp_field *field, const char *text, char *problem)
{
    const size_t length = field->prefix ? strlen(field->prefix) : 0;
    const char *digits = text + length;
    void *value = problem + field->at;
    int64_t integer;

    if (has_words(field))
        return read_word(field, text, value);
    if (!field->prefix || strncmp(text, field->prefix, length) != 0)
        return 0;
    switch (field->kind) {
    case FLP_FIELD_CHOICE:
    case FLP_FIELD_BITS:
        break;
    case FLP_FIELD_SIZE:
    case FLP_FIELD_COUNT:
    case FLP_FIELD_STRIDE:
        return flp_number_parse_integer(digits, value);
    case FLP_FIELD_ALIGNMENT:
        if (!flp_number_parse_integer(digits, &integer) || integer > INT32_MAX)
            return 0;
        *(int *)value = (int)integer;
        return 1;
    case FLP_FIELD_NUMBER:
        return flp_number_parse(digits, value);
    case FLP_FIELD_DTYPE:
        return (*(flp_dtype *)value = flp_dtype_parse(digits)) != FLP_NONE;
    case FLP_FIELD_NAME:
        if (strlen(digits) >= FLP_TOKEN_LOSS_NAME_BYTES)
            return 0;
        memcpy(value, digits, strlen(digits) + 1);
        return 1;
    }
    return 0;
}

static flp_status refuse(int index, const char *got, flp_text *wanted)
{
    flp_status status = flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%s\", wanted %s", index + 1, got, wanted->failed ? "another" : wanted->data);

    flp_text_free(wanted);
    return status;
}

/* 1: the dtype or a size. These are the first rows of the first table. */
static int is_head(const flp_field *field)
{
    return field->at == 0 || field->kind == FLP_FIELD_SIZE;
}

static int count_head(const flp_operator *op)
{
    int count = 0;

    while (op->fields[0][count].name && is_head(&op->fields[0][count]))
        count++;
    return count;
}

static void append_wanted(const flp_field *field, flp_text *text)
{
    if (field->at == 0)
        flp_text_append(text, FLP_DTYPE_FLOATS);
    else
        flp_text_append(text, "%s<%s>", field->prefix, field->value_name);
}

/* The i-th way in which the part of a field can begin: one of its words, or its prefix. NULL: there is no i-th. */
static const char *beginning(const flp_field *field, int i)
{
    if (is_head(field) || i >= FLP_FIELD_WORDS)
        return NULL;
    return has_words(field) ? field->words[i] : i == 0 ? field->prefix : NULL;
}

static flp_status refuse_option(const flp_operator *op, int index, const char *got)
{
    flp_text wanted = { 0 };
    int left = 0, all;

    FLP_EACH_FIELD (field, op)
        for (int i = 0; i < FLP_FIELD_WORDS; i++)
            left += beginning(field, i) != NULL;
    all = left;
    FLP_EACH_FIELD (field, op)
        for (int i = 0; i < FLP_FIELD_WORDS; i++) {
            const char *word = beginning(field, i);
            if (!word)
                continue;
            flp_text_append(&wanted, "%s", left == all ? "" : left == 1 ? " or " : ", ");
            left--;
            if (has_words(field))
                flp_text_append(&wanted, "%s", word);
            else
                append_wanted(field, &wanted);
        }
    return refuse(index, got, &wanted);
}

static flp_status read_option(const flp_operator *op, int index, const char *text, char *problem)
{
    FLP_EACH_FIELD (field, op)
        if (!is_head(field) && read_field(field, text, problem))
            return FLP_OK;
    return refuse_option(op, index, text);
}

/* index: the part's number, 0 for the operator's name. */
static flp_status read_head(const flp_operator *op, int index, const char *text, char *problem)
{
    flp_text wanted = { 0 };

    if (index == 0 ? strcmp(text, op->name) == 0 : read_field(&op->fields[0][index - 1], text, problem))
        return FLP_OK;
    if (index == 0)
        flp_text_append(&wanted, "%s", op->name);
    else
        append_wanted(&op->fields[0][index - 1], &wanted);
    return refuse(index, text, &wanted);
}

static flp_status refuse_short(const flp_operator *op, int parts)
{
    flp_text wanted = { 0 };
    flp_status status;

    flp_text_append(&wanted, "%s:<dtype>", op->name);
    for (int i = 1; i < count_head(op); i++) {
        flp_text_append(&wanted, ":");
        append_wanted(&op->fields[0][i], &wanted);
    }
    status = flp_status_fail(FLP_BAD_ARGUMENT, "got %d parts, wanted at least %s", parts, wanted.failed ? "more" : wanted.data);
    flp_text_free(&wanted);
    return status;
}

static flp_status read_parts(const flp_operator *op, const char *text, char *problem)
{
    const int head = 1 + count_head(op);
    char part[64];
    int index = 0;

    for (const char *at = text;; index++, at++) {
        const size_t length = strcspn(at, ":");
        flp_status status;
        if (length >= sizeof(part))
            return flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%.40s...\", wanted fewer than %zu characters", index + 1, at, sizeof(part));
        memcpy(part, at, length);
        part[length] = 0;
        status = index < head ? read_head(op, index, part, problem) : read_option(op, index, part, problem);
        if (status != FLP_OK)
            return status;
        at += length;
        if (*at == 0)
            return index + 1 >= head ? FLP_OK : refuse_short(op, index + 1);
    }
}

/* A problem has exactly one string: any other spelling of it (another order, leading zeros, a default spelled out) is refused. */
static flp_status check_canonical(const flp_operator *op, const char *text, const void *problem)
{
    char canonical[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_text_write(op, problem, canonical, sizeof(canonical));

    if (status == FLP_OK && strcmp(text, canonical) != 0)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "wanted the canonical \"%s\"", canonical);
    return status;
}

flp_status flp_problem_text_parse(const flp_operator *op, const char *text, void *problem, const flp_sizes *sizes)
{
    flp_problem_storage parsed = { .bytes = { 0 } };
    flp_status status;

    if (!text || !problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", text ? "problem" : "text");
    status = read_parts(op, text, parsed.bytes);
    if (status == FLP_OK)
        status = check_canonical(op, text, &parsed);
    if (status != FLP_OK)
        return flp_status_prefix(status, "problem \"%.200s\"", text);
    return flp_sized_give(op->problem_struct, sizes, &parsed, 1, problem);
}
