/* The log: lines for the one callback of the process, which is none by default. */
#ifndef FLP_BASE_LOG_H
#define FLP_BASE_LOG_H
#include "fusedlogp.h"

void flp_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Between flp_log_hold and flp_log_resume this thread's lines are queued. A caller that holds a lock uses the pair, because the callback may call the
 * library and need the same lock. Pairs nest; the outermost flp_log_resume delivers the lines. None of the functions here changes errno or the thread's
 * error message, whatever the callback calls. */
void flp_log_hold(void);
void flp_log_resume(void);
#endif
