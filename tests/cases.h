/* The cases that every path of linear_logp has to pass: problems, deterministic inputs, and the check of the outputs.
 *
 *     flp_case c;  flp_case_data data;  flp_reference reference;
 *     flp_case_get(i, &c);
 *     flp_case_make_data(&c, &data);
 *     flp_case_args(&c, &data, NULL, &args);             host pointers; or a device copy of each buffer's base
 *     flp_reference_compute(&c.problem, &args, &reference);
 *     ... execute, bring LOGP, LSE, ENTROPY and ARGMAX back to data ...
 *     flp_case_check(&c, &data, &reference, message, sizeof message); */
#ifndef FLP_TESTS_CASES_H
#define FLP_TESTS_CASES_H
#include "reference.h"

typedef enum {
    FLP_CASE_NORMAL,  /* hidden ~ N(0, 1), weight ~ N(0, 4 / D): logits with a deviation of 2 */
    FLP_CASE_ZEROS,   /* weight 0: all logits equal */
    FLP_CASE_INTEGERS /* both whole numbers -2 .. 2: logits exact in fp32, with many ties */
} flp_case_values;

/* But for NONE, the problem has a bias; its values come on top of N(0, 1). */
typedef enum {
    FLP_CASE_NO_BIAS,
    FLP_CASE_PLAIN_BIAS,
    FLP_CASE_UP,       /* + 1e4 */
    FLP_CASE_DOWN,     /* - 1e4 */
    FLP_CASE_NEGATIVE, /* - 50: all logits negative */
    FLP_CASE_STEP_200, /* + 200 for the last 300 entries: later tiles lie far above the first */
    FLP_CASE_STEP_2000,
    FLP_CASE_FIRST_MASKED, /* -inf for the first half of the vocabulary: whole tiles of it */
    FLP_CASE_LAST_MASKED,
    FLP_CASE_ONE_LEFT, /* -inf for all but the last entry */
    FLP_CASE_ALL_MASKED,
    FLP_CASE_PLUS_INFINITY, /* +inf for one entry: every row NaN */
    FLP_CASE_ONE_LIKELY,    /* entry V / 3 is 1.5 V times as likely as each other would be at 0 */
    FLP_CASE_BIAS_NAN,      /* NaN for one entry: every row NaN */
    FLP_CASE_1E30_DOWN,     /* - 1e30: no logit differs from another */
    FLP_CASE_LOWEST         /* the lowest finite number of fp32 */
} flp_case_bias;

enum {                            /* what some of the rows hold */
       FLP_CASE_IGNORED_ROWS = 1, /* every third target is ignore_index */
       FLP_CASE_ALL_IGNORED = 2,
       FLP_CASE_BAD_TARGETS = 4,  /* two of three targets lie outside the vocabulary, in many ways */
       FLP_CASE_NAN_ROWS = 8,     /* a NaN in every fifth row of hidden, +inf in every other fifth */
       FLP_CASE_IGNORED_NAN = 16, /* an ignored row's hidden is NaN */
       FLP_CASE_ROW_TEMPERATURES = 32,
       FLP_CASE_LOGP_ONLY = 64,          /* lse is not asked for */
       FLP_CASE_EQUAL_TARGETS = 128,     /* all targets are entry V / 2 */
       FLP_CASE_NONE_IGNORED = 256,      /* zeroed arguments: ignore_index is 0 without its flag, and some targets are 0 */
       FLP_CASE_ZERO_IGNORED = 512,      /* ignore_index is 0, with its flag */
       FLP_CASE_UNWANTED = 1024,         /* entropy and argmax, which the problem has, are not asked for */
       FLP_CASE_BOUNDARY_TARGETS = 2048, /* on both sides of each multiple of 256, where tiles, chunks and the saved exponentials end */
       FLP_CASE_NAN_WEIGHT = 4096        /* one entry of the weight is the NaN with the last bit alone: every row NaN */
};

