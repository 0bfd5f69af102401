/* Finds which shard this process scores, from the command line or from its launcher's environment. */
#include "cli/shard.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"

/* The innermost launcher first: torchrun and mpirun may run inside a Slurm job, and Slurm's variables then describe the launcher, not this process. */
static const struct {
    const char *rank, *size, *local_rank;
} launchers[] = { { "RANK", "WORLD_SIZE", "LOCAL_RANK" },
                  { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK" },
                  { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID" },
                  { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID" } };
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

#define NAMES \
    "RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE (Open MPI), PMI_RANK and PMI_SIZE (MPICH) or SLURM_PROCID and SLURM_NTASKS (Slurm)"

static int64_t read_variable(struct argp_state *state, const char *option, const char *name)
{
    const char *text = getenv(name);
    int64_t value;
    if (text == NULL || !flp_number_parse_integer(text, &value))
        argp_error(state, "--%s auto: %s is '%s', wanted a whole number", option, name, text ? text : "");
    return value;
}

static flp_shard from_environment(struct argp_state *state)
{
    for (int i = 0; i < LAUNCHERS; i++) {
        if (getenv(launchers[i].rank) == NULL || getenv(launchers[i].size) == NULL)
            continue;
        flp_shard shard = { read_variable(state, "shard", launchers[i].rank), read_variable(state, "shard", launchers[i].size) };
        if (shard.index < 0 || shard.index >= shard.count)
            argp_error(state, "--shard auto: %s is %" PRId64 " and %s %" PRId64 ", wanted a rank below the size", launchers[i].rank, shard.index,
                       launchers[i].size, shard.count);
        return shard;
    }
    for (int i = 0; i < LAUNCHERS; i++)
        if (getenv(launchers[i].rank) != NULL || getenv(launchers[i].size) != NULL) {
            const int has_rank = getenv(launchers[i].rank) != NULL;
            argp_error(state, "--shard auto: %s is in the environment without %s", has_rank ? launchers[i].rank : launchers[i].size,
                       has_rank ? launchers[i].size : launchers[i].rank);
        }
    argp_error(state, "--shard auto: wanted " NAMES " in the environment, and none of these is there");
    return (flp_shard){ 0, 1 };
}

flp_shard flp_shard_parse(struct argp_state *state, const char *text)
{
    char index[32];
    flp_shard shard;
    const char *slash = strchr(text, '/');
    if (strcmp(text, "auto") == 0)
        return from_environment(state);
    if (slash == NULL || (size_t)(slash - text) >= sizeof index)
        argp_error(state, "--shard: got '%s', wanted I/N with I from 0 to N - 1, or auto", text);
    snprintf(index, sizeof index, "%.*s", (int)(slash - text), text);
    if (!flp_number_parse_integer(index, &shard.index) || !flp_number_parse_integer(slash + 1, &shard.count) || shard.index < 0 || shard.index >= shard.count)
        argp_error(state, "--shard: got '%s', wanted I/N with I from 0 to N - 1, or auto", text);
    return shard;
}

int flp_shard_local_rank(struct argp_state *state, const char *option)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (getenv(launchers[i].local_rank) != NULL) {
            int64_t rank = read_variable(state, option, launchers[i].local_rank);
            if (rank < 0 || rank > INT32_MAX)
                argp_error(state, "--%s auto: %s is %" PRId64 ", wanted 0 or more", option, launchers[i].local_rank, rank);
            return (int)rank;
        }
    argp_error(state, "--%s auto: wanted LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID or SLURM_LOCALID in the environment", option);
    return 0;
}

int64_t flp_shard_begin(const flp_shard *shard, int64_t index, int64_t rows)
{
    int64_t longer = rows % shard->count; /* the first ones have a row more */
    return rows / shard->count * index + (index < longer ? index : longer);
}
