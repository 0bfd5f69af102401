/* Opens the tensors of fusedlogp score and checks that they fit together. */
#include <inttypes.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "cli/score.h"

enum { FLOATS, INTEGERS }; /* what an option takes */

static flp_status open_tensor(const char *option, const char *spec, int kind, int rank, flp_tensor *tensor)
{
    char shape[256];
    flp_status status = flp_tensor_file_open(spec, tensor);
    if (status != FLP_OK)
        return flp_status_prefix(status, "--%s", option);
    int is_integer = tensor->dtype == FLP_I32 || tensor->dtype == FLP_I64;
    if (is_integer != kind)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: got %s, wanted %s", option, flp_tensor_describe(tensor, shape, sizeof shape),
                               kind == FLOATS ? "bf16, fp16 or fp32" : "int32 or int64");
    if (tensor->rank != rank)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: got %s, wanted %d dimension%s", option, flp_tensor_describe(tensor, shape, sizeof shape), rank,
                               rank == 1 ? "" : "s");
    return FLP_OK;
}

static flp_status open_all(const flp_score_options *options, flp_score_inputs *inputs)
{
    inputs->has_logits = options->logits != NULL;
    flp_status status = inputs->has_logits ? open_tensor("logits", options->logits, FLOATS, 2, &inputs->hidden)
                                           : open_tensor("hidden", options->hidden, FLOATS, 2, &inputs->hidden);
    if (status == FLP_OK && !inputs->has_logits)
        status = open_tensor("weight", options->weight, FLOATS, 2, &inputs->weight);
    if (status == FLP_OK)
        status = open_tensor("target", options->target, INTEGERS, 1, &inputs->target);
    if (status == FLP_OK && options->bias != NULL)
        status = open_tensor("bias", options->bias, FLOATS, 1, &inputs->bias);
    return status;
}

/* vocab: as the weight or the logits have it. */
static flp_status check_vocab(const flp_score_inputs *inputs, int64_t wanted, int64_t vocab)
{
    if (wanted >= 1 && wanted <= vocab && wanted <= INT32_MAX)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "--vocab: got %" PRId64 ", wanted 1 to the %s's %" PRId64 " (2147483647 at most)", wanted,
                           inputs->has_logits ? "row" : "weight", vocab);
}

static flp_status check_rows(const flp_score_inputs *inputs)
{
    if (inputs->target.shape[0] == inputs->hidden.shape[0])
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "--target: got %" PRId64 " rows, wanted %" PRId64 " as --%s has", inputs->target.shape[0], inputs->hidden.shape[0],
                           inputs->has_logits ? "logits" : "hidden");
}

static flp_status check_shapes(const flp_score_options *options, const flp_score_inputs *inputs, int64_t columns, int64_t vocab)
{
    const flp_tensor *hidden = &inputs->hidden, *weight = &inputs->weight;
    int64_t wanted_vocab = options->vocab ? options->vocab : vocab;
    char shape[256], other[256];
    flp_status status;
    if (hidden->dtype != weight->dtype)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--weight: got %s, wanted %s as --hidden has", flp_dtype_name(weight->dtype), flp_dtype_name(hidden->dtype));
    if (columns < 1 || columns != hidden->shape[1])
        return flp_status_fail(FLP_BAD_ARGUMENT, "--weight: got %s in layout %s, which does not fit --hidden, %s",
                               flp_tensor_describe(weight, shape, sizeof shape), options->layout == FLP_VOCAB_HIDDEN ? "vd" : "dv",
                               flp_tensor_describe(hidden, other, sizeof other));
    status = check_vocab(inputs, wanted_vocab, vocab);
    if (status == FLP_OK)
        status = check_rows(inputs);
    if (status != FLP_OK)
        return status;
    /* A padded bias is as welcome as a padded weight. */
    if (options->bias != NULL && inputs->bias.shape[0] != wanted_vocab && inputs->bias.shape[0] != vocab)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--bias: got %" PRId64 " values, wanted %" PRId64, inputs->bias.shape[0], wanted_vocab);
    return FLP_OK;
}

int64_t flp_score_inputs_target(const flp_score_inputs *inputs, int64_t row)
{
    const void *data = inputs->target.data;
    return inputs->target.dtype == FLP_I64 ? ((const int64_t *)data)[row] : ((const int32_t *)data)[row];
}

