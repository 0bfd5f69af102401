/* Numbers as text, the same in every locale. */
#ifndef FLP_BASE_NUMBER_H
#define FLP_BASE_NUMBER_H
#include <stdint.h>

enum { FLP_NUMBER_BYTES = 32 };

/* The shortest decimal text that reads back as value, which is finite. */
void flp_number_format(double value, char text[FLP_NUMBER_BYTES]);

/* text: all of it is one finite number. 1 when it is, else 0. */
int flp_number_parse(const char *text, double *value);

/* text: one or more decimal digits, a value up to 2^63 - 1. 1 when it is, else 0. */
int flp_number_parse_integer(const char *text, int64_t *value);
#endif
