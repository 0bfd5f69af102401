/* The operators over linear_logp: inputs of a random problem, what they must give in fp64, and how they are run. */
#ifndef FLP_TESTS_RANDOM_LINEAR_H
#define FLP_TESTS_RANDOM_LINEAR_H
#include "cross_entropy_reference.h"
#include "random/machine.h"
#include "random/problem.h"
#include "random/row.h"

/* One gradient: each element a sum of terms derivative x input. What it may be off by follows from these, see gradient.c. */
typedef struct {
    int64_t count;
    double *value;
    double *error;  /* sum of |input| times what its derivative may be off by */
    double *size;   /* sqrt(sum of the terms' squares) */
    double *hard;   /* sum of |term| that are rounded to the dtype of the inputs on a GPU: all but the target's */
    double *soft;   /* sqrt(sum of their squares) */
    double *level;  /* sum of those of rows whose derivatives hardly differ */
    double *known;  /* sum of these terms' own roundings, where a derivative is rounded once */
    double *passed; /* sum of |term| that a filter may pass over */
    double *whole;  /* sum of |term| with what it may be off by: where fp32 has no room for it, it may have none for a part of the sum */
    double *inputs; /* sum of |input| */
} flp_random_gradient;

typedef struct {
    const flp_random_problem *problem;
    flp_linear_cross_entropy_problem asked; /* its parts are the other operators' problems */
    flp_random_memory memory;
    /* The truth. [n][v] */
    double *logit, *logit_error;
    flp_random_row *row;               /* [n] */
    double *given_lse, *given_entropy; /* [n]: what the backward's lse and entropy are */
    int64_t bad_count, bad_first;
    flp_reference as_reference; /* for flp_cross_entropy_reference_compute */
    flp_cross_entropy_reference loss;
    char *loss_beyond; /* [n], and of the reduced one: fp32 may have no room for it, or for what it is made of */
    int total_beyond;
    flp_random_gradient hidden, weight, bias;
    double largest_upstream;
    int rows_beyond; /* bf16 may have no room for a row of hidden times what its saved exponentials are multiplied by */
} flp_random_linear;

/* linear_data.c */
void flp_random_linear_make_inputs(flp_random_linear *linear);
int64_t flp_random_linear_target(const flp_random_linear *linear, int64_t row);
double flp_random_linear_temperature(const flp_random_linear *linear, int64_t row);
int flp_random_linear_has_part(const flp_random_linear *linear, int64_t row); /* neither ignored nor bad */
int flp_random_linear_is_ignored(const flp_random_linear *linear, int64_t row);

/* linear_truth.c */
void flp_random_linear_compute(flp_random_linear *linear);
flp_random_row_inputs flp_random_linear_row_inputs(const flp_random_linear *linear, int64_t row);
double *flp_random_linear_hidden(const flp_random_linear *linear); /* [n][d], to be freed, as the next: [v][d] */
double *flp_random_linear_weight(const flp_random_linear *linear);
void flp_random_linear_free_truth(flp_random_linear *linear);

/* gradient.c */
void flp_random_gradient_make(int64_t count, flp_random_gradient *gradient);
void flp_random_gradient_free(flp_random_gradient *gradient);
void flp_random_linear_differentiate(flp_random_linear *linear);
/* What element i may be off by before its last rounding. */
double flp_random_gradient_bound(const flp_random_linear *linear, const flp_random_gradient *gradient, int64_t i, int is_cpu);

/* linear_args.c */
void flp_random_linear_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_linear_logp_args *args);
void flp_random_linear_backward_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_linear_logp_backward_args *args);
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[3];
} flp_random_cross_entropy_call;
void flp_random_cross_entropy_args(const flp_random_linear *linear, const flp_random_machine *machine, flp_random_cross_entropy_call *call);

/* linear_shards.c: the problem shard by shard, with their partials in the place of a workspace. */
flp_status flp_random_linear_run_shards(const flp_random_linear *linear, const flp_random_machine *machine);
flp_plan *flp_random_linear_first_shard(const flp_random_linear *linear, const flp_random_machine *machine); /* the caller's to destroy; NULL where it fails */
void flp_random_linear_add_partials(flp_random_linear *linear);

/* linear_check.c */
int flp_random_linear_check(const flp_random_linear *linear, const flp_random_machine *machine, char *message, size_t bytes);
#endif
