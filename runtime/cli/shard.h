/* A part of the rows, scored by one process of many: which part, and the file that it leaves for fusedlogp merge. */
#ifndef FLP_CLI_SHARD_H
#define FLP_CLI_SHARD_H
#include <argp.h>
#include "base/digest.h"
#include "cli/result_file.h"

typedef struct {
    int64_t index, count; /* count 0: all rows, in one process */
} flp_shard;

/* "2/8", from 0 on, or "auto": what torchrun, Open MPI, MPICH or Slurm say in the environment. argp_error, which exits, names what is wrong. */
flp_shard flp_shard_parse(struct argp_state *state, const char *text);
/* This process' number on its machine, as the same launchers say it; argp_error where none does. */
int flp_shard_local_rank(struct argp_state *state, const char *option);
/* Its first row, of `rows`; that of the next shard is where it ends. */
int64_t flp_shard_begin(const flp_shard *shard, int64_t index, int64_t rows);

typedef struct {
    flp_shard shard;
    flp_result_shape shape; /* of the whole result */
    int64_t ignore_index;
    char result[16];                 /* "logp" */
    char numerics[512];              /* what the bits depend on beside inputs and options */
    char run[FLP_DIGEST_TEXT_BYTES]; /* of inputs and options, the same for all shards */
} flp_shard_facts;

/* Writes facts and the shard's rows of the columns: a safetensors file with the facts as its metadata. As flp_output_file_write does. */
flp_status flp_shard_file_publish(const char *path, const flp_shard_facts *facts, int count, const flp_result_column *columns);

typedef struct {
    flp_shard_facts facts;
    int columns;
    flp_tensor column[2]; /* as published; the last is the result */
} flp_shard_file;

/* FLP_IO_FAILED; FLP_BAD_ARGUMENT: not a shard, or a damaged one. The message starts with path. Freed by flp_shard_file_close, also then. */
flp_status flp_shard_file_open(const char *path, flp_shard_file *file);
void flp_shard_file_close(flp_shard_file *file);
#endif
