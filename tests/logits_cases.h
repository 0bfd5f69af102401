/* The cases that every path of logits_logp and its backward must pass: inputs, an fp64 reference, and the check of what was written.
 *
 *     flp_logits_case_get(i, &c);  flp_logits_case_make(&c, &data);  flp_logits_case_compute(&c, &data, &wanted);
 *     flp_logits_case_forward(&c, &data, bases, &problem, &args);    ... execute, copy the results back to data ...
 *     flp_logits_case_check(&c, &data, &wanted, FLP_LOGITS_FORWARD, message, sizeof message);
 * The backward is checked in the same way in each of its three forms. */
#ifndef FLP_TESTS_LOGITS_CASES_H
#define FLP_TESTS_LOGITS_CASES_H
#include "reference.h"

typedef enum {
    FLP_LOGITS_NORMAL,  /* N(0, 4) */
    FLP_LOGITS_EQUAL,   /* zeros */
    FLP_LOGITS_TIES,    /* whole numbers -2 .. 2 */
    FLP_LOGITS_UP,      /* + 1e4 */
    FLP_LOGITS_STEP_40, /* + 40 for the last third: later segments, and the end of one, are far above the first */
    FLP_LOGITS_STEP_2000,
    FLP_LOGITS_FIRST_MASKED, /* -inf for the first half */
    FLP_LOGITS_ONE_LEFT,     /* -inf for all but the last */
    FLP_LOGITS_ALL_MASKED,
    FLP_LOGITS_PLUS_INFINITY, /* for one entry of every third row, whose results are NaN */
    FLP_LOGITS_NAN,           /* the same with a NaN */
    FLP_LOGITS_LIKELY,        /* the target's logit is 8 + 4 i in row i: its margin over the others goes from about 0 to 80 and more */
    FLP_LOGITS_TARGET_MASKED, /* -inf for the target's logit */
    FLP_LOGITS_TARGET_ALONE,  /* -inf for all logits but the target's */
    FLP_LOGITS_LOWEST,        /* all are the dtype's lowest finite number */
    FLP_LOGITS_LOWEST_FIRST,  /* the first half are */
    FLP_LOGITS_HUGE,          /* times 1e38 (f16: 6000), cut to the dtype's range */
    FLP_LOGITS_FAR_UP         /* + 2^24 (f16: 2^14): fp32 has only every second whole number there */
} flp_logits_values;

enum {
    FLP_LOGITS_IGNORED = 1,     /* every third target is ignore_index, and its row holds NaN */
    FLP_LOGITS_BAD_TARGETS = 2, /* two of three targets are outside the vocabulary */
    FLP_LOGITS_ROW_TEMPERATURES = 4,
    FLP_LOGITS_INDEXED = 8, /* row_index names about half of the rows, in no order */
    FLP_LOGITS_SCATTERED = 16,
    FLP_LOGITS_BAD_INDICES = 32, /* some of the indices, or the only one, name no row */
    FLP_LOGITS_LOGP_ONLY = 64,
    FLP_LOGITS_UNEVEN = 128,                 /* there are g_lse and g_entropy, too, and zeros in g_logp */
    FLP_LOGITS_NO_LOGP = 512,                /* the backward gets lse, but no logp */
    FLP_LOGITS_INFINITE_TEMPERATURES = 1024, /* of every second row; with row temperatures */
    FLP_LOGITS_LOGP_UNWANTED = 2048,         /* logp is not requested */
    FLP_LOGITS_LSE_UNWANTED = 4096,
    FLP_LOGITS_IGNORED_SOUND = 8192, /* with IGNORED: ignored rows hold ordinary logits, and have ordinary results except for logp */
    FLP_LOGITS_NONE_IGNORED = 256    /* as in zeroed arguments: ignore_index is 0 without its flag; some targets are 0 */
};

typedef struct {
    char name[96];
    flp_logits_logp_problem problem; /* rows: of the call; strides are filled in */
    flp_logits_values values;
    unsigned rows;    /* FLP_LOGITS_IGNORED ... */
    int64_t all_rows; /* of logits and target */
    int64_t ignore_index;
    double temperature; /* 0: 1 */
    int gap;            /* elements between rows, which hold NaN */
    int misalignment;   /* logits and grad_logits begin so many bytes after a 256-byte boundary */
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
    FLP_LOGITS_GIVEN_LOGP, /* the last input */
    FLP_LOGITS_LOGP,
    FLP_LOGITS_LSE,
    FLP_LOGITS_ENTROPY,
    FLP_LOGITS_ARGMAX,
    FLP_LOGITS_GRAD,
    FLP_LOGITS_ROLES
} flp_logits_role;

/* `offset` guard bytes, the data, guard bytes: no path may change a byte outside the data. base NULL: the case has no such buffer. */
typedef struct {
    unsigned char *base;
    size_t bytes, offset, data_bytes;
} flp_logits_buffer;

typedef struct {
    flp_logits_buffer buffer[FLP_LOGITS_ROLES];
} flp_logits_data;

/* The results in fp64. rows: all_rows if results are scattered, else problem.rows. */
typedef struct {
    int64_t rows;
    unsigned char *written;                                  /* [rows] 1: a row of the call writes this one */
    double *logp, *lse, *entropy;                            /* [rows] */
    int64_t *argmax;                                         /* [rows]; -1: any index will do, since the row holds NaN or +inf */
    double *gradient;                                        /* [rows][vocab] */
    double *logp_rounding, *lse_rounding, *entropy_rounding; /* [rows]: their errors in fp32; see logits_reference.c */
    double *gradient_rounding;                               /* [rows][vocab]: its error before it is rounded to the dtype */
    double *given_rounding;                                  /* [rows][vocab]: what an lse in fp32, and a logp that is not given, add to it */
    int64_t bad_count, bad_first;
} flp_logits_wanted;

typedef enum { FLP_LOGITS_FORWARD, FLP_LOGITS_BACKWARD, FLP_LOGITS_FUSED, FLP_LOGITS_IN_PLACE, FLP_LOGITS_FORMS } flp_logits_form;

/* 0 when out of memory. */
int flp_logits_case_make(const flp_logits_case *c, flp_logits_data *data);
void flp_logits_case_free(flp_logits_data *data);
void flp_logits_case_poison(flp_logits_data *data); /* poisons the results, for another execution */

/* Also fills the data's GIVEN_LSE, GIVEN_ENTROPY and GIVEN_LOGP. 0 when out of memory. */
int flp_logits_case_compute(const flp_logits_case *c, flp_logits_data *data, flp_logits_wanted *wanted);
void flp_logits_wanted_free(flp_logits_wanted *wanted);

/* Whether the case can run in this form. In place, each row's gradients must be written to the place of its logits: not for INDEXED rows, unless SCATTERED. */
int flp_logits_case_has(const flp_logits_case *c, flp_logits_form form);
/* bases: the bases of copies of the buffers; or NULL: the host's own buffers. */
void flp_logits_case_forward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_logp_args *args);
/* In place, the buffer FLP_LOGITS_GRAD is both logits and grad_logits: the caller first copies the data of FLP_LOGITS_LOGITS to it. */
void flp_logits_case_backward(const flp_logits_case *c, const flp_logits_data *data, void *const *bases, flp_logits_form form,
                              flp_logits_logp_backward_problem *problem, flp_logits_logp_backward_args *args);

/* 1: what the form writes is right, and nothing else has changed; else 0 and a message. */
int flp_logits_case_check(const flp_logits_case *c, const flp_logits_data *data, const flp_logits_wanted *wanted, flp_logits_form form, char *message,
                          size_t bytes);
#endif
