/* Opens the tensors of fusedlogp score and checks that they fit together. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/score.h"
#include "cpu/convert.h"

enum { FLOATS, INTEGERS }; /* what an option takes */

static flp_status open_tensor(const char *option, const char *spec, int kind, int least_rank, int most_rank, flp_tensor *tensor)
{
    char shape[256];
    flp_status status = flp_tensor_file_open(spec, tensor);
    if (status != FLP_OK)
        return flp_status_prefix(status, "--%s", option);
    if (flp_tensor_is_integer(tensor) != kind)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: got %s, wanted %s", option, flp_tensor_describe(tensor, shape, sizeof shape),
                               kind == FLOATS ? "bf16, fp16 or fp32" : "integers");
    if (tensor->rank < least_rank || tensor->rank > most_rank)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: got %s, wanted %d%s dimension%s", option, flp_tensor_describe(tensor, shape, sizeof shape), least_rank,
                               most_rank == least_rank ? ""
                               : least_rank == 1       ? " or 2"
                                                       : " or 3",
                               flp_text_plural(most_rank));
    return FLP_OK;
}

/* The option that named the weight, for messages. */
static const char *weight_option(const flp_score_options *options)
{
    return options->model ? "model" : "weight";
}

static flp_status open_all(const flp_score_options *options, flp_score_inputs *inputs)
{
    inputs->has_logits = options->logits != NULL;
    flp_status status = inputs->has_logits ? open_tensor("logits", options->logits, FLOATS, 2, 3, &inputs->hidden)
                                           : open_tensor("hidden", options->hidden, FLOATS, 2, 3, &inputs->hidden);
    if (status == FLP_OK && !inputs->has_logits)
        status = open_tensor(weight_option(options), options->weight, FLOATS, 2, 2, &inputs->weight);
    if (status == FLP_OK)
        status = open_tensor("target", options->target, INTEGERS, 1, 2, &inputs->target);
    if (status == FLP_OK && options->bias != NULL)
        status = open_tensor(options->model ? "model" : "bias", options->bias, FLOATS, 1, 1, &inputs->bias);
    return status;
}

/* The last extent of hidden or logits; the results have the extents before it. */
static int64_t columns_of(const flp_score_inputs *inputs)
{
    return inputs->hidden.shape[inputs->hidden.rank - 1];
}

static void set_shape(flp_score_inputs *inputs)
{
    flp_result_shape *shape = &inputs->shape;
    shape->rank = inputs->hidden.rank - 1;
    shape->rows = 1;
    for (int i = 0; i < shape->rank; i++)
        shape->rows *= shape->extents[i] = inputs->hidden.shape[i];
}

/* wanted: what the option or the model says; vocab: what the weight or the logits have. */
static flp_status check_vocab(const flp_score_options *options, const flp_score_inputs *inputs, int64_t wanted, int64_t vocab)
{
    if (wanted >= 1 && wanted <= vocab && wanted <= INT32_MAX)
        return FLP_OK;
    if (options->model_vocab)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--model: config.json has a vocabulary of %" PRId64 ", and the weight %" PRId64 " rows: %s", wanted, vocab,
                               options->weight);
    return flp_status_fail(FLP_BAD_ARGUMENT, "--vocab: got %" PRId64 ", wanted 1 to the %s's %" PRId64 " (2147483647 at most)", wanted,
                           inputs->has_logits ? "row" : "weight", vocab);
}

