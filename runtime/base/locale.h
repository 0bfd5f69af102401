/* The C locale for one thread at a time: a caller's locale may write a decimal comma and sort letters in its own order. */
#ifndef FLP_BASE_LOCALE_H
#define FLP_BASE_LOCALE_H
#include <locale.h>
#include <stdarg.h>
#include <stddef.h>

/* Until flp_locale_leave, which takes what this returns, the calling thread formats, parses and compares as in the C locale. */
locale_t flp_locale_enter(void);
void flp_locale_leave(locale_t callers);

/* vsnprintf in the C locale: the one way in which the library formats what may hold a number with a decimal point. */
int flp_locale_print(char *text, size_t bytes, const char *format, va_list arguments) __attribute__((format(printf, 3, 0)));
#endif
