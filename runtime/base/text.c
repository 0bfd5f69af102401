/* A growing string. */
#include "base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/locale.h"

/* Makes room for count more bytes and the 0 byte after them; returns 1, or 0 with `failed` set. */
static int reserve(flp_text *text, size_t count)
{
    size_t capacity = text->capacity ? text->capacity : 64;
    char *data;

    if (text->failed)
        return 0;
    if (text->capacity - text->length > count)
        return 1;
    while (capacity - text->length <= count) {
        if (capacity > SIZE_MAX / 2) {
            text->failed = 1;
            return 0;
        }
        capacity *= 2;
    }
    data = realloc(text->data, capacity);
    if (!data) {
        text->failed = 1;
        return 0;
    }
    text->data = data;
    text->capacity = capacity;
    return 1;
}

void flp_text_append_bytes(flp_text *text, const void *bytes, size_t count)
{
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = 0;
}

void flp_text_append(flp_text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = flp_locale_print(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        text->failed = 1;
    if (!reserve(text, length < 0 ? 0 : (size_t)length))
        return;
    va_start(arguments, format);
    flp_locale_print(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void flp_text_free(flp_text *text)
{
    free(text->data);
    *text = (flp_text){ 0 };
}

char *flp_text_duplicate(const char *string)
{
    size_t bytes = strlen(string) + 1;
    char *copy = malloc(bytes);

    if (copy)
        memcpy(copy, string, bytes);
    return copy;
}

const char *flp_text_plural(long long count)
{
    return count == 1 ? "" : "s";
}
