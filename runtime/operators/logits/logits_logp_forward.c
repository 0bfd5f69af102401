/* The forward's kernels, which both directions of logits_logp have, and which of them reads so many rows. */
#include "operators/logits/logits_logp_forward.h"

#include "base/status.h"
#include "core/describe.h"

flp_status flp_logits_logp_forward_check_manifest(const flp_manifest *manifest)
{
    if (manifest->threads >= 32 && manifest->block_vocab >= 1 && manifest->cluster >= 1)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_vocab %d, cluster %d; wanted at least 32, 1, 1", manifest->variant,
                           manifest->threads, manifest->block_vocab, manifest->cluster);
}

flp_status flp_logits_logp_forward_take(const flp_plan *plan, flp_logits_logp_forward *forward)
{
    flp_status status;

    *forward = (flp_logits_logp_forward){ plan->kernels[FLP_ROLE_ROWS], plan->kernels[FLP_ROLE_COMBINE], plan->kernels[FLP_ROLE_FEW_ROWS] };
    status = flp_logits_logp_forward_check_manifest(&forward->rows->manifest);
    if (status == FLP_OK)
        status = flp_logits_logp_forward_check_manifest(&forward->combine->manifest);
    return status == FLP_OK && forward->few ? flp_logits_logp_forward_check_manifest(&forward->few->manifest) : status;
}

flp_logits_logp_pass flp_logits_logp_forward_choose(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows)
{
    const flp_logits_logp_shape shape = flp_logits_logp_shape_rows(&forward->rows->manifest, multiprocessors, vocab, rows);
    flp_logits_logp_shape few = { .blocks = 0 };

    /* Where a block takes several rows, or one whole, that is one launch too. */
    if (forward->few && shape.parts > 1)
        few = flp_logits_logp_shape_few(&forward->few->manifest, forward->few->clusters, vocab, rows);
    return few.blocks > 0 ? (flp_logits_logp_pass){ forward->few, few } : (flp_logits_logp_pass){ forward->rows, shape };
}

int64_t flp_logits_logp_forward_cut_rows(const flp_logits_logp_forward *forward, int multiprocessors, int64_t vocab, int64_t rows)
{
    int64_t low = 0, high = rows;

    /* More rows are not cut where fewer are not, but for the fewest. */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        if (flp_logits_logp_shape_rows(&forward->rows->manifest, multiprocessors, vocab, middle).parts > 1)
            low = middle;
        else
            high = middle - 1;
    }
    return low > 0 && flp_logits_logp_forward_choose(forward, multiprocessors, vocab, low).shape.parts > 1 ? low : 0;
}

void flp_logits_logp_forward_describe(const flp_logits_logp_forward *forward, flp_text *text)
{
    flp_describe_kernel(text, "rows", &forward->rows->manifest);
    flp_describe_kernel(text, "combine", &forward->combine->manifest);
    if (!forward->few)
        return;
    flp_describe_kernel(text, "few rows", &forward->few->manifest);
    flp_text_append(text, "few rows: up to %d, a cluster of %d each\n", forward->few->clusters, forward->few->manifest.cluster);
}
