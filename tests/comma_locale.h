/* A locale with a decimal comma, which a program's user may have set. */
#ifndef FLP_TESTS_COMMA_LOCALE_H
#define FLP_TESTS_COMMA_LOCALE_H

/* Sets LC_ALL to de_DE.UTF-8 for the process, which is made in a temporary directory where the system has none. Returns 0 where it
 * cannot be made either: no localedef, or no sources of locales. comma_locale_leave goes back to "C". */
int comma_locale_enter(void);
void comma_locale_leave(void);
#endif
