/* fusedlogp score: log-probabilities of tokens from hidden states and a language-model head. */
#include "cli/commands.h"
#include "cli/score.h"
#include "cli/console.h"

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
    flp_status status = options.model ? flp_score_model_apply(&options, &head) : FLP_OK;
    int code = status == FLP_OK ? score(&options, &inputs, &result) : flp_console_fail(status);
    flp_score_run_free(&result);
    flp_score_inputs_close(&inputs);
    flp_model_head_free(&head);
    return code;
}
