/* A record: what a tuning found for one problem on one machine. As text it is a line
 *
 *     fusedlogp record 2
 *
 * and a line `key: value` for each field below, in this order. A record has exactly one text: a text that differs in one letter from what the library would
 * write is not a record. The name of its file is the first 32 hexadecimal digits of the SHA-256 of the lines of identity and environment, and ".record". */
#ifndef FLP_TUNE_RECORD_H
#define FLP_TUNE_RECORD_H
#include "base/text.h"
#include "tune/environment.h"
#include "tune/tuner.h"

enum {
    FLP_RECORD_FORMAT = 2, /* the number in the first line */
    FLP_RECORD_PROBLEM_BYTES = 1024,
    FLP_RECORD_TUNING_BYTES = 513,
    FLP_RECORD_WORD_BYTES = 32,
    FLP_RECORD_DIGEST_BYTES = 65, /* of SHA-256's text */
    FLP_RECORD_NAME_BYTES = 32 + 7 + 1
};

/* What must be the same here for a record to apply at all. */
typedef struct {
    char problem[FLP_RECORD_PROBLEM_BYTES];  /* canonical string with the bucket of rows, or without rows (core/tuned_identity.h) */
    char arch[FLP_RECORD_WORD_BYTES];        /* "sm_90a" */
    char numerics[FLP_RECORD_PROBLEM_BYTES]; /* the numeric identity of the kernels' arithmetic */
    char templates[FLP_RECORD_DIGEST_BYTES]; /* SHA-256 of the templates that its kernels use */
    char selection[FLP_RECORD_DIGEST_BYTES]; /* SHA-256 of the variants that are used without a tuning, which the tuning changes */
} flp_record_identity;

typedef enum { FLP_REGIME_SUSTAINED, FLP_REGIME_BURST } flp_regime;

typedef struct {
    flp_record_identity identity;
    flp_environment environment;
    char tuning[FLP_RECORD_TUNING_BYTES]; /* "": the default, for which the text says `default` */
    flp_regime regime;
    double seconds, default_seconds;     /* medians over the runs with the tuning, and with the default */
    double ratio, ratio_low, ratio_high; /* its time over the default's in the same round: median and interval */
    double predicted_seconds;            /* by the model; 0: none */
    int64_t workspace_bytes, rounds;
    flp_tuning_end ended;
    char date[FLP_RECORD_WORD_BYTES];    /* 2026-11-22 */
    char version[FLP_RECORD_WORD_BYTES]; /* of the library that timed it */
} flp_record;

extern const char *const flp_regime_names[]; /* by value; NULL after the last */
extern const char *const flp_tuning_end_names[];

/* Appends the text. Numbers have six digits. FLP_BAD_ARGUMENT names a field with a value that cannot be written or makes no sense. */
flp_status flp_record_format(const flp_record *record, flp_text *text);

/* The format number in a text's first line: FLP_RECORD_FORMAT, or that of another version of the library; 0: there is none. */
int flp_record_format_of(const char *text);

/* Reads a record from its text. FLP_BAD_ARGUMENT: the line, and what is wrong there. */
flp_status flp_record_parse(const char *text, flp_record *record);

/* The file's name. */
void flp_record_name(const flp_record *record, char name[FLP_RECORD_NAME_BYTES]);

/* 1: the two are equal, i.e. of the same problem, kernels and arithmetic. */
int flp_record_identity_same(const flp_record_identity *one, const flp_record_identity *other);
#endif
