/* The log: one callback for the process, none by default. */
#ifndef FLP_BASE_LOG_H
#define FLP_BASE_LOG_H
#include "fusedlogp.h"

void flp_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Between the two this thread's lines are kept: for whoever has a lock that a callback's call of the library may want. Pairs nest; the last resume
 * hands the lines out. Neither these nor a line change errno or the thread's error message, whatever the callback calls. */
void flp_log_hold(void);
void flp_log_resume(void);
#endif
