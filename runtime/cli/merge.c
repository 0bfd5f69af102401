/* fusedlogp merge: checks that the shards are all of one run, and writes what the run would have written in one process. */
#include "cli/commands.h"
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/shard.h"

typedef struct {
    const char *out;
    int json, quiet;
    char **paths; /* of the shards */
    int count;
} merge_options;

/* ---- the shards ---- */

typedef struct {
    const char *path;
    flp_shard_file file;
} shard;

static flp_status check_run(const shard *one, const shard *first)
{
    const flp_shard_facts *facts = &one->file.facts, *wanted = &first->file.facts;
    if (strcmp(facts->run, wanted->run) != 0 || facts->shape.rows != wanted->shape.rows || facts->ignore_index != wanted->ignore_index)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: a shard of another run than %s: its inputs or options are others", one->path, first->path);
    if (strcmp(facts->result, wanted->result) != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: holds %s, wanted %s as %s does", one->path, facts->result, wanted->result, first->path);
    if (facts->shard.count != wanted->shard.count)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: one of %" PRId64 " shards, wanted one of %" PRId64 " as %s is", one->path, facts->shard.count,
                               wanted->shard.count, first->path);
    if (strcmp(facts->numerics, wanted->numerics) != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: computed by %s, wanted %s as %s was: their bits differ", one->path, facts->numerics, wanted->numerics,
                               first->path);
    if (one->file.columns != first->file.columns)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: wanted targets where %s has them", one->path, first->path);
    return FLP_OK;
}

/* Sorts shards into the order of their rows. */
static int by_index(const void *left, const void *right)
{
    int64_t a = ((const shard *)left)->file.facts.shard.index, b = ((const shard *)right)->file.facts.shard.index;
    return (a > b) - (a < b);
}

static flp_status refuse_missing(int64_t from, int64_t to, int64_t count)
{
    if (to == from)
        return flp_status_fail(FLP_BAD_ARGUMENT, "shard %" PRId64 "/%" PRId64 " is missing", from, count);
    return flp_status_fail(FLP_BAD_ARGUMENT, "shards %" PRId64 "/%" PRId64 " to %" PRId64 "/%" PRId64 " are missing", from, count, to, count);
}

static flp_status check_complete(const shard *shards, int count)
{
    int64_t wanted = 0, all = shards[0].file.facts.shard.count;
    for (int i = 0; i < count; i++) {
        int64_t index = shards[i].file.facts.shard.index;
        if (index < wanted)
            return flp_status_fail(FLP_BAD_ARGUMENT, "%s and %s are both shard %" PRId64 "/%" PRId64, shards[i - 1].path, shards[i].path, index, all);
        if (index > wanted)
            return refuse_missing(wanted, index - 1, all);
        wanted = index + 1;
    }
    return wanted == all ? FLP_OK : refuse_missing(wanted, all - 1, all);
}

static flp_status open_shards(const merge_options *options, shard *shards, int *opened)
{
    flp_status status = FLP_OK;
    for (int i = 0; i < options->count && status == FLP_OK; i++) {
        shards[i].path = options->paths[i];
        status = flp_shard_file_open(options->paths[i], &shards[i].file);
        *opened = i + 1;
        if (status == FLP_OK)
            status = check_run(&shards[i], &shards[0]);
    }
    if (status != FLP_OK)
        return status;
    qsort(shards, (size_t)options->count, sizeof *shards, by_index);
    return check_complete(shards, options->count);
}

/* ---- the whole ---- */

static flp_status join(const shard *shards, int count, int column, flp_result_column *whole)
{
    const flp_shard_facts *facts = &shards[0].file.facts;
    const flp_tensor *first = &shards[0].file.column[column];
    char *to = malloc(facts->shape.rows > 0 ? (size_t)facts->shape.rows * (size_t)flp_dtype_bytes(first->dtype) : 1);
    *whole = (flp_result_column){ column + 1 < shards[0].file.columns ? "target" : facts->result, first->dtype, to };
    if (to == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%" PRId64 " rows", facts->shape.rows);
    for (int i = 0; i < count; i++) {
        const flp_tensor *part = &shards[i].file.column[column];
        if (part->dtype != first->dtype)
            return flp_status_fail(FLP_BAD_ARGUMENT, "%s: '%s' is %s, wanted %s as in %s", shards[i].path, whole->name, flp_dtype_name(part->dtype),
                                   flp_dtype_name(first->dtype), shards[0].path);
        memcpy(to, part->data, part->bytes);
        to += part->bytes;
    }
    return FLP_OK;
}

/* Prints the summary. The mean is that of log-probabilities, the only result whose shards hold the targets as well (two columns). */
static int report(const merge_options *options, const shard *shards, const flp_result_column *columns)
{
    const flp_shard_facts *facts = &shards[0].file.facts;
    int64_t tokens = 0;
    double mean = NAN;
    if (shards[0].file.columns == 2)
        mean = flp_result_mean(&columns[0], facts->ignore_index, columns[1].data, facts->shape.rows, &tokens);
    if (options->json)
        return flp_console_print_json(json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:s}", "result", facts->result, "shards", (json_int_t)facts->shard.count,
                                                "rows", (json_int_t)facts->shape.rows, "tokens", (json_int_t)tokens, "mean_logp", flp_console_json_number(mean),
                                                "perplexity", flp_console_json_number(exp(-mean)), "numerics", facts->numerics));
    FILE *to = flp_output_file_is_standard_output(options->out) ? stderr : stdout;
    if (options->quiet)
        return FLP_EXIT_OK;
    fprintf(to, "shards         %" PRId64 " of %s\n", facts->shard.count, facts->result);
    if (tokens > 0)
        fprintf(to, "tokens         %" PRId64 " of %" PRId64 " rows\nmean log-prob  %.7f\nperplexity     %.4f\n", tokens, facts->shape.rows,
                flp_result_printable(mean), flp_result_printable(exp(-mean)));
    return FLP_EXIT_OK;
}

