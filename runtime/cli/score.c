/* fusedlogp score: log-probabilities of tokens from hidden states and a language-model head. */
#include <math.h>
#include "base/status.h"
#include "cli/commands.h"
#include "cli/score.h"
#include "cli/console.h"
#include "params/types.h"

static flp_status apply(flp_score_options *options, const flp_model_head *head)
{
    const flp_model_config *config = &head->config;
    options->weight = head->weight;
    options->bias = head->bias;
    options->model_hidden = config->hidden;
    options->model_vocab = options->vocab == 0;
    if (options->model_vocab)
        options->vocab = config->vocab;
    if (options->softcap == 0)
        options->softcap = config->softcap;
    if (config->unknown_scaling != 0)
        return flp_status_fail(
            FLP_BAD_ARGUMENT,
            "%s: logits_scaling: got %g with model_type \"%s\", wanted a model_type that begins with \"granite\", which divides the logits by "
            "it, or \"hyperclovax\", which multiplies them",
            options->model, config->unknown_scaling, config->model_type);
    /* The library applies the softcap before it divides by the temperature; a model that scales its logits applies the softcap after the scaling. */
    if (config->temperature != 1 && options->softcap > 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: logits that are scaled (by %g) before a softcap (of %g) are not computed here", options->model,
                               1 / config->temperature, options->softcap);
    if (config->temperature != 1)
        options->temperature = (options->temperature > 0 ? options->temperature : 1) * config->temperature;
    if (options->temperature != 0 && !(options->temperature >= FLP_LEAST_TEMPERATURE && options->temperature <= FLP_MOST_TEMPERATURE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: its scale of the logits and --temperature divide them by %g, wanted 2^%d to 2^%d", options->model,
                               options->temperature, ilogb(FLP_LEAST_TEMPERATURE), ilogb(FLP_MOST_TEMPERATURE));
    return FLP_OK;
}

/* Sets weight and bias to the model's, vocab and softcap where the options have none, and multiplies the temperature by the model's. The strings belong to
 * head. FLP_IO_FAILED, FLP_BAD_ARGUMENT. */
static flp_status apply_model(flp_score_options *options, flp_model_head *head)
{
    flp_status status = flp_model_head_find(options->model, head);
    if (status == FLP_OK)
        status = apply(options, head);
    return status == FLP_OK ? status : flp_status_prefix(status, "--model");
}

static int score(const flp_score_options *options, flp_score_inputs *inputs, flp_score_result *result)
{
    flp_status status = flp_score_inputs_open(options, inputs);
    if (status != FLP_OK)
        return flp_console_fail(status);
    status = flp_score_outputs_check(options, inputs);
    if (status == FLP_BAD_ARGUMENT)
        return flp_console_fail(status), FLP_EXIT_USAGE;
    if (status == FLP_OK)
        status = flp_score_run(options, inputs, result);
    if (status == FLP_OK)
        status = flp_score_inputs_check(options, inputs);
    return status == FLP_OK ? flp_score_report(options, inputs, result) : flp_console_fail(status);
}

int flp_score_main(int argc, char **argv)
{
    flp_score_options options;
    flp_score_inputs inputs = { 0 };
    flp_score_result result = { 0 };
    flp_model_head head = { 0 };
    flp_score_options_parse(argc, argv, &options);
    flp_status status = options.model ? apply_model(&options, &head) : FLP_OK;
    int code = status == FLP_OK ? score(&options, &inputs, &result) : flp_console_fail(status);
    flp_score_run_free(&result);
    flp_score_inputs_close(&inputs);
    flp_model_head_free(&head);
    return code;
}
