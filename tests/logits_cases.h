/* The cases that every path of logits_logp has to pass, both directions: inputs, an fp64 reference, and the check of what was written.
 *
 *     flp_logits_case_get(i, &c);  flp_logits_case_make(&c, &data);  flp_logits_case_compute(&c, &data, &wanted);
 *     flp_logits_case_forward(&c, &data, bases, &problem, &args);    ... execute, bring the results back to data ...
 *     flp_logits_case_check(&c, &data, &wanted, FLP_LOGITS_FORWARD, message, sizeof message);
 * and so for the backward in its three forms. */
#ifndef FLP_TESTS_LOGITS_CASES_H
#define FLP_TESTS_LOGITS_CASES_H
#include "reference.h"

typedef enum {
    FLP_LOGITS_NORMAL,  /* N(0, 4) */
    FLP_LOGITS_EQUAL,   /* zeros */
    FLP_LOGITS_TIES,    /* whole numbers -2 .. 2 */
    FLP_LOGITS_UP,      /* + 1e4 */
    FLP_LOGITS_STEP_40, /* + 40 for the last third: later segments, and the later part of one, lie far above */
    FLP_LOGITS_STEP_2000,
    FLP_LOGITS_FIRST_MASKED, /* -inf for the first half */
    FLP_LOGITS_ONE_LEFT,     /* -inf for all but the last */
    FLP_LOGITS_ALL_MASKED,
    FLP_LOGITS_PLUS_INFINITY, /* one entry in every third row: that row NaN */
    FLP_LOGITS_NAN,           /* likewise */
    FLP_LOGITS_LIKELY,        /* the target's is 8 + 4 i, so that its margin is about that of row i: 0 to 80 and more */
    FLP_LOGITS_TARGET_MASKED, /* -inf for the target's */
    FLP_LOGITS_TARGET_ALONE,  /* -inf for all but the target's */
    FLP_LOGITS_LOWEST,        /* the dtype's lowest number, all of them */
    FLP_LOGITS_LOWEST_FIRST,  /* the same for the first half */
    FLP_LOGITS_HUGE,          /* times 1e38 (f16: 6000), cut to the dtype's range */
    FLP_LOGITS_FAR_UP         /* + 2^24 (f16: 2^14): of fp32 only every second whole number is left */
} flp_logits_values;

enum {
    FLP_LOGITS_IGNORED = 1,     /* every third target is ignore_index, and that row holds NaN */
    FLP_LOGITS_BAD_TARGETS = 2, /* two of three targets lie outside the vocabulary */
    FLP_LOGITS_ROW_TEMPERATURES = 4,
    FLP_LOGITS_INDEXED = 8, /* about half of the rows, in no order */
    FLP_LOGITS_SCATTERED = 16,
    FLP_LOGITS_BAD_INDICES = 32, /* some of the indices, or the only one, name no row */
    FLP_LOGITS_LOGP_ONLY = 64,
    FLP_LOGITS_UNEVEN = 128,                 /* g_lse and g_entropy too; zeros among g_logp */
    FLP_LOGITS_NO_LOGP = 512,                /* the backward has lse alone */
    FLP_LOGITS_INFINITE_TEMPERATURES = 1024, /* of every second row; with row temperatures */
    FLP_LOGITS_LOGP_UNWANTED = 2048,         /* logp is not asked for */
    FLP_LOGITS_LSE_UNWANTED = 4096,
    FLP_LOGITS_IGNORED_SOUND = 8192, /* with IGNORED: such a row holds what others do, and its results but logp are theirs */
    FLP_LOGITS_NONE_IGNORED = 256    /* zeroed arguments: ignore_index is 0 without its flag, and some targets are 0 */
};

typedef struct {
    char name[96];
    flp_logits_logp_problem problem; /* rows is the call's; strides are filled in */
    flp_logits_values values;
    unsigned rows;    /* FLP_LOGITS_IGNORED ... */
    int64_t all_rows; /* N of logits and target */
    int64_t ignore_index;
    double temperature; /* 0: 1 */
    int gap;            /* elements between rows, NaN in them */
    int misalignment;   /* bytes that logits and grad_logits lie behind a 256-byte boundary */
} flp_logits_case;

