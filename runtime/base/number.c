/* Numbers as text, the same in every locale and rounding mode. */
#include "base/number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/locale.h"

void flp_number_format(double value, char text[FLP_NUMBER_BYTES])
{
    locale_t callers = flp_locale_enter();
    char candidate[FLP_NUMBER_BYTES];
    flp_arithmetic arithmetic;

    flp_arithmetic_enter(&arithmetic);
    /* 17 digits always read back as the same number. Fewer digits may give a longer text (30 is 3e+01 with one digit), so each number of digits is tried. */
    snprintf(text, FLP_NUMBER_BYTES, "%.17g", value);
    for (int digits = 1; digits < 17; digits++) {
        snprintf(candidate, sizeof(candidate), "%.*g", digits, value);
        if (strtod(candidate, NULL) == value && strlen(candidate) < strlen(text))
            memcpy(text, candidate, sizeof(candidate));
    }
    flp_arithmetic_leave(&arithmetic);
    flp_locale_leave(callers);
}

int flp_number_parse(const char *text, double *value)
{
    locale_t callers = flp_locale_enter();
    flp_arithmetic arithmetic;
    char *end;

    flp_arithmetic_enter(&arithmetic);
    *value = strtod(text, &end);
    flp_arithmetic_leave(&arithmetic);
    flp_locale_leave(callers);
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
