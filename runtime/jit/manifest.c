/* Reads the text form of a manifest: every field once, in the header's order, one a line. */
#include "jit/manifest.h"

#include <ctype.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"

/* bytes: the size of a text field; 0 for a number. */
static const struct {
    const char *name;
    size_t offset, bytes;
    int least; /* the least value of a number */
} fields[] = {
#define TEXT(name, bytes) { #name, offsetof(flp_manifest, name), bytes, 0 },
#define NUMBER(name, least) { #name, offsetof(flp_manifest, name), 0, least },
    FLP_MANIFEST_FIELDS(TEXT, NUMBER)
#undef TEXT
#undef NUMBER
};

/* Decimal digits without sign or leading zeros; -1 where value is anything else or too large. */
static int parse_number(const char *value, size_t length)
{
    long long number = 0;

    if (length < 1 || length > 10 || (length > 1 && value[0] == '0'))
        return -1;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)value[i]))
            return -1;
        number = 10 * number + (value[i] - '0');
    }
    return number <= INT_MAX ? (int)number : -1;
}

static int is_plain(const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isprint((unsigned char)value[i]))
            return 0;
    return length > 0 && value[0] != ' ' && value[length - 1] != ' ';
}

/* One line without its newline: "name value". */
static flp_status parse_line(const char *line, size_t length, size_t field, flp_manifest *manifest)
{
    const char *name = fields[field].name;
    size_t head = strlen(name) + 1;
    const char *value = line + head;
    char *to = (char *)manifest + fields[field].offset;
    int number;

    if (length < head || memcmp(line, name, head - 1) != 0 || line[head - 1] != ' ')
        return flp_status_fail(FLP_INTERNAL, "manifest line %zu: got \"%.*s\", wanted \"%s VALUE\"", field + 1, (int)length, line, name);
    length -= head;
    if (fields[field].bytes) {
        if (!is_plain(value, length) || length >= fields[field].bytes)
            return flp_status_fail(FLP_INTERNAL, "manifest line %zu: %s is \"%.*s\", wanted 1 .. %zu printable characters", field + 1, name, (int)length, value,
                                   fields[field].bytes - 1);
        memcpy(to, value, length);
        to[length] = 0;
        return FLP_OK;
    }
    number = parse_number(value, length);
    if (number < fields[field].least)
        return flp_status_fail(FLP_INTERNAL, "manifest line %zu: %s is \"%.*s\", wanted a number of at least %d", field + 1, name, (int)length, value,
                               fields[field].least);
    memcpy(to, &number, sizeof(number));
    return FLP_OK;
}

flp_status flp_manifest_parse(const char *text, flp_manifest *manifest)
{
    *manifest = (flp_manifest){ 0 };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        size_t length = strcspn(text, "\n");
        flp_status status;

        if (!text[length])
            return flp_status_fail(FLP_INTERNAL, "manifest line %zu: the text ends, wanted \"%s VALUE\" and a newline", i + 1, fields[i].name);
        status = parse_line(text, length, i, manifest);
        if (status != FLP_OK)
            return status;
        text += length + 1;
    }
    if (*text)
        return flp_status_fail(FLP_INTERNAL, "manifest: \"%.*s\" follows the last field", (int)strcspn(text, "\n"), text);
    return FLP_OK;
}