int flp_logits_case_count(void);
void flp_logits_case_get(int index, flp_logits_case *out);
/* Fills in what a table leaves 0: number picks the dtype. */
void flp_logits_case_complete(int number, flp_logits_case *c);

typedef enum {
    FLP_LOGITS_LOGITS,
    FLP_LOGITS_TARGET,
    FLP_LOGITS_ROW_INDEX,
    FLP_LOGITS_ROW_TEMPERATURE,
    FLP_LOGITS_G_LOGP,
    FLP_LOGITS_G_LSE,
    FLP_LOGITS_G_ENTROPY,
    FLP_LOGITS_GIVEN_LSE,
    FLP_LOGITS_GIVEN_ENTROPY,
    FLP_LOGITS_GIVEN_LOGP, /* inputs so far */
    FLP_LOGITS_LOGP,
    FLP_LOGITS_LSE,
    FLP_LOGITS_ENTROPY,
    FLP_LOGITS_ARGMAX,
    FLP_LOGITS_GRAD,
    FLP_LOGITS_ROLES
} flp_logits_role;

/* offset guard bytes, the data, guard bytes: what lies outside the data never changes. base NULL: the case has none. */
typedef struct {
    unsigned char *base;
    size_t bytes, offset, data_bytes;
} flp_logits_buffer;

typedef struct {
    flp_logits_buffer buffer[FLP_LOGITS_ROLES];
} flp_logits_data;

/* In fp64, of the results' rows (all_rows where they are scattered, else problem.rows); what no row writes is marked in `written`. */
typedef struct {
    int64_t rows;
    unsigned char *written;                                  /* [rows] */
    double *logp, *lse, *entropy;                            /* [rows] */
    int64_t *argmax;                                         /* [rows]; -1: any, the row holds NaN or +inf */
    double *gradient;                                        /* [rows][vocab] */
    double *logp_rounding, *lse_rounding, *entropy_rounding; /* [rows]: what fp32 may cost them; see logits_reference.c */
    double *gradient_rounding;                               /* [rows][vocab], before rounding to the dtype */
    double *given_rounding;                                  /* [rows][vocab], what is added to it by an lse in fp32, and where logp is not given */
    int64_t bad_count, bad_first;
} flp_logits_wanted;

typedef enum { FLP_LOGITS_FORWARD, FLP_LOGITS_BACKWARD, FLP_LOGITS_FUSED, FLP_LOGITS_IN_PLACE, FLP_LOGITS_FORMS } flp_logits_form;

/* 0 when out of memory. */
int flp_logits_case_make(const flp_logits_case *c, flp_logits_data *data);
void flp_logits_case_free(flp_logits_data *data);
void flp_logits_case_poison(flp_logits_data *data); /* the results, for another execution */

/* Also fills the data's GIVEN_LSE, GIVEN_ENTROPY and GIVEN_LOGP. 0 when out of memory. */
int flp_logits_case_compute(const flp_logits_case *c, flp_logits_data *data, flp_logits_wanted *wanted);
void flp_logits_wanted_free(flp_logits_wanted *wanted);

/* Whether the case can run in this form: in place wants results where the logits lie. */
int flp_logits_case_has(const flp_logits_case *c, flp_logits_form form);
/* bases: copies of the buffers' bases, or NULL for the host's own. */
void flp_logits_case_forward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_logp_args *args);
/* In place, grad_logits is logits: the caller copies FLP_LOGITS_LOGITS to where FLP_LOGITS_GRAD lies first, and that is both. */
void flp_logits_case_backward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_form form,
                              flp_logits_logp_backward_problem *problem, flp_logits_logp_backward_args *args);

/* 1 where what the form writes is right and nothing else has changed, else 0 and a message. */
int flp_logits_case_check(const flp_logits_case *c, const flp_logits_data *data, const flp_logits_wanted *wanted, flp_logits_form form, char *message,
                          size_t bytes);
#endif
