/* The cases that every path of linear_logp's backward must pass. They build on those of the forward (cases.h), whose inputs they use.
 *
 *     flp_gradient_case c;  flp_gradient_case_data data;  flp_gradient_reference reference;
 *     flp_gradient_case_get(i, &c);
 *     flp_gradient_case_make_data(&c, &data, &reference);
 *     flp_gradient_case_args(&c, &data, NULL, NULL, &args);    host pointers; or a device copy of each buffer's base
 *     ... execute, copy the gradients back to data.own ...
 *     flp_gradient_case_check(&c, &data, &reference, 0, message, sizeof message); */
#ifndef FLP_TESTS_GRADIENT_CASES_H
#define FLP_TESTS_GRADIENT_CASES_H
#include "cases.h"
#include "gradient_reference.h"

typedef enum {
    FLP_UPSTREAM_NORMAL, /* g_logp, g_lse, g_entropy ~ N(0, 1) */
    FLP_UPSTREAM_MEAN,   /* g_logp = -1 / N; g_lse and g_entropy are 0, as with ONES */
    FLP_UPSTREAM_ONES,   /* g_logp = 1 */
    FLP_UPSTREAM_ZEROS,
    FLP_UPSTREAM_ENTROPY,     /* g_entropy = 1.99, all others 0 */
    FLP_UPSTREAM_SPARSE,      /* those of every other row are 0 */
    FLP_UPSTREAM_ONE_INFINITE /* ONES, except that row 3's g_logp is infinite */
} flp_upstream;

typedef struct {
    char name[112];                           /* unique */
    flp_case forward;                         /* the inputs; complete except for its name */
    flp_linear_logp_backward_problem problem; /* complete: strides and target dtype are filled in; the budget is 0 */
    flp_upstream upstream;                    /* with FLP_CASE_IGNORED_NAN those of ignored rows are NaN */
    int grad_hidden_gap, grad_weight_gap;     /* elements between the gradients' rows */
    int gives_logp;                           /* 1: the call gets logp as well as lse */
} flp_gradient_case;

int flp_gradient_case_count(void);
void flp_gradient_case_get(int index, flp_gradient_case *out);
/* Fills in what a case of another table leaves open, as flp_case_complete does. */
void flp_gradient_case_complete(int index, flp_gradient_case *c);

/* Buffers as those of cases.h. A gradient that is accumulated holds numbers before a path adds to them, else 0xc5. */
typedef enum {
    FLP_GRADIENT_LSE,
    FLP_GRADIENT_LOGP,
    FLP_GRADIENT_ENTROPY,
    FLP_GRADIENT_G_LOGP,
    FLP_GRADIENT_G_LSE,
    FLP_GRADIENT_G_ENTROPY,
    FLP_GRADIENT_HIDDEN,
    FLP_GRADIENT_WEIGHT,
    FLP_GRADIENT_BIAS,
    FLP_GRADIENT_BUFFERS
} flp_gradient_role;

typedef struct {
    flp_case_data forward;
    flp_case_buffer own[FLP_GRADIENT_BUFFERS];
    unsigned char *before[FLP_GRADIENT_BUFFERS]; /* copies of the gradients' buffers as they were made */
} flp_gradient_case_data;

/* Makes data and reference together, because the inputs lse and entropy come from the reference. 0 when out of memory. */
int flp_gradient_case_make_data(const flp_gradient_case *c, flp_gradient_case_data *data, flp_gradient_reference *reference);
void flp_gradient_case_free_data(flp_gradient_case_data *data);
void flp_gradient_case_restore_outputs(flp_gradient_case_data *data); /* for another execution */
/* forward, own: the bases of copies of the buffers, NULL for a buffer that the case lacks; or NULL: the host's own buffers. */
void flp_gradient_case_args(const flp_gradient_case *c, const flp_gradient_case_data *data, void *const *forward, void *const *own,
                            flp_linear_logp_backward_args *args);

/* The args of the forward that belongs to a backward with args, for a problem with_forward. outputs: [3][rows], its logp, lse and entropy. */
flp_linear_logp_args flp_gradient_case_forward_args(const flp_gradient_case *c, const flp_linear_logp_backward_args *args, float *outputs);

/* 1: the gradient filter's counts, in a plan that has run the case, are right; else 0 and a message. A filter must have seen every block. In the case "most
 * below" it must have skipped some blocks but not all, in "all below" all. */
int flp_gradient_case_check_filter(const flp_gradient_case *c, flp_plan *plan, char *message, size_t bytes);

/* The unit roundoff of the dtype in which the kernels and the CPU path keep dlogit; 0 for fp32. dtype: of the inputs, which is what kernels keep it in. */
double flp_gradient_gpu_roundoff(flp_dtype dtype);
double flp_gradient_cpu_roundoff(flp_dtype dtype);

/* 1: the gradients in data are right; else 0 and a message. dlogit_roundoff: the unit roundoff of the dtype in which the path keeps dlogit, 0 for fp32. See
 * gradient_check.c for the tolerances. */
int flp_gradient_case_check(const flp_gradient_case *c, const flp_gradient_case_data *data, const flp_gradient_reference *reference, double dlogit_roundoff,
                            char *message, size_t bytes);
#endif
