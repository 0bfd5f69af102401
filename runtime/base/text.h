/* A growing string. Initialise it with zeros. An append that fails sets `failed`, and later appends do nothing. */
#ifndef FLP_BASE_TEXT_H
#define FLP_BASE_TEXT_H
#include <stddef.h>

typedef struct {
    char *data; /* 0-terminated, or NULL while empty; the owner frees it with flp_text_free */
    size_t length, capacity;
    int failed; /* out of memory, or a text that could not be formatted */
} flp_text;

void flp_text_append(flp_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void flp_text_append_bytes(flp_text *text, const void *bytes, size_t count);
void flp_text_free(flp_text *text);
char *flp_text_duplicate(const char *string); /* NULL when out of memory */

/* The ending of a noun after this number: "" after 1, else "s". */
const char *flp_text_plural(long long count);
#endif
