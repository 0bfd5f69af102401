/* The cases that every path of linear_cross_entropy must pass. They build on those of linear_logp's backward, whose inputs they use.
 *
 *     flp_cross_entropy_case c;  flp_cross_entropy_case_data data;
 *     flp_cross_entropy_case_get(i, &c);
 *     flp_cross_entropy_case_make_data(&c, &data);
 *     flp_cross_entropy_case_args(&c, &data, &args);    host pointers
 *     ... execute, on another machine copy the outputs back to data ...
 *     flp_cross_entropy_case_check(&c, &data, 0, message, sizeof message); */
#ifndef FLP_TESTS_CROSS_ENTROPY_CASES_H
#define FLP_TESTS_CROSS_ENTROPY_CASES_H
#include "cross_entropy_reference.h"
#include "gradient_cases.h"

/* Inputs that few losses have. */
typedef enum {
    FLP_CROSS_ENTROPY_LARGE_CLASSES = 1, /* two class weights are 1e5 and -1e5: larger than the mean of all by far */
    FLP_CROSS_ENTROPY_VOID_INPUTS = 2,   /* a token loss' inputs are NaN, infinite and far off in rows of token weight 0 */
    FLP_CROSS_ENTROPY_NO_WEIGHT = 4      /* the rows' weights add up to 0, while no row's is 0 */
} flp_cross_entropy_extremes;

typedef struct {
    flp_gradient_case gradient; /* its problem is complete; with forward_only its gradients are not requested */
    flp_linear_cross_entropy_problem problem;
    double label_smoothing, lse_square_scale;
    int with_g_loss;
    int forward_only;
    flp_cross_entropy_extremes extremes;
    int outputs; /* 1: logp, lse and entropy are requested; else the sum of 2: logp, 4: lse, 8: entropy */
} flp_cross_entropy_case;

int flp_cross_entropy_case_count(void);
void flp_cross_entropy_case_get(int index, flp_cross_entropy_case *out);
/* Fills in what a case of another table leaves open. */
void flp_cross_entropy_case_complete(int index, flp_cross_entropy_case *c);

/* The name and the definition, for flp_token_loss_define, of the table's token loss that does not come with the library. */
extern const char flp_cross_entropy_case_loss_name[], flp_cross_entropy_case_loss[];

/* Buffers as those of cases.h. */
typedef enum {
    FLP_CROSS_ENTROPY_CLASS_WEIGHTS,
    FLP_CROSS_ENTROPY_TOKEN_WEIGHTS,
    FLP_CROSS_ENTROPY_G_LOSS,
    FLP_CROSS_ENTROPY_ADVANTAGES,
    FLP_CROSS_ENTROPY_OLD_LOGP,
    FLP_CROSS_ENTROPY_REFERENCE_LOGP,
    FLP_CROSS_ENTROPY_LOSS,
    FLP_CROSS_ENTROPY_LOGP,
    FLP_CROSS_ENTROPY_LSE,
    FLP_CROSS_ENTROPY_ENTROPY,
    FLP_CROSS_ENTROPY_BUFFERS
} flp_cross_entropy_role;

typedef struct {
    flp_gradient_case_data gradient;
    flp_case_buffer own[FLP_CROSS_ENTROPY_BUFFERS];
    flp_reference forward;
    flp_cross_entropy_reference reference;
    flp_gradient_reference gradients;
} flp_cross_entropy_case_data;

/* 0 when out of memory. */
int flp_cross_entropy_case_make_data(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data);
void flp_cross_entropy_case_free_data(flp_cross_entropy_case_data *data);
void flp_cross_entropy_case_restore_outputs(flp_cross_entropy_case_data *data);

/* The args, and what they point to other than buffers. */
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[3];
    flp_token_parameter parameters[2];
} flp_cross_entropy_case_call;

/* forward, gradient, own: the bases of copies of the buffers, NULL for a buffer that the case lacks; or NULL: the host's own buffers. call->args points into
 * *call. */
void flp_cross_entropy_case_args(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, void *const *forward, void *const *gradient,
                                 void *const *own, flp_cross_entropy_case_call *call);

/* 1: loss, outputs and gradients are right; else 0 and a message. dlogit_roundoff: as in flp_gradient_case_check. */
int flp_cross_entropy_case_check(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, double dlogit_roundoff, char *message, size_t bytes);
#endif
