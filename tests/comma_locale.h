/* A locale with a decimal comma, such as the user of a program may have set. */
#ifndef FLP_TESTS_COMMA_LOCALE_H
#define FLP_TESTS_COMMA_LOCALE_H

/* Sets the process's LC_ALL to de_DE.UTF-8. If the system lacks this locale, it is made in a temporary directory. Returns 0 if that is not possible either,
 * because there is no localedef or no source of the locale. comma_locale_leave goes back to "C". */
int comma_locale_enter(void);
void comma_locale_leave(void);
#endif
