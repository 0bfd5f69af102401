/* What fusedlogp score leaves behind: result files and a summary. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "cli/console.h"
#include "cli/result_file.h"
#include "cli/score.h"

typedef struct {
    double logp, entropy; /* NaN where no row is scored; entropy also where it was not asked for */
} means;

/* Of the rows that are scored, in fp64 and in row order. */
static double mean_of(const flp_score_options *options, const flp_score_inputs *inputs, const float *values)
{
    double sum = 0;
    if (values == NULL) return NAN;
    for (int64_t row = 0; row < inputs->problem.rows; row++)
        if (flp_score_inputs_target(inputs, row) != options->ignore_index) sum += (double)values[row];
    return sum / (double)inputs->tokens;
}

static flp_status write_files(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result)
{
    const flp_result_column logp[] = {{"target", inputs->target.dtype, inputs->target.data}, {"logp", FLP_F32, result->logp}};
    const flp_result_column lse = {"lse", FLP_F32, result->lse}, entropy = {"entropy", FLP_F32, result->entropy};
    const flp_result_column argmax = {"argmax", FLP_I32, result->argmax};
    int64_t rows = inputs->problem.rows;
    flp_status status = FLP_OK;
    if (options->out) status = flp_result_file_publish(options->out, rows, 2, logp);
    if (status == FLP_OK && options->lse) status = flp_result_file_publish(options->lse, rows, 1, &lse);
    if (status == FLP_OK && options->entropy) status = flp_result_file_publish(options->entropy, rows, 1, &entropy);
    if (status == FLP_OK && options->argmax) status = flp_result_file_publish(options->argmax, rows, 1, &argmax);
    return status;
}

static int print_json(const flp_score_inputs *inputs, const flp_score_result *result, const means *of)
{
    return flp_console_print_json(json_pack(
        "{s:s, s:I, s:I, s:o, s:o, s:o*, s:o, s:s, s:o, s:s, s:I, s:f, s:f}",
        "problem", result->problem, "rows", (json_int_t)inputs->problem.rows, "tokens", (json_int_t)inputs->tokens,
        "mean_logp", flp_console_json_number(of->logp), "perplexity", flp_console_json_number(exp(-of->logp)),
        "mean_entropy", result->entropy ? flp_console_json_number(of->entropy) : NULL,
        "device", flp_console_json_string(result->device), "path", result->path, "reason", flp_console_json_string(result->reason),
        "numerics", result->numerics, "chunk_rows", (json_int_t)result->chunk_rows,
        "plan_seconds", result->plan_seconds, "seconds", result->seconds));
}

static void print_text(const flp_score_inputs *inputs, const flp_score_result *result, const means *of)
{
    printf("tokens         %" PRId64 " of %" PRId64 " rows\n", inputs->tokens, inputs->problem.rows);
    if (inputs->tokens > 0) printf("mean log-prob  %.7f\nperplexity     %.4f\n", of->logp, exp(-of->logp));
    if (inputs->tokens > 0 && result->entropy) printf("mean entropy   %.7f\n", of->entropy);
    printf("device         %s\n", result->device);
    printf("path           %s%s%s\n", result->path, *result->reason ? ": " : "", result->reason);
    printf("time           %.4g s (%.0f tokens/s), planning %.4g s\n", result->seconds,
           result->seconds > 0 ? (double)inputs->tokens / result->seconds : 0.0, result->plan_seconds);
}

int flp_score_report(const flp_score_options *options, const flp_score_inputs *inputs, const flp_score_result *result)
{
    const means of = {mean_of(options, inputs, result->logp), mean_of(options, inputs, result->entropy)};
    flp_status status = write_files(options, inputs, result);
    if (status != FLP_OK) return flp_console_fail(status);
    if (inputs->tokens > 0 && isnan(of.logp)) flp_console_error("warning: the mean is NaN: hidden, weight or bias hold values that are not finite");
    if (options->json) return print_json(inputs, result, &of);
    if (!options->quiet) print_text(inputs, result, &of);
    return FLP_EXIT_OK;
}
