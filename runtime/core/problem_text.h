/* A problem's canonical string: operator:dtype, then the sizes, all of them written, then of the other fields those that differ from what a zeroed
 * field stands for, in the table's order. gen/problem.lua reads it too, and the programs, tests and records name problems by it. */
#ifndef FLP_CORE_PROBLEM_TEXT_H
#define FLP_CORE_PROBLEM_TEXT_H
#include "core/problem.h"

enum { FLP_PROBLEM_TEXT_BYTES = 512 }; /* holds every canonical string */

flp_status flp_problem_text_write(const flp_operator *op, const void *problem, char *text, size_t bytes);

/* flp_X_problem_format and flp_X_problem_parse, with the problem as the caller's header has it. */
flp_status flp_problem_text_format(const flp_operator *op, const void *problem, char *text, size_t bytes, const flp_sizes *sizes);
flp_status flp_problem_text_parse(const flp_operator *op, const char *text, void *problem, const flp_sizes *sizes);
#endif
