/* Puts tunings together, and takes them apart by roles. */
#include "core/tuning_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MOST_ITEMS = 128 };

static int compare_items(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static flp_status write_items(char **items, int count, char *text)
{
    size_t length = 0;

    qsort(items, (size_t)count, sizeof(*items), compare_items);
    *text = 0;
    for (int i = 0; i < count && length < FLP_TUNING_BYTES; i++)
        if (i == 0 || strcmp(items[i], items[i - 1]) != 0)
            length += (size_t)snprintf(text + length, FLP_TUNING_BYTES - length, "%s%s", length ? "," : "", items[i]);
    return length < FLP_TUNING_BYTES ? FLP_OK : flp_status_fail(FLP_BAD_ARGUMENT, "tuning: got more than %d characters", FLP_TUNING_BYTES - 1);
}

flp_status flp_tuning_text_join(const char *const *tunings, int count, char *text)
{
    char copy[4 * FLP_TUNING_BYTES] = "", *items[MOST_ITEMS], *rest = NULL;
    size_t length = 0;
    int found = 0;

    for (int i = 0; i < count && length < sizeof(copy); i++)
        length += (size_t)snprintf(copy + length, sizeof(copy) - length, "%s,", tunings[i]);
    if (length >= sizeof(copy))
        return flp_status_fail(FLP_BAD_ARGUMENT, "tuning: got more than %d characters", FLP_TUNING_BYTES - 1);
    for (char *item = strtok_r(copy, ",", &rest); item && found < MOST_ITEMS; item = strtok_r(NULL, ",", &rest))
        items[found++] = item;
    return write_items(items, found, text);
}

static int is_of_role(const char *item, flp_role role)
{
    const char *word = role < FLP_ROLES ? flp_role_word(role) : "";
    const size_t length = strlen(word);

    return length && strncmp(item, word, length) == 0 && item[length] == '.';
}

void flp_tuning_text_of_role(const char *tuning, flp_role role, int others, char *text)
{
    size_t length = 0;

    *text = 0;
    while (*tuning) {
        const size_t item = strcspn(tuning, ",");

        if (is_of_role(tuning, role) != others)
            length += (size_t)snprintf(text + length, FLP_TUNING_BYTES - length, "%s%.*s", length ? "," : "", (int)item, tuning);
        tuning += item + (tuning[item] == ',');
    }
}

int flp_tuning_text_has_chunks(const char *tuning)
{
    static const char prefix[] = "chunks.";
    const char *found = strstr(tuning, prefix);

    while (found && found != tuning && found[-1] != ',')
        found = strstr(found + 1, prefix);
    return found != NULL;
}

flp_role flp_tuning_text_role(const char *tuning)
{
    char word[64], rest[FLP_TUNING_BYTES];
    flp_role role;

    snprintf(word, sizeof(word), "%.*s", (int)strcspn(tuning, "."), tuning);
    role = flp_role_find(word);
    flp_tuning_text_of_role(tuning, role, 1, rest);
    return *rest ? FLP_ROLES : role;
}
