/* The C locale for one thread at a time. A caller's locale may write a decimal comma and sort letters in its own order. */
#ifndef FLP_BASE_LOCALE_H
#define FLP_BASE_LOCALE_H
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* Between the two calls the calling thread formats, parses and compares as in the C locale. flp_locale_enter returns the caller's locale, which
 * flp_locale_leave restores. */
locale_t flp_locale_enter(void);
void flp_locale_leave(locale_t callers);

/* vsnprintf in the C locale. The library formats every text that may hold a number with a decimal point by this function. */
int flp_locale_print(char *text, size_t bytes, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));
#endif
