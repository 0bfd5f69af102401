/* The cases that every path of linear_logp must pass: problems, deterministic inputs, and the check of the outputs.
 *
 *     flp_case c;  flp_case_data data;  flp_reference reference;
 *     flp_case_get(i, &c);
 *     flp_case_make_data(&c, &data);
 *     flp_case_args(&c, &data, NULL, &args);             host pointers; or a device copy of each buffer's base
 *     flp_reference_compute(&c.problem, &args, &reference);
 *     ... execute, copy LOGP, LSE, ENTROPY and ARGMAX back to data ...
 *     flp_case_check(&c, &data, &reference, message, sizeof message); */
#ifndef FLP_TESTS_CASES_H
#define FLP_TESTS_CASES_H
#include "reference.h"

typedef enum {
    FLP_CASE_NORMAL,  /* hidden ~ N(0, 1), weight ~ N(0, 4 / D): logits with a deviation of 2 */
    FLP_CASE_ZEROS,   /* weight 0: all logits equal */
    FLP_CASE_INTEGERS /* both are whole numbers -2 .. 2: logits are exact in fp32, with many ties */
} flp_case_values;

/* The bias. With FLP_CASE_NO_BIAS the problem has none; else its entries are N(0, 1), with the changes that are said here. */
typedef enum {
    FLP_CASE_NO_BIAS,
    FLP_CASE_PLAIN_BIAS,
    FLP_CASE_UP,       /* + 1e4 */
    FLP_CASE_DOWN,     /* - 1e4 */
    FLP_CASE_NEGATIVE, /* - 50: all logits negative */
    FLP_CASE_STEP_200, /* + 200 for the last 300 entries: logits of later tiles are far above those of the first */
    FLP_CASE_STEP_2000,
    FLP_CASE_FIRST_MASKED, /* -inf for the first half of the vocabulary, which masks whole tiles */
    FLP_CASE_LAST_MASKED,
    FLP_CASE_ONE_LEFT, /* -inf for all but the last entry */
    FLP_CASE_ALL_MASKED,
    FLP_CASE_PLUS_INFINITY, /* +inf for one entry: every row NaN */
    FLP_CASE_ONE_LIKELY,    /* log(1.5 V) for entry V / 3, 0 for all others: one likely entry */
    FLP_CASE_BIAS_NAN,      /* NaN for one entry: every row NaN */
    FLP_CASE_1E30_DOWN,     /* - 1e30: in fp32 all logits are equal */
    FLP_CASE_LOWEST         /* the lowest finite number of fp32 */
} flp_case_bias;

enum {                            /* what some of the rows hold */
       FLP_CASE_IGNORED_ROWS = 1, /* every third target is ignore_index */
       FLP_CASE_ALL_IGNORED = 2,
       FLP_CASE_BAD_TARGETS = 4,  /* two of three targets are outside the vocabulary, in many ways */
       FLP_CASE_NAN_ROWS = 8,     /* a NaN in every fifth row of hidden, +inf in every other fifth */
       FLP_CASE_IGNORED_NAN = 16, /* an ignored row's hidden is NaN */
       FLP_CASE_ROW_TEMPERATURES = 32,
       FLP_CASE_LOGP_ONLY = 64,          /* lse is not requested */
       FLP_CASE_EQUAL_TARGETS = 128,     /* all targets are entry V / 2 */
       FLP_CASE_NONE_IGNORED = 256,      /* as in zeroed arguments: ignore_index is 0 without its flag; some targets are 0 */
       FLP_CASE_ZERO_IGNORED = 512,      /* ignore_index is 0, with its flag */
       FLP_CASE_UNWANTED = 1024,         /* entropy and argmax are not requested, though the problem has them */
       FLP_CASE_BOUNDARY_TARGETS = 2048, /* targets on both sides of each multiple of 256, where tiles, chunks and saved exponentials end */
       FLP_CASE_NAN_WEIGHT = 4096        /* one element of the weight is the NaN whose fraction is only the last bit: every row NaN */
};

typedef struct {
    char name[112];                  /* unique */
    flp_linear_logp_problem problem; /* complete: strides and target dtype are filled in, rows is N */
    flp_case_values values;
    flp_case_bias bias;
    unsigned rows; /* FLP_CASE_IGNORED_ROWS ... */
    int64_t ignore_index;
    double temperature;         /* 0: 1 */
    int hidden_gap, weight_gap; /* elements between the rows, which hold NaN */
    int vocab_padding;          /* entries of weight after the vocabulary's last, which hold huge numbers and NaN */
    int misalignment;           /* hidden and weight begin so many bytes after a 256-byte boundary */
    double margin;              /* > 0: entry V / 2 has a larger logit, by margin times 0/8 .. 8/8, depending on the row. With FLP_CASE_EQUAL_TARGETS
                                        this makes likely targets, whose logp must be right relative to its own size. For INTEGERS and a small D */
} flp_case;

int flp_case_count(void);
void flp_case_get(int index, flp_case *out);
/* 1: cases of this dtype run; $FUSEDLOGP_CASES_DTYPE names the only one that does. A word that names none ends the program. */
int flp_case_dtype_runs(flp_dtype dtype);
/* Fills in the fields that are 0: rows 65 (0 for -1), hidden 64, vocab 1000, strides ...; index decides on the dtype. */
void flp_case_complete(int index, flp_case *c);

/* A buffer has `offset` guard bytes, then the data, then guard bytes up to `bytes`. An input's guards and gaps hold 0xff (NaN, -1); an output is all 0xc5
 * before a path writes it. base is 256-byte aligned, and NULL if the case has no such buffer. A copy on another machine must be aligned like that, too, so
 * that the data are aligned as the case wants it. */
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
/* bases: [FLP_CASE_BUFFERS] the bases of copies of the buffers, NULL for a buffer that the case lacks; or NULL: the host's own buffers. */
void flp_case_args(const flp_case *c, const flp_case_data *data, void *const *bases, flp_linear_logp_args *args);

/* 1: the outputs in data are right; else 0 and a message. See case_check.c for the tolerances. */
int flp_case_check(const flp_case *c, const flp_case_data *data, const flp_reference *reference, char *message, size_t bytes);

/* Allocates a buffer and fills it with the byte `fill`; 0 when out of memory. */
int flp_case_allocate(flp_case_buffer *buffer, int64_t data_bytes, int misalignment, int fill);
enum { FLP_CASE_INPUT_FILL = 0xff, FLP_CASE_OUTPUT_FILL = 0xc5 };

/* Deterministic numbers: the same on every machine. */
uint64_t flp_case_random(uint64_t stream, uint64_t index);
double flp_case_random_normal(uint64_t stream, uint64_t index); /* nearly N(0, 1): the sum of four uniform ones */
#endif