/* Refuses a result that would overwrite one of its shards. */
static flp_status check_output(const merge_options *options, const shard *shards)
{
    flp_output_file out;
    flp_status status = flp_output_file_find(options->out, &out);
    if (status != FLP_OK)
        return flp_status_prefix(status, "--out");
    for (int i = 0; i < options->count; i++) {
        const struct stat *facts = &shards[i].file.column[0].file.facts;
        if (out.kind != FLP_OUTPUT_NEW && out.facts.st_dev == facts->st_dev && out.facts.st_ino == facts->st_ino)
            return flp_status_fail(FLP_BAD_ARGUMENT, "--out: %s is the shard %s", options->out, shards[i].path);
    }
    return FLP_OK;
}

static int merge(const merge_options *options)
{
    flp_result_column columns[2] = { { NULL, FLP_NONE, NULL }, { NULL, FLP_NONE, NULL } };
    shard *shards = calloc((size_t)options->count, sizeof *shards);
    int opened = 0, code;
    flp_status status = shards ? open_shards(options, shards, &opened) : flp_status_fail(FLP_OUT_OF_MEMORY, "%d shards", options->count);
    const int are_open = status == FLP_OK;
    if (are_open)
        status = check_output(options, shards);
    const int is_misnamed = are_open && status == FLP_BAD_ARGUMENT;
    for (int i = 0; status == FLP_OK && i < shards[0].file.columns; i++)
        status = join(shards, options->count, i, &columns[i]);
    if (status == FLP_OK)
        status = flp_result_file_publish(options->out, &shards[0].file.facts.shape, shards[0].file.columns, columns);
    code = status == FLP_OK ? report(options, shards, columns) : flp_console_fail(status);
    if (is_misnamed)
        code = FLP_EXIT_USAGE;
    for (int i = 0; i < opened; i++)
        flp_shard_file_close(&shards[i].file);
    for (int i = 0; i < 2; i++)
        free((void *)columns[i].data);
    free(shards);
    return code;
}

/* ---- the command line ---- */

#define AT(field) offsetof(merge_options, field)

static void take_paths(struct argp_state *state, void *into, char *first)
{
    merge_options *options = into;
    (void)first;
    options->paths = state->argv + state->next - 1;
    options->count = state->argc - state->next + 1;
    state->next = state->argc;
}

static void check_options(struct argp_state *state, void *into)
{
    const merge_options *options = into;
    if (options->count == 0)
        argp_error(state, "wanted the files of all shards, which fusedlogp score --shard wrote");
    if (options->out == NULL)
        argp_error(state, "--out is missing");
    if (options->json && flp_output_file_is_standard_output(options->out))
        argp_error(state, "--json: wanted without a result on standard output, where the JSON goes; got %s", options->out);
}

int flp_merge_main(int argc, char **argv)
{
    static const flp_option table[] = { { "out", "FILE", "the whole result: FILE.npy, FILE.csv or FILE.json; - is npy on standard output", FLP_OPTION_RESULT,
                                          .at = AT(out) },
                                        { "json", NULL, "print the summary as JSON", FLP_OPTION_FLAG, .at = AT(json) },
                                        { "quiet", NULL, "print no summary", FLP_OPTION_FLAG, .at = AT(quiet) },
                                        { 0 } };
    static const flp_command_line line = {
        table, "SHARD...", "Joins the shards of one result, which fusedlogp score --shard left, into the file that one process would have written.", take_paths,
        check_options
    };
    merge_options options = { 0 };
    flp_options_parse(&line, argc, argv, &options);
    return merge(&options);
}
