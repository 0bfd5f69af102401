/* Writes, reads and checks the text of a record, by a table of its fields. */
#include "tune/record.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/number.h"
#include "base/status.h"

typedef enum { TEXT, TUNING, DIGEST, DATE, CHOICE, INTEGER, NUMBER } kind;

typedef struct {
    const char *key;
    kind kind;
    size_t at, bytes;         /* bytes: of a text with its 0 byte */
    double least;             /* of an INTEGER or NUMBER */
    const char *const *names; /* of a CHOICE */
    const char *wanted;
} field;

const char *const flp_regime_names[] = { "sustained", "burst", NULL };
const char *const flp_tuning_end_names[] = { "settled", "rounds", "budget", "interrupted", NULL };

static const char head[] = "fusedlogp record ", default_tuning[] = "default";

#define AT(member) offsetof(flp_record, member), sizeof(((flp_record *)0)->member)
static const field fields[] = {
    { "problem", TEXT, AT(identity.problem), .wanted = "printable characters" },
    { "arch", TEXT, AT(identity.arch), .wanted = "printable characters" },
    { "numerics", TEXT, AT(identity.numerics), .wanted = "printable characters" },
    { "templates", DIGEST, AT(identity.templates), .wanted = "64 hexadecimal digits" },
    { "selection", DIGEST, AT(identity.selection), .wanted = "64 hexadecimal digits" },
    { "device", TEXT, AT(environment.device), .wanted = "printable characters" },
    { "multiprocessors", INTEGER, AT(environment.multiprocessors), 1, .wanted = "1 or more" },
    { "l2_bytes", INTEGER, AT(environment.l2_bytes), 0, .wanted = "0 or more" },
    { "power_limit_w", INTEGER, AT(environment.power_limit_w), 0, .wanted = "0 or more" },
    { "mig", TEXT, AT(environment.mig), .wanted = "printable characters" },
    { "driver", TEXT, AT(environment.driver), .wanted = "printable characters" },
    { "nvrtc", TEXT, AT(environment.nvrtc), .wanted = "printable characters" },
    { "tuning", TUNING, AT(tuning), .wanted = "role.field=number,... or default" },
    { "regime", CHOICE, AT(regime), .names = flp_regime_names, .wanted = "sustained or burst" },
    { "seconds", NUMBER, AT(seconds), 1e-12, .wanted = "a number above 0" },
    { "default_seconds", NUMBER, AT(default_seconds), 1e-12, .wanted = "a number above 0" },
    { "ratio", NUMBER, AT(ratio), 1e-12, .wanted = "a number above 0" },
    { "ratio_low", NUMBER, AT(ratio_low), 1e-12, .wanted = "a number above 0" },
    { "ratio_high", NUMBER, AT(ratio_high), 1e-12, .wanted = "a number above 0" },
    { "predicted_seconds", NUMBER, AT(predicted_seconds), 0, .wanted = "0 or more" },
    { "workspace_bytes", INTEGER, AT(workspace_bytes), 0, .wanted = "0 or more" },
    { "rounds", INTEGER, AT(rounds), 1, .wanted = "1 or more" },
    { "ended", CHOICE, AT(ended), .names = flp_tuning_end_names, .wanted = "settled, rounds, budget or interrupted" },
    { "date", DATE, AT(date), .wanted = "YYYY-MM-DD" },
    { "library", TEXT, AT(version), .wanted = "printable characters" },
};
#undef AT
enum { FIELDS = sizeof(fields) / sizeof(fields[0]), NAMED = 12 /* the fields of identity and environment, which give the file its name */ };
_Static_assert(sizeof(flp_regime) == sizeof(int) && sizeof(flp_tuning_end) == sizeof(int), "a CHOICE is an int");

static const void *place(const flp_record *record, const field *field)
{
    return (const char *)record + field->at;
}

static int is_name(const field *field, int value)
{
    for (int i = 0; field->names[i]; i++)
        if (i == value)
            return 1;
    return 0;
}

static int is_printable(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if (text[i] < ' ' || text[i] > '~')
            return 0;
    return length && text[0] != ' ' && text[length - 1] != ' ';
}

static int is_text(const field *field, const char *text)
{
    int year, month, day, end = 0;

    switch (field->kind) {
    case TUNING:
        return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.=,") == strlen(text) && strcmp(text, default_tuning) != 0;
    case DIGEST:
        return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
    case DATE:
        return sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3 && end == 10 && !text[10] && month >= 1 && month <= 12 && day >= 1 && day <= 31;
    default:
        return is_printable(text);
    }
}

/* 1: the field's value can be written to a text. */
static int is_acceptable(const field *field, const void *value)
{
    switch (field->kind) {
    case INTEGER:
        return (double)*(const int64_t *)value >= field->least;
    case NUMBER:
        return isfinite(*(const double *)value) && *(const double *)value >= field->least;
    case CHOICE:
        return is_name(field, *(const int *)value);
    default:
        return memchr(value, 0, field->bytes) && is_text(field, value);
    }
}

/* with_lines 1: the record was read from a text, and messages begin with e.g. "line 3: ". */
static flp_status check(const flp_record *record, int with_lines)
{
    char line[32] = "";

    for (int i = 0; i < FIELDS; i++) {
        if (with_lines)
            snprintf(line, sizeof(line), "line %d: ", i + 2);
        if (!is_acceptable(&fields[i], place(record, &fields[i])))
            return flp_status_fail(FLP_BAD_ARGUMENT, "%s%s: wanted %s", line, fields[i].key, fields[i].wanted);
    }
    if (record->ratio_low > record->ratio || record->ratio > record->ratio_high)
        return flp_status_fail(FLP_BAD_ARGUMENT, "ratio: wanted from ratio_low to ratio_high");
    return FLP_OK;
}

