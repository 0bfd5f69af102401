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
    const char *out, *lse, *entropy, *argmax;             /* result files or NULL; with a shard as the next */
    flp_shard shard;
    char shard_path[4][PATH_MAX]; /* "out.npy.shard-2-of-8" */
    int shift;                    /* a row is scored against the target behind it */
    flp_weight_layout layout;
    int64_t vocab;               /* 0: as weight has it */
    int64_t model_hidden;        /* what the model's weight should have; 0: no model */
    int model_vocab;             /* vocab is the model's */
    double temperature, softcap; /* 0: none */
    int64_t ignore_index;
    flp_backend backend;
    flp_precision precision;
    int64_t chunk_rows; /* 0: chosen from the memory at hand */
    int device, threads;
    int device_wraps; /* device is the number of this process on its machine, which may have fewer */
    int json, quiet, strict;
} flp_score_options;

/* Exits on a usage error, as argp does. */
void flp_score_options_parse(int argc, char **argv, flp_score_options *options);
int flp_score_takes_output(const flp_score_options *options); /* a result is -, so that the summary goes to stderr */

typedef struct {
    flp_tensor hidden, weight, bias, target;
    int has_logits;                  /* hidden holds logits: problem.hidden is the length of their rows, and there is no weight */
    int converts;                    /* hidden's dtype is not the weight's, which is the problem's */
    flp_linear_logp_problem problem; /* rows: those of the shard */
    flp_result_shape shape;          /* of the results: [N] or [B, T] */
    int64_t first;                   /* the shard's first row; hidden.data and target.data begin there */
    flp_shard_facts facts;           /* shard.count 0: all rows; else what is known before the plan is */
    int64_t tokens;                  /* rows that are not ignored */
} flp_score_inputs;

/* Opens the tensors and checks that they fit together and that every target lies in the vocabulary. FLP_IO_FAILED;
 * FLP_BAD_ARGUMENT and FLP_BAD_TARGET name option, what it got and what was wanted. Freed by flp_score_inputs_close, also then. */
flp_status flp_score_inputs_open(const flp_score_options *options, flp_score_inputs *inputs);
/* FLP_IO_FAILED: a file changed since it was opened, so that the results may be of either state; names option and file. */
flp_status flp_score_inputs_check(const flp_score_options *options, const flp_score_inputs *inputs);
void flp_score_inputs_close(flp_score_inputs *inputs);
/* FLP_OUT_OF_MEMORY */
flp_status flp_score_run_identity(const flp_score_options *options, const flp_score_inputs *inputs, char identity[FLP_DIGEST_TEXT_BYTES]);
int64_t flp_score_inputs_row_bytes(const flp_score_inputs *inputs); /* of hidden in its file */

/* hidden of rows first .. first + rows - 1 in the problem's dtype: where it lies, or converted into buffer, which has room for them. Counts the
 * values that were rounded. FLP_BAD_ARGUMENT: a finite value would become infinite; names its row. */
flp_status flp_score_inputs_rows(const flp_score_inputs *inputs, int64_t first, int64_t rows, void *buffer, const void **at, int64_t *rounded);

/* Before anything is computed: FLP_BAD_ARGUMENT where two results, or a result and an input, are one file under whatever names; it
 * names both options. FLP_IO_FAILED where a result could not be written at all. */
flp_status flp_score_outputs_check(const flp_score_options *options, const flp_score_inputs *inputs);

/* A plan for problem, which is the inputs' or a chunk of it, and its canonical string. */
flp_status flp_score_plan_create(flp_context *context, const flp_score_inputs *inputs, const flp_linear_logp_problem *problem, char *text, size_t bytes,
                                 flp_plan **plan);
/* args->hidden: logits, where the inputs are. */
flp_status flp_score_execute(const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args);

typedef struct {
    float *logp, *lse, *entropy; /* [rows]; lse and entropy NULL where not asked for */
    int32_t *argmax;             /* [rows] or NULL */
    flp_backend path;
    char device[256], reason[1024], numerics[512]; /* as flp_plan_describe has them */
    char problem[256];                             /* canonical string, of one chunk */
    int64_t chunk_rows;
    double plan_seconds, seconds; /* getting the kernels; copies and computing */
} flp_score_result;

/* Scores all rows. Freed by flp_score_run_free, also where it failed. The status of what failed. */
flp_status flp_score_run(const flp_score_options *options, const flp_score_inputs *inputs, flp_score_result *result);
void flp_score_run_free(flp_score_result *result);

/* Writes the files and prints the summary. An exit code. */
int flp_score_report(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result);

#endif
