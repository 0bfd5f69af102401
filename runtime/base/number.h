/* Numbers as text, the same in every locale. */
#ifndef FLP_BASE_NUMBER_H
#define FLP_BASE_NUMBER_H
#include <stdint.h>

enum { FLP_NUMBER_BYTES = 32 };

/* The shortest decimal text that reads back as value, which is finite. */
void flp_number_format(double value, char text[FLP_NUMBER_BYTES]);

/* 1 where the whole text is one finite number, else 0. */
int flp_number_parse(const char *text, double *value);

/* 1 where the whole text is decimal digits, one or more, of a value up to 2^63 - 1; else 0. */
int flp_number_parse_integer(const char *text, int64_t *value);
#endif
