/* fusedlogp score: options -> inputs -> run -> report, one file each. */
#ifndef FLP_CLI_SCORE_H
#define FLP_CLI_SCORE_H
#include "cli/model_config.h"
#include "cli/result_file.h"
#include "cli/shard.h"
#include "cli/tensor.h"
#include "fusedlogp.h"
#include <limits.h>

typedef struct {
    const char *model;                                    /* the folder that weight and bias come from, or NULL */
    const char *hidden, *weight, *logits, *target, *bias; /* tensor files; hidden and weight, or logits; bias may be NULL */
    const char *out, *lse, *entropy, *argmax;             /* result files or NULL; of a shard: in shard_path */
    flp_shard shard;
    char shard_path[4][PATH_MAX]; /* "out.npy.shard-2-of-8" */
    int shift;                    /* 1: a row is scored against the next row's target */
    flp_weight_layout layout;
    int64_t vocab;               /* 0: the weight's */
    int64_t model_hidden;        /* the hidden size that config.json names; 0: no model */
    int model_vocab;             /* 1: vocab is from config.json */
    double temperature, softcap; /* 0: none */
    int64_t ignore_index;
    flp_backend backend;
    flp_precision precision;
    int64_t chunk_rows; /* 0: the program chooses */
    int device, threads;
    int device_wraps; /* 1: device is this process's rank on its machine, and is taken modulo the number of devices */
    int json, quiet, strict;
} flp_score_options;

/* Exits on a usage error, as argp does. */
void flp_score_options_parse(int argc, char **argv, flp_score_options *options);
const char *flp_score_on_output(const flp_score_options *options); /* a result that goes to standard output, so that the summary goes to stderr; or NULL */

typedef struct {
    flp_tensor hidden, weight, bias, target;
    int has_logits;                  /* 1: hidden holds logits, problem.hidden is the length of their rows, and there is no weight */
    int converts;                    /* 1: hidden's dtype is not the weight's, which is the problem's dtype */
    flp_linear_logp_problem problem; /* rows: the shard's */
    flp_result_shape shape;          /* of the results: [N] or [B, T] */
    int64_t first;                   /* the shard's first row; hidden.data and target.data begin there */
    flp_shard_facts facts;           /* shard.count 0: all rows; else without numerics and result, which are known later */
    int64_t tokens;                  /* rows that are not ignored */
} flp_score_inputs;

/* Opens the tensors and checks that they fit together and that every target lies in the vocabulary. FLP_IO_FAILED; FLP_BAD_ARGUMENT and FLP_BAD_TARGET: name
 * the option, what it got and what was wanted. The caller frees inputs with flp_score_inputs_close, also after a failure. */
flp_status flp_score_inputs_open(const flp_score_options *options, flp_score_inputs *inputs);
/* FLP_IO_FAILED: a file changed since it was opened, so that the results may be of either state; names option and file. */
flp_status flp_score_inputs_check(const flp_score_options *options, const flp_score_inputs *inputs);
void flp_score_inputs_close(flp_score_inputs *inputs);
/* A digest of the inputs and of the options that decide on the results: the shards of one run have the same. To be called before the inputs are cut to a
 * shard. FLP_OUT_OF_MEMORY. */
flp_status flp_score_run_identity(const flp_score_options *options, const flp_score_inputs *inputs, char identity[FLP_DIGEST_TEXT_BYTES]);
int64_t flp_score_inputs_row_bytes(const flp_score_inputs *inputs); /* bytes of a row of hidden, in its file */

/* Points *at to rows first .. first + rows - 1 of hidden in the problem's dtype: in the file or, where they are converted, in buffer, which must have room
 * for them. Adds to *rounded the number of values that the conversion rounded. FLP_BAD_ARGUMENT: a finite value would become infinite; names its row. */
flp_status flp_score_inputs_rows(const flp_score_inputs *inputs, int64_t first, int64_t rows, void *buffer, const void **at, int64_t *rounded);

/* To be called before anything is computed. FLP_BAD_ARGUMENT: two results, or a result and an input, are one file, under whatever names; names both options.
 * FLP_IO_FAILED: a result could not be written. */
flp_status flp_score_outputs_check(const flp_score_options *options, const flp_score_inputs *inputs);

/* Creates a plan for problem, which is the inputs' problem or a chunk of it with fewer rows, and writes its canonical string to text. */
flp_status flp_score_plan_create(flp_context *context, const flp_score_inputs *inputs, const flp_linear_logp_problem *problem, char *text, size_t bytes,
                                 flp_plan **plan);
/* Executes the plan. args->hidden points to the logits where the inputs are logits. */
flp_status flp_score_execute(const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args);

typedef struct {
    float *logp, *lse, *entropy; /* [rows]; lse and entropy NULL where not requested */
    int32_t *argmax;             /* [rows] or NULL */
    flp_backend path;
    char device[256], reason[1024], numerics[512]; /* as flp_plan_describe has them */
    char problem[256];                             /* canonical string, of one chunk */
    int64_t chunk_rows;
    double plan_seconds, seconds; /* making the plan; copies and computing */
} flp_score_result;

/* Scores all rows. Returns the status of what failed. The caller frees result with flp_score_run_free, also after a failure. */
flp_status flp_score_run(const flp_score_options *options, const flp_score_inputs *inputs, flp_score_result *result);
void flp_score_run_free(flp_score_result *result);

/* Writes the result files and prints the summary. Returns an exit code. */
int flp_score_report(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result);

#endif