static flp_status check_rows(const flp_score_inputs *inputs)
{
    const flp_result_shape *shape = &inputs->shape;
    const flp_tensor *target = &inputs->target;
    const char *of = inputs->has_logits ? "logits" : "hidden";
    char got[256];
    if (target->rank == shape->rank && memcmp(target->shape, shape->extents, (size_t)shape->rank * sizeof *target->shape) == 0)
        return FLP_OK;
    if (target->rank == 1 && shape->rank == 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--target: got %" PRId64 " rows, wanted %" PRId64 " as --%s has", target->shape[0], shape->rows, of);
    flp_tensor_describe(target, got, sizeof got);
    if (shape->rank == 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--target: got %s, wanted [%" PRId64 "] as --%s has", got, shape->rows, of);
    return flp_status_fail(FLP_BAD_ARGUMENT, "--target: got %s, wanted [%" PRId64 ", %" PRId64 "] as --%s has", got, shape->extents[0], shape->extents[1], of);
}

/* --shift: hidden[b][t] is scored against token t + 1 of its sequence. The last state of a sequence has no next token and is ignored. */
static flp_status shift_targets(const flp_score_options *options, flp_score_inputs *inputs)
{
    const flp_result_shape *shape = &inputs->shape;
    int64_t length = shape->extents[shape->rank - 1];
    int64_t *next = malloc(shape->rows > 0 ? (size_t)shape->rows * sizeof *next : 1);
    if (next == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "--shift: %" PRId64 " targets", shape->rows);
    for (int64_t row = 0; row < shape->rows; row++)
        next[row] = row % length + 1 < length ? flp_tensor_integer(&inputs->target, row + 1) : options->ignore_index;
    free(inputs->target.copy);
    inputs->target.data = inputs->target.copy = next;
    inputs->target.dtype = FLP_I64;
    inputs->target.bytes = (size_t)shape->rows * sizeof *next;
    return FLP_OK;
}

static flp_status check_shapes(const flp_score_options *options, const flp_score_inputs *inputs, int64_t columns, int64_t vocab)
{
    const flp_tensor *hidden = &inputs->hidden, *weight = &inputs->weight;
    int64_t wanted_vocab = options->vocab ? options->vocab : vocab;
    char shape[256], other[256];
    flp_status status;
    if (options->model_hidden && columns != options->model_hidden)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--model: config.json has hidden states of %" PRId64 ", and the weight %" PRId64 " columns: %s",
                               options->model_hidden, columns, options->weight);
    if (columns < 1 || columns != columns_of(inputs))
        return flp_status_fail(FLP_BAD_ARGUMENT, "--%s: got %s in layout %s, which does not fit --hidden, %s", weight_option(options),
                               flp_tensor_describe(weight, shape, sizeof shape), options->layout == FLP_VOCAB_HIDDEN ? "vd" : "dv",
                               flp_tensor_describe(hidden, other, sizeof other));
    status = check_vocab(options, inputs, wanted_vocab, vocab);
    if (status == FLP_OK)
        status = check_rows(inputs);
    if (status != FLP_OK)
        return status;
    /* The bias may be padded as the weight is. */
    if (options->bias != NULL && inputs->bias.shape[0] != wanted_vocab && inputs->bias.shape[0] != vocab)
        return flp_status_fail(FLP_BAD_ARGUMENT, "--bias: got %" PRId64 " values, wanted %" PRId64, inputs->bias.shape[0], wanted_vocab);
    return FLP_OK;
}

/* Cuts hidden and target to the rows of the shard. */
static flp_status cut_rows(const flp_score_options *options, flp_score_inputs *inputs)
{
    const flp_shard *shard = &options->shard;
    flp_shard_facts *facts = &inputs->facts;
    if (shard->count == 0)
        return FLP_OK;
    *facts = (flp_shard_facts){ .shard = *shard, .shape = inputs->shape, .ignore_index = options->ignore_index };
    flp_status status = flp_score_run_identity(options, inputs, facts->run);
    inputs->first = flp_shard_begin(shard, shard->index, inputs->shape.rows);
    inputs->problem.rows = flp_shard_begin(shard, shard->index + 1, inputs->shape.rows) - inputs->first;
    inputs->hidden.data = (const char *)inputs->hidden.data + inputs->first * flp_score_inputs_row_bytes(inputs);
    inputs->target.data = (const char *)inputs->target.data + inputs->first * flp_dtype_bytes(inputs->target.dtype);
    return status;
}

static flp_status check_targets(const flp_score_options *options, flp_score_inputs *inputs)
{
    for (int64_t row = 0; row < inputs->shape.rows; row++) {
        int64_t target = flp_tensor_integer(&inputs->target, row);
        if (target != options->ignore_index && (target < 0 || target >= inputs->problem.vocab))
            return flp_status_fail(FLP_BAD_TARGET, "--target: row %" PRId64 " is %" PRId64 ", wanted 0 to %" PRId64 " or the ignore index %" PRId64, row,
                                   target, inputs->problem.vocab - 1, options->ignore_index);
    }
    return FLP_OK;
}

static flp_status complete_targets(const flp_score_options *options, flp_score_inputs *inputs)
{
    flp_status status = options->shift ? shift_targets(options, inputs) : FLP_OK;
    if (status == FLP_OK)
        status = check_targets(options, inputs);
    if (status == FLP_OK)
        status = cut_rows(options, inputs);
    if (status != FLP_OK)
        return status;
    inputs->problem.target_dtype = inputs->target.dtype;
    for (int64_t row = 0; row < inputs->problem.rows; row++)
        inputs->tokens += flp_tensor_integer(&inputs->target, row) != options->ignore_index;
    return FLP_OK;
}

static flp_status complete_logits(const flp_score_options *options, flp_score_inputs *inputs)
{
    int64_t columns = columns_of(inputs), vocab = options->vocab ? options->vocab : columns;
    flp_status status = check_vocab(options, inputs, vocab, columns);
    if (status == FLP_OK)
        status = check_rows(inputs);
    if (status != FLP_OK)
        return status;
    inputs->problem = (flp_linear_logp_problem){ .dtype = inputs->hidden.dtype,
                                                 .rows = inputs->shape.rows,
                                                 .hidden = columns,
                                                 .vocab = vocab,
                                                 .hidden_stride = columns,
                                                 .softcap = options->softcap,
                                                 .argmax = options->argmax != NULL,
                                                 .entropy = options->entropy != NULL,
                                                 .backend = options->backend };
    return complete_targets(options, inputs);
}

flp_status flp_score_inputs_open(const flp_score_options *options, flp_score_inputs *inputs)
{
    memset(inputs, 0, sizeof *inputs);
    flp_status status = open_all(options, inputs);
    if (status != FLP_OK)
        return status;
    set_shape(inputs);
    if (inputs->has_logits)
        return complete_logits(options, inputs);
    int by_vocab = options->layout == FLP_VOCAB_HIDDEN;
    int64_t columns = inputs->weight.shape[by_vocab], vocab = inputs->weight.shape[!by_vocab];
    status = check_shapes(options, inputs, columns, vocab);
    if (status != FLP_OK)
        return status;
    inputs->converts = inputs->hidden.dtype != inputs->weight.dtype;
    inputs->problem = (flp_linear_logp_problem){ .dtype = inputs->weight.dtype,
                                                 .rows = inputs->shape.rows,
                                                 .hidden = columns,
                                                 .vocab = options->vocab ? options->vocab : vocab,
                                                 .weight_layout = options->layout,
                                                 .hidden_stride = columns,
                                                 .weight_stride = inputs->weight.shape[1],
                                                 .bias_dtype = inputs->bias.dtype,
                                                 .softcap = options->softcap,
                                                 .argmax = options->argmax != NULL,
                                                 .entropy = options->entropy != NULL,
                                                 .precision = options->precision,
                                                 .backend = options->backend };
    return complete_targets(options, inputs);
}

/* ---- hidden of another dtype than the weight ---- */

int64_t flp_score_inputs_row_bytes(const flp_score_inputs *inputs)
{
    return inputs->problem.hidden * flp_dtype_bytes(inputs->hidden.dtype);
}

enum { CONVERTED_AT_ONCE = 1024 };

flp_status flp_score_inputs_rows(const flp_score_inputs *inputs, int64_t first, int64_t rows, void *buffer, const void **at, int64_t *rounded)
{
    flp_dtype from = inputs->hidden.dtype, to = inputs->problem.dtype;
    const char *source = (const char *)inputs->hidden.data + first * flp_score_inputs_row_bytes(inputs);
    int64_t values = rows * inputs->problem.hidden;
    float exact[CONVERTED_AT_ONCE], back[CONVERTED_AT_ONCE];
    *at = inputs->converts ? buffer : source;
    for (int64_t i = 0; inputs->converts && i < values; i += CONVERTED_AT_ONCE) {
        size_t count = values - i < CONVERTED_AT_ONCE ? (size_t)(values - i) : CONVERTED_AT_ONCE;
        char *converted = (char *)buffer + i * flp_dtype_bytes(to);
        flp_convert_to_f32(from, source + i * flp_dtype_bytes(from), exact, count);
        flp_convert_from_f32(to, exact, converted, count);
        flp_convert_to_f32(to, converted, back, count);
        for (size_t k = 0; k < count; k++) {
            *rounded += back[k] != exact[k] && !isnan(exact[k]);
            if (isinf(back[k]) && isfinite(exact[k]))
                return flp_status_fail(FLP_BAD_ARGUMENT, "--hidden: row %" PRId64 " holds %g, which is too large for %s as the weight has",
                                       inputs->first + first + (i + (int64_t)k) / inputs->problem.hidden, (double)exact[k], flp_dtype_name(to));
        }
    }
    return FLP_OK;
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
        status = check_file(weight_option(options), options->weight, &inputs->weight);
    if (status == FLP_OK)
        status = check_file("target", options->target, &inputs->target);
    if (status == FLP_OK)
        status = check_file(options->model ? "model" : "bias", options->bias, &inputs->bias);
    return status;
}

void flp_score_inputs_close(flp_score_inputs *inputs)
{
    flp_tensor_file_close(&inputs->hidden);
    flp_tensor_file_close(&inputs->weight);
    flp_tensor_file_close(&inputs->bias);
    flp_tensor_file_close(&inputs->target);
}
