/* The log: one callback for the process, none by default. */
#ifndef FLP_BASE_LOG_H
#define FLP_BASE_LOG_H
#include "fusedlogp.h"

void flp_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void flp_log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
#endif
