/* An assertion about the canonical string of any operator's problem. */
#ifndef FLP_TESTS_PROBLEM_TEXT_H
#define FLP_TESTS_PROBLEM_TEXT_H
#include "core/operator.h"

/* Fails unless the problem's canonical string is `wanted`, and what is parsed from it has the same string. */
void expect_problem_text(const flp_operator *op, const void *problem, const char *wanted);
#endif