typedef struct {
    char name[112];                  /* unique */
    flp_linear_logp_problem problem; /* complete: strides and target dtype are filled in, rows is N */
    flp_case_values values;
    flp_case_bias bias;
    unsigned rows; /* FLP_CASE_IGNORED_ROWS ... */
    int64_t ignore_index;
    double temperature;         /* 0: 1 */
    int hidden_gap, weight_gap; /* elements between the rows, NaN in them */
    int vocab_padding;          /* entries of weight behind the vocabulary: huge and NaN */
    int misalignment;           /* bytes that hidden and weight lie behind a 256-byte boundary */
    double margin;              /* > 0: eighths of it, none to all by the row, more in the logit of entry V / 2. With FLP_CASE_EQUAL_TARGETS likely
                                        targets, whose logp is then held to its own size; values are INTEGERS, of few D */
} flp_case;

int flp_case_count(void);
void flp_case_get(int index, flp_case *out);
/* 1: cases of this dtype run; $FUSEDLOGP_CASES_DTYPE names the only one that does. */
int flp_case_dtype_runs(flp_dtype dtype);
/* Fills in the fields that are 0: rows 65 (0 for -1), hidden 64, vocab 1000, strides ...; the dtypes take turns by index. */
void flp_case_complete(int index, flp_case *c);

/* Every buffer: `offset` guard bytes, the data, guard bytes up to `bytes`. An input's guards and gaps hold 0xff (NaN, -1), an
 * output is all 0xc5 before a path writes it. base is 256-byte aligned and NULL where the case has no such buffer; a copy
 * on another machine keeps the alignment that the case wants. */
#define FLP_CASE_INPUT_LIST(X) X(HIDDEN, "hidden") X(WEIGHT, "weight") X(BIAS, "bias") X(TARGET, "target") X(ROW_TEMPERATURE, "row_temperature")
#define FLP_CASE_OUTPUT_LIST(X) X(LOGP, "logp") X(LSE, "lse") X(ENTROPY, "entropy") X(ARGMAX, "argmax")
#define FLP_CASE_ROLE(role, name) FLP_CASE_##role,
typedef enum {
    FLP_CASE_INPUT_LIST(FLP_CASE_ROLE) /* from FLP_CASE_LOGP on: outputs */
    FLP_CASE_OUTPUT_LIST(FLP_CASE_ROLE) FLP_CASE_BUFFERS
} flp_case_role;
#undef FLP_CASE_ROLE

extern const char *const flp_case_role_names[FLP_CASE_BUFFERS];

typedef struct {
    unsigned char *base;
    size_t bytes, offset, data_bytes;
} flp_case_buffer;

typedef struct {
    flp_case_buffer buffer[FLP_CASE_BUFFERS];
} flp_case_data;

/* 0 when out of memory. Free with flp_case_free_data. */
int flp_case_make_data(const flp_case *c, flp_case_data *data);
void flp_case_free_data(flp_case_data *data);
void flp_case_poison_outputs(flp_case_data *data); /* for another execution */
/* bases: FLP_CASE_BUFFERS copies of the buffers' bases, NULL for those without; or NULL for the host's own. */
void flp_case_args(const flp_case *c, const flp_case_data *data, void *const *bases, flp_linear_logp_args *args);

/* 1 where the outputs in data are right, else 0 and a message. See case_check.c for the tolerances. */
int flp_case_check(const flp_case *c, const flp_case_data *data, const flp_reference *reference, char *message, size_t bytes);

/* A buffer filled with that byte; 0 when out of memory. */
int flp_case_allocate(flp_case_buffer *buffer, int64_t data_bytes, int misalignment, int fill);
enum { FLP_CASE_INPUT_FILL = 0xff, FLP_CASE_OUTPUT_FILL = 0xc5 };

/* Deterministic numbers: the same on every machine. */
uint64_t flp_case_random(uint64_t stream, uint64_t index);
double flp_case_random_normal(uint64_t stream, uint64_t index); /* nearly N(0, 1): the sum of four uniform ones */
#endif
