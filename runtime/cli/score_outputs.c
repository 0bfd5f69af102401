/* Checks that no two result files of fusedlogp score are the same file, and that none of them is an input. */
#include "base/status.h"
#include "cli/model_config.h"
#include "cli/output_file.h"
#include "cli/score.h"

#define OUTPUTS 4
#define INPUTS 4

static int is_input(const flp_output_file *output, const flp_tensor *input)
{
    const struct stat *facts = &input->file.facts;
    return input->file.bytes != NULL && output->kind != FLP_OUTPUT_NEW && output->facts.st_dev == facts->st_dev && output->facts.st_ino == facts->st_ino;
}

flp_status flp_score_outputs_check(const flp_score_options *options, const flp_score_inputs *inputs)
{
    const struct {
        const char *option, *path;
    } outputs[OUTPUTS] = { { "out", options->out }, { "lse", options->lse }, { "entropy", options->entropy }, { "argmax", options->argmax } };
    const struct {
        const char *option, *path;
        const flp_tensor *tensor;
    } read[INPUTS] = { { options->logits ? "logits" : "hidden", options->logits ? options->logits : options->hidden, &inputs->hidden },
                       { "weight", options->weight, &inputs->weight },
                       { "target", options->target, &inputs->target },
                       { "bias", options->bias, &inputs->bias } };
    flp_output_file files[OUTPUTS];
    for (int i = 0; i < OUTPUTS; i++) {
        if (outputs[i].path == NULL)
            continue;
        flp_status status = flp_output_file_find(outputs[i].path, &files[i]);
        if (status != FLP_OK)
            return flp_status_prefix(status, "--%s", outputs[i].option);
        for (int k = 0; k < INPUTS; k++)
            if (is_input(&files[i], read[k].tensor))
                return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: %s is the file of --%s, %s", outputs[i].option, outputs[i].path, read[k].option, read[k].path);
        if (options->model != NULL && files[i].kind != FLP_OUTPUT_NEW && flp_model_head_reads(options->model, &files[i].facts))
            return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: %s is a file of --model, %s", outputs[i].option, outputs[i].path, options->model);
        for (int k = 0; k < i; k++)
            if (outputs[k].path != NULL && flp_output_file_is(&files[i], &files[k]))
                return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: %s is the file of --%s, %s", outputs[i].option, outputs[i].path, outputs[k].option,
                                       outputs[k].path);
    }
    return FLP_OK;
}
