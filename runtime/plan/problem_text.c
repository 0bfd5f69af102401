/* Writes and reads canonical strings by an operator's table of parts. KEEP IN STEP: problem string. */
#include "plan/problem_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/status.h"
#include "base/text.h"
#include "cpu/convert.h"
#include "plan/operator.h"

static size_t field_bytes(flp_part_kind kind)
{
    if (kind == FLP_PART_NAME)
        return FLP_TOKEN_LOSS_NAME_BYTES;
    return kind == FLP_PART_SIZE ? sizeof(int64_t) : kind == FLP_PART_NUMBER ? sizeof(double) : sizeof(int);
}

/* ---- writing ---- */

static void append_part(const flp_problem_part *part, const char *problem, flp_text *text)
{
    const void *field = problem + part->at;
    char number[FLP_NUMBER_BYTES];

    flp_text_append(text, ":%s", part->word);
    switch (part->kind) {
    case FLP_PART_WORD:
    case FLP_PART_BIT:
        break;
    case FLP_PART_SIZE:
        flp_text_append(text, "%" PRId64, *(const int64_t *)field);
        break;
    case FLP_PART_INT:
        flp_text_append(text, "%d", *(const int *)field);
        break;
    case FLP_PART_NUMBER:
        flp_number_format(*(const double *)field, number);
        flp_text_append(text, "%s", number);
        break;
    case FLP_PART_DTYPE:
        flp_text_append(text, "%s", flp_dtype_name(*(const flp_dtype *)field));
        break;
    case FLP_PART_NAME:
        flp_text_append(text, "%s", (const char *)field);
        break;
    }
}

/* Whether the field differs from what a zero there stands for beside this problem's other fields. */
static int is_chosen(const flp_operator *operator, const flp_problem_part *part, const char *normal)
{
    const size_t bytes = field_bytes(part->kind);
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_problem_storage without, filled;

    if (part->kind == FLP_PART_BIT)
        return (*(const unsigned *)(const void *)(normal + part->at) & (unsigned)part->value) != 0;
    if (part->kind == FLP_PART_WORD && *(const int *)(const void *)(normal + part->at) != part->value)
        return 0;
    memcpy(without.bytes, normal, operator->problem_bytes);
    memset(without.bytes + part->at, 0, bytes);
    flp_status_keep_message(callers_message);
    if (operator->normalize(&without, &filled) != FLP_OK) {
        flp_status_restore_message(callers_message);
        return 1; /* another field needs it */
    }
    return memcmp(filled.bytes + part->at, normal + part->at, bytes) != 0;
}

static void append_problem(const flp_operator *operator, const char *normal, flp_text *text)
{
    const flp_problem_syntax *syntax = operator->syntax;

    flp_text_append(text, "%s:%s", operator->name, flp_dtype_name(*(const flp_dtype *)(const void *)(normal + syntax->dtype_at)));
    for (const flp_problem_part *part = syntax->sizes; part->word; part++)
        append_part(part, normal, text);
    for (const flp_problem_part *part = syntax->options; part->word; part++)
        if (is_chosen(operator, part, normal))
            append_part(part, normal, text);
}

flp_status flp_problem_text_write(const flp_operator *operator, const void *problem, char *text, size_t bytes)
{
    flp_problem_storage normal;
    flp_text built = { 0 };
    flp_status status;

    if (!text)
        return flp_status_fail(FLP_BAD_ARGUMENT, "text: got NULL, wanted a buffer");
    status = operator->normalize(problem, &normal);
    if (status != FLP_OK)
        return status;
    append_problem(operator, normal.bytes, &built);
    if (built.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a problem's string");
    else if (built.length >= bytes)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "bytes: got %zu, wanted at least %zu for \"%s\"", bytes, built.length + 1,
                                 built.data);
    else
        memcpy(text, built.data, built.length + 1);
    flp_text_free(&built);
    return status;
}

flp_status flp_problem_text_format(const flp_operator *operator, const void *problem, char *text, size_t bytes, const flp_sizes *sizes)
{
    flp_problem_storage own;
    flp_status status = FLP_OK;

    problem = flp_sized_take(operator->problem_struct, sizes, problem, &own, &status);
    return status == FLP_OK ? flp_problem_text_write(operator, problem, text, bytes) : status;
}

/* ---- reading ---- */

/* 1 where text is this part with a well-formed value; whether that is acceptable is for the operator's normalize. */
static int read_part(const flp_problem_part *part, const char *text, char *problem)
{
    const size_t length = strlen(part->word);
    const char *value = text + length;
    void *field = problem + part->at;
    int64_t integer;

    if (strncmp(text, part->word, length) != 0)
        return 0;
    switch (part->kind) {
    case FLP_PART_WORD:
        if (*value)
            return 0;
        *(int *)field = part->value;
        return 1;
    case FLP_PART_BIT:
        if (*value)
            return 0;
        *(unsigned *)field |= (unsigned)part->value;
        return 1;
    case FLP_PART_SIZE:
        return flp_number_parse_integer(value, field);
    case FLP_PART_INT:
        if (!flp_number_parse_integer(value, &integer) || integer > INT32_MAX)
            return 0;
        *(int *)field = (int)integer;
        return 1;
    case FLP_PART_NUMBER:
        return flp_number_parse(value, field);
    case FLP_PART_DTYPE:
        return (*(flp_dtype *)field = flp_dtype_parse(value)) != FLP_NONE;
    case FLP_PART_NAME:
        if (strlen(value) >= FLP_TOKEN_LOSS_NAME_BYTES)
            return 0;
        memcpy(field, value, strlen(value) + 1);
        return 1;
    }
    return 0;
}

