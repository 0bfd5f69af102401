/* A record: what a tuning found for one problem on one machine. As text it is a line
 *
 *     fusedlogp record 2
 *
 * and a line `key: value` for each field below, in this order. There is one text of a record: what is not to the letter as it would be written, is none.
 * Its file is named by what it is of, identity and environment: the first 32 hexadecimal digits of their lines' SHA-256, and ".record". */
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

/* What has to be the same where a record is to count at all. */
typedef struct {
    char problem[FLP_RECORD_PROBLEM_BYTES];  /* canonical string; its n is the bucket of rows, or it has none: core/tuned.h */
    char arch[FLP_RECORD_WORD_BYTES];        /* "sm_90a" */
    char numerics[FLP_RECORD_PROBLEM_BYTES]; /* the arithmetic's identity */
    char templates[FLP_RECORD_DIGEST_BYTES]; /* SHA-256 of the templates that its kernels reach */
    char selection[FLP_RECORD_DIGEST_BYTES]; /* and of the variants that are taken without a tuning, which this one changes */
} flp_record_identity;

typedef enum { FLP_REGIME_SUSTAINED, FLP_REGIME_BURST } flp_regime;

typedef struct {
    flp_record_identity identity;
    flp_environment environment;
    char tuning[FLP_RECORD_TUNING_BYTES]; /* "": the default, for which the text says `default` */
    flp_regime regime;
    double seconds, default_seconds;     /* medians of their runs */
    double ratio, ratio_low, ratio_high; /* of its time to the default's in the same round: median and its interval */
    double predicted_seconds;            /* by the model; 0: it said nothing */
    int64_t workspace_bytes, rounds;
    flp_tuning_end ended;
    char date[FLP_RECORD_WORD_BYTES];    /* 2026-11-22 */
    char version[FLP_RECORD_WORD_BYTES]; /* of the library that timed it */
} flp_record;

extern const char *const flp_regime_names[]; /* by value; NULL ends them */
extern const char *const flp_tuning_end_names[];

/* Appends the text. Numbers have six digits. FLP_BAD_ARGUMENT names the field that no text can hold or that makes no sense. */
flp_status flp_record_format(const flp_record *record, flp_text *text);

/* The format that a text's first line names, FLP_RECORD_FORMAT or another library's; 0: it names none. */
int flp_record_format_of(const char *text);

/* FLP_BAD_ARGUMENT: line and what is wrong there. */
flp_status flp_record_parse(const char *text, flp_record *record);

/* The file's name. */
void flp_record_name(const flp_record *record, char name[FLP_RECORD_NAME_BYTES]);

/* 1 where they are of the same problem, kernels and arithmetic. */
int flp_record_identity_same(const flp_record_identity *one, const flp_record_identity *other);
#endif
