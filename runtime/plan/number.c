/* Numbers as text, the same in every locale. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* uselocale */
#endif
#include "plan/number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static locale_t c_locale; /* (locale_t)0 where there is no memory for it: the caller's locale then stays */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* A caller's locale may write a decimal comma. */
static locale_t enter_c_locale(void)
{
    pthread_once(&once, make_c_locale);
    return uselocale(c_locale);
}

void flp_number_format(double value, char text[FLP_NUMBER_BYTES])
{
    locale_t callers = enter_c_locale();
    char candidate[FLP_NUMBER_BYTES];

    /* More digits may be shorter: 30 is 3e+01 with one. 17 always read back. */
    snprintf(text, FLP_NUMBER_BYTES, "%.17g", value);
    for (int digits = 1; digits < 17; digits++) {
        snprintf(candidate, sizeof(candidate), "%.*g", digits, value);
        if (strtod(candidate, NULL) == value && strlen(candidate) < strlen(text))
            memcpy(text, candidate, sizeof(candidate));
    }
    uselocale(callers);
}

int flp_number_parse(const char *text, double *value)
{
    locale_t callers = enter_c_locale();
    char *end;

    *value = strtod(text, &end);
    uselocale(callers);
    return end != text && *end == 0 && isfinite(*value);
}

int flp_number_parse_integer(const char *text, int64_t *value)
{
    if (!*text || text[strspn(text, "0123456789")])
        return 0;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}
