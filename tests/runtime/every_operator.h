/* Whether a table of a test has a row for each operator of the library. */
#ifndef FLP_TESTS_EVERY_OPERATOR_H
#define FLP_TESTS_EVERY_OPERATOR_H

/* Fails if an operator (runtime/cli/operators.h) is named by none of `count` rows. name: of row i: the operator's name, or its name before a space or colon. */
void assert_rows_for_every_operator(int count, const char *(*name)(int row));
#endif
