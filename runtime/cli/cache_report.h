/* What the programs say of the kernel cache: the user's directory and the system's. */
#ifndef FLP_CLI_CACHE_REPORT_H
#define FLP_CLI_CACHE_REPORT_H
#include <jansson.h>
#include "jit/cubin_cache.h"

/* directory ("": none), files, bytes, refused, writable; systems: each with directory, there, refusal (null: it is used), files, bytes, refused. */
json_t *flp_cache_report_make(flp_cubin_cache *cache);

/* The user's directory, if there is one, and the system's of such a report, a line each behind its label. */
void flp_cache_report_print_user(const char *label, json_t *report);
void flp_cache_report_print_systems(const char *label, json_t *report);
#endif
