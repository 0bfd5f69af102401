/* Writes the result files of fusedlogp score and prints its summary. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/status.h"
#include "cli/console.h"
#include "cli/result_file.h"
#include "cli/score.h"
#include "cpu/convert.h"

/* What the report says about the scored rows. */
typedef struct {
    double logp, entropy;            /* means; NaN where no row is scored; entropy also where it was not requested */
    int64_t nan_rows, first_nan_row; /* rows with a NaN in a requested result; first_nan_row -1: there is none */
    int64_t infinite_rows;           /* rows whose log-probability is -inf: their token has probability 0 */
} summary;

static int is_scored(const flp_score_options *options, const flp_score_inputs *inputs, int64_t row)
{
    return flp_tensor_integer(&inputs->target, row) != options->ignore_index;
}

static double mean_of(const flp_score_options *options, const flp_score_inputs *inputs, const float *values)
{
    const flp_result_column target = { "target", inputs->target.dtype, inputs->target.data };
    int64_t tokens;
    return values ? flp_result_mean(&target, options->ignore_index, values, inputs->problem.rows, &tokens) : NAN;
}

static int is_nan_row(const flp_score_result *result, int64_t row)
{
    return isnan(result->logp[row]) || (result->lse && isnan(result->lse[row])) || (result->entropy && isnan(result->entropy[row]));
}

static summary summarize(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result)
{
    summary of = { mean_of(options, inputs, result->logp), mean_of(options, inputs, result->entropy), 0, -1, 0 };
    for (int64_t row = 0; row < inputs->problem.rows; row++) {
        if (!is_scored(options, inputs, row))
            continue;
        if (is_nan_row(result, row) && of.nan_rows++ == 0)
            of.first_nan_row = row;
        of.infinite_rows += isinf(result->logp[row]) != 0;
    }
    return of;
}

/* Converts one value at a time, because a row may have any length. */
static int row_is_finite(const flp_score_inputs *inputs, int64_t row)
{
    const flp_linear_logp_problem *problem = &inputs->problem;
    int64_t bytes = flp_dtype_bytes(inputs->hidden.dtype), values = inputs->has_logits ? problem->vocab : problem->hidden;
    const char *at = (const char *)inputs->hidden.data + row * flp_score_inputs_row_bytes(inputs);
    float value;
    for (int64_t i = 0; i < values; i++) {
        flp_convert_to_f32(inputs->hidden.dtype, at + i * bytes, &value, 1);
        if (!isfinite(value))
            return 0;
    }
    return 1;
}

static void name_nan_rows(const flp_score_options *options, const flp_score_inputs *inputs, const summary *of)
{
    const char *why = row_is_finite(inputs, of->first_nan_row) ? "its logits are not finite, for weight or bias hold such values or products overflow"
                      : inputs->has_logits                     ? "its logits hold values that are not finite"
                                                               : "its hidden state holds values that are not finite";
    flp_console_error("%s%" PRId64 " of %" PRId64 " scored rows are NaN; the first is row %" PRId64 ": %s", options->strict ? "" : "warning: ", of->nan_rows,
                      inputs->tokens, inputs->first + of->first_nan_row, why);
}

/* A failure to write a result says by which option it was requested. */
static flp_status named(const char *result, flp_status status)
{
    return status == FLP_OK ? FLP_OK : flp_status_prefix(status, "--%s", strcmp(result, "logp") == 0 ? "out" : result);
}

static flp_status write_result(const char *path, const flp_score_inputs *inputs, const flp_score_result *result, int count, const flp_result_column *columns)
{
    flp_shard_facts facts = inputs->facts;
    if (path == NULL)
        return FLP_OK;
    if (facts.shard.count == 0)
        return named(columns[count - 1].name, flp_result_file_publish(path, &inputs->shape, count, columns));
    snprintf(facts.result, sizeof facts.result, "%s", columns[count - 1].name);
    snprintf(facts.numerics, sizeof facts.numerics, "%s", result->numerics);
    return named(columns[count - 1].name, flp_shard_file_publish(path, &facts, count, columns));
}

