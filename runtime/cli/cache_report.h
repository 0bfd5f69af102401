/* A report on the kernel cache, the user's directory and the system directories, as the programs show it. */
#ifndef FLP_CLI_CACHE_REPORT_H
#define FLP_CLI_CACHE_REPORT_H
#include <jansson.h>
#include "jit/cubin_cache.h"

/* Makes the report, a JSON object that the caller releases. Its members directory ("": there is none), files (kernels), sources (that did not compile), bytes,
 * refused and writable describe the user's directory; systems is an array of the system directories, each with directory, there, refusal (null: the directory
 * is used), files, sources, bytes and refused. */
json_t *flp_cache_report_make(flp_cubin_cache *cache);

/* Print a report's directories to standard output, each on a line that begins with label: the user's directory, which the report must have, or all system
 * directories. */
void flp_cache_report_print_user(const char *label, json_t *report);
void flp_cache_report_print_systems(const char *label, json_t *report);
#endif
