/* The cases that every path of weighted_sum has to pass, both directions: inputs, and the check against fp64.
 *
 *     flp_weighted_case_get(i, &c);  flp_weighted_case_make(&c, &data);
 *     flp_weighted_case_forward(&c, &data, bases, &args);     ... execute, bring y back to data ...
 *     flp_weighted_case_check_sum(&c, &data, depth, message, sizeof message);
 * and likewise the backward. */
#ifndef FLP_TESTS_WEIGHTED_SUM_CASES_H
#define FLP_TESTS_WEIGHTED_SUM_CASES_H
#include "reference.h"

enum {                            /* what some of the inputs hold */
       FLP_WEIGHTED_NAN_ROWS = 1, /* a NaN in every fifth row of x, +inf in every other fifth: grad_w is then not asked for */
       FLP_WEIGHTED_UNEVEN = 2,   /* g: zeros, and a few values 1000 times the others */
       FLP_WEIGHTED_IN_PLACE = 4  /* grad_x is written over x */
};

typedef struct {
    char name[112];
    flp_weighted_sum_backward_problem problem; /* its forward is the forward's; all filled in but pointer_alignment's default */
    unsigned content;
    int misalignment; /* bytes that x and grad_x lie behind a 256-byte boundary */
} flp_weighted_case;

int flp_weighted_case_count(void);
void flp_weighted_case_get(int index, flp_weighted_case *out);
/* The first so many stand for every kernel family, small enough for a sanitizer. */
enum { FLP_WEIGHTED_QUICK = 12 };

typedef enum {
    FLP_WEIGHTED_X,
    FLP_WEIGHTED_W,
    FLP_WEIGHTED_G, /* inputs so far */
    FLP_WEIGHTED_Y,
    FLP_WEIGHTED_GRAD_X,
    FLP_WEIGHTED_GRAD_W,
    FLP_WEIGHTED_ROLES
} flp_weighted_role;

/* offset guard bytes, the data, guard bytes: what lies outside the data, and between its rows, never changes. base NULL: the case has none. */
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
/* As they were made, for another execution. */
void flp_weighted_case_restore(flp_weighted_data *data);

/* bases: copies of the buffers' bases, by role, or NULL for the host's own. */
void flp_weighted_case_forward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_args *args);
void flp_weighted_case_backward(const flp_weighted_case *c, const flp_weighted_data *data, void *const *bases, flp_weighted_sum_backward_args *args);

/* 1 where y, or the gradients, are right, else 0 and a message. depth: the most roundings on the way of one product into its sum. Allowed, with
 * u = 2^-24 and each product in one of the roundings (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2):
 *     depth u / (1 - depth u) sum |products|, and the rounding to the output's dtype. grad_x is exact but for that. */
int flp_weighted_case_check_sum(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes);
int flp_weighted_case_check_gradients(const flp_weighted_case *c, const flp_weighted_data *data, int64_t depth, char *message, size_t bytes);
#endif