static flp_status write_files(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result)
{
    const flp_result_column logp[] = { { "target", inputs->target.dtype, inputs->target.data }, { "logp", FLP_F32, result->logp } };
    const flp_result_column lse = { "lse", FLP_F32, result->lse }, entropy = { "entropy", FLP_F32, result->entropy };
    const flp_result_column argmax = { "argmax", FLP_I32, result->argmax };
    flp_status status = write_result(options->out, inputs, result, 2, logp);
    if (status == FLP_OK)
        status = write_result(options->lse, inputs, result, 1, &lse);
    if (status == FLP_OK)
        status = write_result(options->entropy, inputs, result, 1, &entropy);
    if (status == FLP_OK)
        status = write_result(options->argmax, inputs, result, 1, &argmax);
    return status;
}

static int print_json(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result, const summary *of)
{
    return flp_console_print_json(
        json_pack("{s:s, s:o*, s:o*, s:I, s:I, s:I, s:o, s:I, s:o, s:o, s:o*, s:o, s:s, s:o, s:s, s:I, s:f, s:f}", "problem", result->problem, "weight",
                  options->model ? flp_console_json_string(options->weight) : NULL, "shard",
                  inputs->facts.shard.count ? json_pack("[I, I]", (json_int_t)inputs->facts.shard.index, (json_int_t)inputs->facts.shard.count) : NULL, "rows",
                  (json_int_t)inputs->problem.rows, "tokens", (json_int_t)inputs->tokens, "nan_rows", (json_int_t)of->nan_rows, "first_nan_row",
                  of->nan_rows ? json_integer(inputs->first + of->first_nan_row) : json_null(), "infinite_rows", (json_int_t)of->infinite_rows, "mean_logp",
                  flp_console_json_number(of->logp), "perplexity", flp_console_json_number(exp(-of->logp)), "mean_entropy",
                  result->entropy ? flp_console_json_number(of->entropy) : NULL, "device", flp_console_json_string(result->device), "path",
                  flp_backend_name(result->path), "reason", flp_console_json_string(result->reason), "numerics", result->numerics, "chunk_rows",
                  (json_int_t)result->chunk_rows, "plan_seconds", result->plan_seconds, "seconds", result->seconds));
}

static void print_text(FILE *to, const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result, const summary *of)
{
    const flp_shard *shard = &inputs->facts.shard;
    if (shard->count > 0)
        fprintf(to, "shard          %" PRId64 "/%" PRId64 ", rows from %" PRId64 " of %" PRId64 "\n", shard->index, shard->count, inputs->first,
                inputs->shape.rows);
    fprintf(to, "tokens         %" PRId64 " of %" PRId64 " rows\n", inputs->tokens, inputs->problem.rows);
    if (of->nan_rows > 0)
        fprintf(to, "NaN            %" PRId64 " rows, the first is row %" PRId64 "\n", of->nan_rows, inputs->first + of->first_nan_row);
    if (inputs->tokens > 0)
        fprintf(to, "mean log-prob  %.7f\nperplexity     %.4f\n", flp_result_printable(of->logp), flp_result_printable(exp(-of->logp)));
    if (inputs->tokens > 0 && result->entropy)
        fprintf(to, "mean entropy   %.7f\n", flp_result_printable(of->entropy));
    if (options->model != NULL)
        fprintf(to, "head           %s%s, vocabulary %" PRId64 " of %" PRId64 " rows\n", options->weight, options->bias ? " with bias" : "",
                inputs->problem.vocab, inputs->weight.shape[0]);
    fprintf(to, "device         %s\n", result->device);
    fprintf(to, "path           %s%s%s\n", flp_backend_name(result->path), *result->reason ? ": " : "", result->reason);
    fprintf(to, "time           %.4g s (%.0f tokens/s), planning %.4g s\n", result->seconds,
            result->seconds > 0 ? (double)inputs->tokens / result->seconds : 0.0, result->plan_seconds);
}

int flp_score_report(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result)
{
    const summary of = summarize(options, inputs, result);
    flp_status status = write_files(options, inputs, result);
    if (status != FLP_OK)
        return flp_console_fail(status);
    if (of.nan_rows > 0)
        name_nan_rows(options, inputs, &of);
    int code = of.nan_rows > 0 && options->strict ? FLP_EXIT_BAD_INPUT : FLP_EXIT_OK;
    if (options->json) {
        int printed = print_json(options, inputs, result, &of);
        return code != FLP_EXIT_OK ? code : printed;
    }
    if (!options->quiet)
        print_text(flp_score_on_output(options) ? stderr : stdout, options, inputs, result, &of);
    return code;
}
