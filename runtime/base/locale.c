/* Switches a thread to the C locale and back. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* uselocale */
#endif
#include "base/locale.h"

#include <pthread.h>
#include <stdio.h>

static locale_t c_locale; /* (locale_t)0 where newlocale had no memory: the caller's locale then stays in force */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t flp_locale_enter(void)
{
    pthread_once(&once, make_c_locale);
    return uselocale(c_locale);
}

void flp_locale_leave(locale_t callers)
{
    uselocale(callers);
}

int flp_locale_print(char *text, size_t bytes, const char *format, va_list arguments)
{
    locale_t callers = flp_locale_enter();
    int length = vsnprintf(text, bytes, format, arguments);

    flp_locale_leave(callers);
    return length;
}
