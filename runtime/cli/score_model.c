/* What fusedlogp score takes from a model's folder. */
#include "base/status.h"
#include "cli/score.h"

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
    /* The library caps first and divides then; a model that scales its logits caps what it has scaled. */
    if (config->temperature != 1 && options->softcap > 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: logits that are scaled (by %g) before a softcap (of %g) are not computed here", options->model,
                               1 / config->temperature, options->softcap);
    if (config->temperature != 1)
        options->temperature = (options->temperature > 0 ? options->temperature : 1) * config->temperature;
    return FLP_OK;
}

flp_status flp_score_model_apply(flp_score_options *options, flp_model_head *head)
{
    flp_status status = flp_model_head_find(options->model, head);
    if (status == FLP_OK)
        status = apply(options, head);
    return status == FLP_OK ? status : flp_status_prefix(status, "--model");
}
