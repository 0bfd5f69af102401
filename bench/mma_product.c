/* Finds, loads and launches the bare product. */
#include "mma_product.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "params/matrix_product.h"

flp_status flp_mma_product_name(const char *tile, char variant[FLP_VARIANT_BYTES])
{
    char dtype[8], arch[16];
    int hidden, bm, bv, splits, cluster, stages, end = 0;

    if (sscanf(tile, "linear_logp.%7[a-z0-9].d%d.bm%d.bv%d.s%d.c%d.p%d.%15[a-z0-9_]%n", dtype, &hidden, &bm, &bv, &splits, &cluster, &stages, arch, &end) !=
            8 ||
        tile[end] || strncmp(arch, "sm_", 3) != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: wanted a portable tile kernel of linear_logp without options", tile);
    snprintf(variant, FLP_VARIANT_BYTES, "matrix_product.%s.bm%d.bv%d.c%d.p%d.out_%s.%s", dtype, bm, bv, cluster, stages, dtype, arch);
    return FLP_OK;
}

flp_status flp_mma_product_load(const flp_plan *forward, const char *tile, flp_plan *product)
{
    char variant[1][FLP_VARIANT_BYTES];
    const flp_kernel *kernel = NULL;
    flp_status status = flp_mma_product_name(tile, variant[0]);

    if (status == FLP_OK)
        status = flp_kernel_store_get(forward->context->store, &forward->device, 1, (const char(*)[FLP_VARIANT_BYTES])variant, &kernel);
    *product = (flp_plan){ .context = forward->context, .device = forward->device, .kernels = { [FLP_ROLE_TILE] = kernel } };
    return status;
}

flp_status flp_mma_product_launch(const flp_plan *product, flp_dtype dtype, const void *hidden, const void *weight, void *logits, int64_t rows,
                                  int64_t hidden_size, int64_t vocab, CUstream stream)
{
    flp_matrix_product_params params = {
        .a = hidden,
        .b = weight,
        .out = logits,
        .a_stride = hidden_size,
        .b_stride = hidden_size,
        .out_stride = vocab,
        .rows = (int32_t)rows,
        .columns = (int32_t)vocab,
        .inner = (int32_t)hidden_size,
    };
    const flp_tile_launch launch = {
        .rows = rows, .columns = vocab, .row_bytes = hidden_size * flp_dtype_bytes(dtype), .params = &params, .group = &params.group
    };

    return flp_tile_launch_run(product, FLP_ROLE_TILE, &launch, stream);
}