static void append_field(const field *field, const flp_record *record, flp_text *text)
{
    const void *value = place(record, field);

    flp_text_append(text, "%s: ", field->key);
    if (field->kind == INTEGER)
        flp_text_append(text, "%" PRId64, *(const int64_t *)value);
    else if (field->kind == NUMBER)
        flp_text_append(text, "%.6g", *(const double *)value);
    else if (field->kind == CHOICE)
        flp_text_append(text, "%s", field->names[*(const int *)value]);
    else
        flp_text_append(text, "%s", field->kind == TUNING && !*(const char *)value ? default_tuning : (const char *)value);
    flp_text_append(text, "\n");
}

flp_status flp_record_format(const flp_record *record, flp_text *text)
{
    flp_status status = check(record, 0);

    if (status != FLP_OK)
        return flp_status_prefix(status, "record");
    flp_text_append(text, "%s%d\n", head, FLP_RECORD_FORMAT);
    for (int i = 0; i < FIELDS; i++)
        append_field(&fields[i], record, text);
    return text->failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "record: no memory") : FLP_OK;
}

/* Reads the value of a line into its field. 0: the value is not one of this field. */
static int take(const field *field, const char *value, flp_record *record)
{
    void *to = (char *)record + field->at;

    switch (field->kind) {
    case INTEGER:
        return flp_number_parse_integer(value, to);
    case NUMBER:
        return flp_number_parse(value, to);
    case CHOICE:
        for (int i = 0; field->names[i]; i++)
            if (strcmp(field->names[i], value) == 0)
                return *(int *)to = i, 1;
        return 0;
    default:
        if (field->kind == TUNING && strcmp(value, default_tuning) == 0)
            value = "";
        else if (!*value || strlen(value) >= field->bytes)
            return 0;
        strcpy(to, value);
        return 1;
    }
}

/* Reads the line "key: value" at *text, and moves *text past it. */
static flp_status take_line(int number, const field *field, const char **text, flp_record *record)
{
    char line[FLP_RECORD_PROBLEM_BYTES + 64];
    size_t key = strlen(field->key), length = strcspn(*text, "\n");

    if (!(*text)[length] || length >= sizeof(line))
        return flp_status_fail(FLP_BAD_ARGUMENT, "line %d: wanted a whole line '%s: ...'", number, field->key);
    memcpy(line, *text, length);
    line[length] = 0;
    *text += length + 1;
    if (strncmp(line, field->key, key) != 0 || strncmp(line + key, ": ", 2) != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "line %d: got '%.60s', wanted '%s: ...'", number, line, field->key);
    if (!take(field, line + key + 2, record))
        return flp_status_fail(FLP_BAD_ARGUMENT, "line %d: %s: got '%.60s', wanted %s", number, field->key, line + key + 2, field->wanted);
    return FLP_OK;
}

/* Refuses a text that the library would write in another way: one record could otherwise be two files. */
static flp_status check_letters(const char *text, const flp_record *record)
{
    flp_text own = { 0 };
    flp_status status = flp_record_format(record, &own);
    int line = 1;

    if (status == FLP_OK && strcmp(own.data, text) != 0) {
        for (size_t i = 0; own.data[i] == text[i]; i++)
            line += text[i] == '\n';
        status = flp_status_fail(FLP_BAD_ARGUMENT, "line %d: it is not written as the library writes it", line);
    }
    flp_text_free(&own);
    return status;
}

int flp_record_format_of(const char *text)
{
    char *end;
    long format;

    if (strncmp(text, head, strlen(head)) != 0 || !isdigit((unsigned char)text[strlen(head)]))
        return 0;
    format = strtol(text + strlen(head), &end, 10);
    return *end == '\n' && format <= INT_MAX ? (int)format : 0;
}

flp_status flp_record_parse(const char *text, flp_record *record)
{
    const int format = flp_record_format_of(text);
    const char *next = strchr(text, '\n');
    flp_status status = FLP_OK;

    memset(record, 0, sizeof(*record));
    if (format != FLP_RECORD_FORMAT)
        return format
                   ? flp_status_fail(FLP_BAD_ARGUMENT, "line 1: got format %d, wanted %d: another version of the library wrote it", format, FLP_RECORD_FORMAT)
                   : flp_status_fail(FLP_BAD_ARGUMENT, "line 1: wanted '%s%d'", head, FLP_RECORD_FORMAT);
    next++;
    for (int i = 0; i < FIELDS && status == FLP_OK; i++)
        status = take_line(i + 2, &fields[i], &next, record);
    if (status == FLP_OK && *next)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "line %d: wanted the end", FIELDS + 2);
    if (status == FLP_OK)
        status = check(record, 1);
    return status == FLP_OK ? check_letters(text, record) : status;
}

void flp_record_name(const flp_record *record, char name[FLP_RECORD_NAME_BYTES])
{
    char digest[FLP_DIGEST_TEXT_BYTES];
    flp_text text = { 0 };

    for (int i = 0; i < NAMED; i++)
        append_field(&fields[i], record, &text);
    flp_digest_format(text.data, text.length, digest);
    flp_text_free(&text);
    snprintf(name, FLP_RECORD_NAME_BYTES, "%.32s.record", digest);
}

int flp_record_identity_same(const flp_record_identity *one, const flp_record_identity *other)
{
    return strcmp(one->problem, other->problem) == 0 && strcmp(one->arch, other->arch) == 0 && strcmp(one->numerics, other->numerics) == 0 &&
           strcmp(one->templates, other->templates) == 0 && strcmp(one->selection, other->selection) == 0;
}
