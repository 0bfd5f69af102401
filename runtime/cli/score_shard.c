/* The identity of a run: a digest that shows that two processes of fusedlogp score worked on the same inputs with the same options. */
#include <inttypes.h>
#include <stdlib.h>
#include "base/status.h"
#include "base/text.h"
#include "cli/score.h"

/* Of a large tensor, SAMPLES evenly spread parts of SAMPLE_BYTES are digested: reading all of it would cost as much as scoring. */
enum { SAMPLES = 256, SAMPLE_BYTES = 4096 };

static void append_digest(flp_text *text, const void *bytes, size_t count)
{
    char digest[FLP_DIGEST_TEXT_BYTES];
    flp_digest_format(bytes, count, digest);
    flp_text_append(text, " %s", digest);
}

static void append_tensor(flp_text *text, const char *name, const flp_tensor *tensor, const void *data)
{
    char shape[256];
    flp_text samples = { 0 };
    flp_text_append(text, "; %s %s", name, tensor->rank > 0 ? flp_tensor_describe(tensor, shape, sizeof shape) : "none");
    if (tensor->bytes <= (size_t)SAMPLES * SAMPLE_BYTES) {
        append_digest(text, data, tensor->bytes);
        return;
    }
    for (size_t i = 0; i < SAMPLES; i++)
        flp_text_append_bytes(&samples, (const char *)data + (tensor->bytes - SAMPLE_BYTES) / (SAMPLES - 1) * i, SAMPLE_BYTES);
    append_digest(text, samples.data, samples.length);
    text->failed |= samples.failed;
    flp_text_free(&samples);
}

/* All shards must see the same inputs, which are therefore not cut to a shard yet. */
flp_status flp_score_run_identity(const flp_score_options *options, const flp_score_inputs *inputs, char identity[FLP_DIGEST_TEXT_BYTES])
{
    const flp_linear_logp_problem *problem = &inputs->problem;
    flp_text text = { 0 };
    flp_text_append(&text, "vocab %" PRId64 ", layout %d, softcap %.17g, temperature %.17g, ignore %" PRId64 ", precision %d", problem->vocab,
                    (int)problem->weight_layout, problem->softcap, options->temperature, options->ignore_index, (int)problem->precision);
    append_tensor(&text, "hidden", &inputs->hidden, inputs->hidden.data);
    append_tensor(&text, "weight", &inputs->weight, inputs->weight.data);
    append_tensor(&text, "bias", &inputs->bias, inputs->bias.data);
    flp_text_append(&text, "; target");
    append_digest(&text, inputs->target.data, inputs->target.bytes);
    if (!text.failed)
        flp_digest_format(text.data, text.length, identity);
    flp_status status = text.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "--shard") : FLP_OK;
    flp_text_free(&text);
    return status;
}
