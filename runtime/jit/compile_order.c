/* Ranks variants by how long NVRTC takes to compile their kernels. */
#include "jit/compile_order.h"

#include <stddef.h>
#include <string.h>

/* The kernels that take longest to compile, longest first. With NVRTC 13.0, for sm_90a and bf16, they take about 0.7, 0.5, 0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2,
 * 0.2, 0.13, 0.10 and 0.09 seconds of a core. A kernel that is missing here is only compiled later than would be best. */
static const char *const slowest[FLP_COMPILE_RANKS - 1] = {
    "linear_logp_save_exp",      "linear_logp_grad_logits", "linear_logp", "logits_logp_fused_cluster", "matrix_product",
    "logits_logp_fused",         "linear_logp_offsets",     "logits_logp", "logits_logp_gradient",      "logits_logp_cluster",
    "linear_logp_backward_rows", "linear_logp_combine",     "token_loss"
};

int flp_compile_rank(const char *variant)
{
    const size_t length = strcspn(variant, ".");
    int rank = 0;

    while (rank < FLP_COMPILE_RANKS - 1 && !(strlen(slowest[rank]) == length && strncmp(variant, slowest[rank], length) == 0))
        rank++;
    return rank;
}

void flp_compile_order(int count, const char *const *variants, int *order)
{
    int next = 0;

    for (int rank = 0; rank < FLP_COMPILE_RANKS; rank++)
        for (int i = 0; i < count; i++)
            if (flp_compile_rank(variants[i]) == rank)
                order[next++] = i;
}
