/* A part of the rows, scored by one process of many: which part, and the file that it leaves for fusedlogp merge. */
#ifndef FLP_CLI_SHARD_H
#define FLP_CLI_SHARD_H
#include <argp.h>
#include "base/digest.h"
#include "cli/result_file.h"

typedef struct {
    int64_t index, count; /* count 0: all rows, in one process */
} flp_shard;

/* Parses "2/8" (the index counts from 0), or "auto": rank and size as torchrun, Open MPI, MPICH or Slurm put them into the environment. argp_error, which
 * exits, says what is wrong. */
flp_shard flp_shard_parse(struct argp_state *state, const char *text);
/* This process's rank on its machine, from the variables of the same launchers; argp_error where there is none. */
int flp_shard_local_rank(struct argp_state *state, const char *option);
/* The first row of shard `index`, of `rows` rows. The shard ends where shard index + 1 begins; index may be the number of shards. */
int64_t flp_shard_begin(const flp_shard *shard, int64_t index, int64_t rows);

typedef struct {
    flp_shard shard;
    flp_result_shape shape; /* of the whole result */
    int64_t ignore_index;
    char result[16];                 /* "logp" */
    char numerics[512];              /* the plan's numeric identity: what the bits depend on besides inputs and options */
    char run[FLP_DIGEST_TEXT_BYTES]; /* digest of inputs and options, the same for all shards */
} flp_shard_facts;

/* Writes a safetensors file with the shard's rows of the columns and, as its metadata, the facts. Writes as flp_output_file_write does. */
flp_status flp_shard_file_publish(const char *path, const flp_shard_facts *facts, int count, const flp_result_column *columns);

typedef struct {
    flp_shard_facts facts;
    int columns;
    flp_tensor column[2]; /* as published; the last is the result */
} flp_shard_file;

/* Opens the file of a shard. FLP_IO_FAILED; FLP_BAD_ARGUMENT: it is not a shard, or a damaged one. The message starts with path. The caller frees file with
 * flp_shard_file_close, also after a failure. */
flp_status flp_shard_file_open(const char *path, flp_shard_file *file);
void flp_shard_file_close(flp_shard_file *file);
#endif