static flp_status check_targets(const flp_score_options *options, flp_score_inputs *inputs)
{
    for (int64_t row = 0; row < inputs->problem.rows; row++) {
        int64_t target = flp_score_inputs_target(inputs, row);
        if (target == options->ignore_index)
            continue;
        if (target < 0 || target >= inputs->problem.vocab)
            return flp_status_fail(FLP_BAD_TARGET, "--target: row %" PRId64 " is %" PRId64 ", wanted 0 to %" PRId64 " or the ignore index %" PRId64, row,
                                   target, inputs->problem.vocab - 1, options->ignore_index);
        inputs->tokens++;
    }
    return FLP_OK;
}

static flp_status complete_logits(const flp_score_options *options, flp_score_inputs *inputs)
{
    int64_t columns = inputs->hidden.shape[1], vocab = options->vocab ? options->vocab : columns;
    flp_status status = check_vocab(inputs, vocab, columns);
    if (status == FLP_OK)
        status = check_rows(inputs);
    if (status != FLP_OK)
        return status;
    inputs->problem = (flp_linear_logp_problem){ .dtype = inputs->hidden.dtype,
                                                 .rows = inputs->hidden.shape[0],
                                                 .hidden = columns,
                                                 .vocab = vocab,
                                                 .hidden_stride = columns,
                                                 .target_dtype = inputs->target.dtype,
                                                 .softcap = options->softcap,
                                                 .argmax = options->argmax != NULL,
                                                 .entropy = options->entropy != NULL,
                                                 .backend = options->backend };
    return check_targets(options, inputs);
}

flp_status flp_score_inputs_open(const flp_score_options *options, flp_score_inputs *inputs)
{
    memset(inputs, 0, sizeof *inputs);
    flp_status status = open_all(options, inputs);
    if (status != FLP_OK)
        return status;
    if (inputs->has_logits)
        return complete_logits(options, inputs);
    int by_vocab = options->layout == FLP_VOCAB_HIDDEN;
    int64_t columns = inputs->weight.shape[by_vocab], vocab = inputs->weight.shape[!by_vocab];
    status = check_shapes(options, inputs, columns, vocab);
    if (status != FLP_OK)
        return status;
    inputs->problem = (flp_linear_logp_problem){ .dtype = inputs->hidden.dtype,
                                                 .rows = inputs->hidden.shape[0],
                                                 .hidden = columns,
                                                 .vocab = options->vocab ? options->vocab : vocab,
                                                 .weight_layout = options->layout,
                                                 .hidden_stride = columns,
                                                 .weight_stride = inputs->weight.shape[1],
                                                 .bias_dtype = inputs->bias.dtype,
                                                 .target_dtype = inputs->target.dtype,
                                                 .softcap = options->softcap,
                                                 .argmax = options->argmax != NULL,
                                                 .entropy = options->entropy != NULL,
                                                 .precision = options->precision,
                                                 .backend = options->backend };
    return check_targets(options, inputs);
}

static flp_status check_file(const char *option, const char *name, const flp_tensor *tensor)
{
    if (tensor->file.bytes == NULL)
        return FLP_OK;
    flp_status status = flp_mapped_file_check(&tensor->file);
    return status == FLP_OK ? status : flp_status_prefix(status, "--%s: %s", option, name);
}

flp_status flp_score_inputs_check(const flp_score_options *options, const flp_score_inputs *inputs)
{
    flp_status status = inputs->has_logits ? check_file("logits", options->logits, &inputs->hidden) : check_file("hidden", options->hidden, &inputs->hidden);
    if (status == FLP_OK)
        status = check_file("weight", options->weight, &inputs->weight);
    if (status == FLP_OK)
        status = check_file("target", options->target, &inputs->target);
    if (status == FLP_OK)
        status = check_file("bias", options->bias, &inputs->bias);
    return status;
}

void flp_score_inputs_close(flp_score_inputs *inputs)
{
    flp_tensor_file_close(&inputs->hidden);
    flp_tensor_file_close(&inputs->weight);
    flp_tensor_file_close(&inputs->bias);
    flp_tensor_file_close(&inputs->target);
}