static void append_wanted(const flp_problem_part *part, flp_text *text)
{
    if (part->value_name)
        flp_text_append(text, "%s<%s>", part->word, part->value_name);
    else
        flp_text_append(text, "%s", part->word);
}

static flp_status refuse(int index, const char *got, flp_text *wanted)
{
    flp_status status = flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%s\", wanted %s", index + 1, got,
                                        wanted->failed ? "another" : wanted->data);

    flp_text_free(wanted);
    return status;
}

static flp_status read_option(const flp_problem_part *options, int index, const char *text, char *problem)
{
    flp_text wanted = { 0 };

    for (const flp_problem_part *part = options; part->word; part++)
        if (read_part(part, text, problem))
            return FLP_OK;
    for (const flp_problem_part *part = options; part->word; part++) {
        flp_text_append(&wanted, part == options ? "" : part[1].word ? ", " : " or ");
        append_wanted(part, &wanted);
    }
    return refuse(index, text, &wanted);
}

/* The operator and the dtype, then the sizes. index: the part's place, 0 for the operator. */
static flp_status read_head(const flp_operator *operator, int index, const char *text, char *problem)
{
    const flp_problem_syntax *syntax = operator->syntax;
    flp_text wanted = { 0 };

    if (index == 0) {
        if (strcmp(text, operator->name) == 0)
            return FLP_OK;
        flp_text_append(&wanted, "%s", operator->name);
    } else if (index == 1) {
        flp_dtype dtype = flp_dtype_parse(text);
        memcpy(problem + syntax->dtype_at, &dtype, sizeof(dtype));
        if (dtype != FLP_NONE)
            return FLP_OK;
        flp_text_append(&wanted, "bf16, f16 or f32");
    } else {
        if (read_part(&syntax->sizes[index - 2], text, problem))
            return FLP_OK;
        append_wanted(&syntax->sizes[index - 2], &wanted);
    }
    return refuse(index, text, &wanted);
}

static int count_sizes(const flp_problem_syntax *syntax)
{
    int count = 0;

    while (syntax->sizes[count].word)
        count++;
    return count;
}

static flp_status refuse_short(const flp_operator *operator, int parts)
{
    flp_text wanted = { 0 };
    flp_status status;

    flp_text_append(&wanted, "%s:<dtype>", operator->name);
    for (const flp_problem_part *part = operator->syntax->sizes; part->word; part++) {
        flp_text_append(&wanted, ":");
        append_wanted(part, &wanted);
    }
    status = flp_status_fail(FLP_BAD_ARGUMENT, "got %d parts, wanted at least %s", parts, wanted.failed ? "more" : wanted.data);
    flp_text_free(&wanted);
    return status;
}

static flp_status read_parts(const flp_operator *operator, const char *text, char *problem)
{
    const int head = 2 + count_sizes(operator->syntax);
    char part[64];
    int index = 0;

    for (const char *at = text;; index++, at++) {
        const size_t length = strcspn(at, ":");
        flp_status status;
        if (length >= sizeof(part))
            return flp_status_fail(FLP_BAD_ARGUMENT, "part %d: got \"%.40s...\", wanted fewer than %zu characters", index + 1, at,
                                   sizeof(part));
        memcpy(part, at, length);
        part[length] = 0;
        status = index < head ? read_head(operator, index, part, problem) : read_option(operator->syntax->options, index, part, problem);
        if (status != FLP_OK)
            return status;
        at += length;
        if (*at == 0)
            return index + 1 >= head ? FLP_OK : refuse_short(operator, index + 1);
    }
}

/* A problem has one string: what formats differently (another order, leading zeros, a default spelled out) is refused. */
static flp_status check_canonical(const flp_operator *operator, const char *text, const void *problem)
{
    char canonical[FLP_PROBLEM_TEXT_BYTES];
    flp_status status = flp_problem_text_write(operator, problem, canonical, sizeof(canonical));

    if (status == FLP_OK && strcmp(text, canonical) != 0)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "wanted the canonical \"%s\"", canonical);
    return status;
}

flp_status flp_problem_text_parse(const flp_operator *operator, const char *text, void *problem, const flp_sizes *sizes)
{
    flp_problem_storage parsed = { .bytes = { 0 } };
    flp_status status;

    if (!text || !problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", text ? "problem" : "text");
    status = read_parts(operator, text, parsed.bytes);
    if (status == FLP_OK)
        status = check_canonical(operator, text, &parsed);
    if (status != FLP_OK)
        return flp_status_prefix(status, "problem \"%.200s\"", text);
    return flp_sized_give(operator->problem_struct, sizes, &parsed, 1, problem);
}
