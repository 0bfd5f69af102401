/* The cases that every path of scale must pass, and their exact results: a product in fp32, rounded once.
 *
 *     flp_scale_case_get(i, &c);  flp_scale_case_make(&c, &data);
 *     ... execute on data.x, data.factor ...
 *     flp_scale_case_check(&c, &data, message, sizeof message); */
#ifndef FLP_TESTS_SCALE_CASES_H
#define FLP_TESTS_SCALE_CASES_H
#include "reference.h"

typedef struct {
    char name[112];
    flp_scale_problem problem; /* all fields but pointer_alignment are filled in */
    float factor;
    int misalignment; /* x begins so many bytes after a 256-byte boundary */
} flp_scale_case;

int flp_scale_case_count(void);
void flp_scale_case_get(int index, flp_scale_case *out);
/* The first so many cases are small enough for a sanitizer. */
enum { FLP_SCALE_QUICK = 24 };

/* `offset` guard bytes, x, guard bytes: no path may change a byte outside x or between its rows. */
typedef struct {
    unsigned char *base, *before; /* before: a copy of base [bytes] as it was made */
    size_t bytes, offset, x_bytes;
    float factor;
} flp_scale_data;

/* 0 when out of memory. Free with flp_scale_case_free. */
int flp_scale_case_make(const flp_scale_case *c, flp_scale_data *data);
void flp_scale_case_free(flp_scale_data *data);

/* 1: base holds the products, and else what it held; all bytes of it where the factor is 1. Else 0 and a message. */
int flp_scale_case_check(const flp_scale_case *c, const flp_scale_data *data, char *message, size_t bytes);
#endif
