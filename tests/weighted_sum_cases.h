/* The cases that every path of weighted_sum and its backward must pass: inputs, and the check against fp64.
 *
 *     flp_weighted_case_get(i, &c);  flp_weighted_case_make(&c, &data);
 *     flp_weighted_case_forward(&c, &data, bases, &args);     ... execute, copy y back to data ...
 *     flp_weighted_case_check_sum(&c, &data, depth, message, sizeof message);
 * The backward is checked in the same way. */
#ifndef FLP_TESTS_WEIGHTED_SUM_CASES_H
#define FLP_TESTS_WEIGHTED_SUM_CASES_H
#include "reference.h"

enum {                            /* what some of the inputs hold */
       FLP_WEIGHTED_NAN_ROWS = 1, /* a NaN in every fifth row of x, +inf in every other fifth; grad_w is then not requested */
       FLP_WEIGHTED_UNEVEN = 2,   /* g: zeros, and a few values 1000 times the others */
       FLP_WEIGHTED_IN_PLACE = 4  /* grad_x is written over x */
};

typedef struct {
    char name[112];
    flp_weighted_sum_backward_problem problem; /* problem.forward is the forward's; all fields but pointer_alignment are filled in */
    unsigned content;
    int misalignment; /* x and grad_x begin so many bytes after a 256-byte boundary */
} flp_weighted_case;

int flp_weighted_case_count(void);
void flp_weighted_case_get(int index, flp_weighted_case *out);
/* The first so many cases have every kernel family, and are small enough for a sanitizer. */
enum { FLP_WEIGHTED_QUICK = 12 };

typedef enum {
    FLP_WEIGHTED_X,
    FLP_WEIGHTED_W,
    FLP_WEIGHTED_G, /* the last input */
    FLP_WEIGHTED_Y,
    FLP_WEIGHTED_GRAD_X,
    FLP_WEIGHTED_GRAD_W,
    FLP_WEIGHTED_ROLES
} flp_weighted_role;

/* `offset` guard bytes, the data, guard bytes: no path may change a byte outside the data or between its rows. base NULL: the case has no such buffer. */
typedef struct {
    unsigned char *base;
    size_t bytes, offset, data_bytes;
} flp_weighted_buffer;

typedef struct {
    flp_weighted_buffer buffer[FLP_WEIGHTED_ROLES];
    unsigned char *before[FLP_WEIGHTED_ROLES]; /* the buffers as they were made */
} flp_weighted_data;

/* 0 when out of memory. Free with flp_weighted_case_free. */
int flp_weighted_case_make(const flp_weighted_case *c, flp_weighted_data *data);
void flp_weighted_case_free(flp_weighted_data *data);
/* Makes the buffers as they were at first, for another execution. */
void flp_weighted_case_restore(flp_weighted_data *data);

/* bases: the bases of copies of the buffers, by role; or NULL: the host's own buffers. */
void flp_weighted_case_forward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_args *args);
void flp_weighted_case_backward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_backward_args *args);

/* 1: y, or the gradients, are right; else 0 and a message. depth: the largest number of roundings of a product, from its own to the last one of its sum.
 * Allowed, with u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2):
 *     depth u / (1 - depth u) sum |products|, and the rounding to the output's dtype. grad_x is exact except for that. */
int flp_weighted_case_check_sum(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes);
int flp_weighted_case_check_gradients(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes);
#endif
