/* What a tensor's shape says. */
#include "cli/tensor.h"
#include <stdio.h>
#include "base/dtype.h"
#include "base/status.h"

const char *flp_tensor_describe(const flp_tensor *tensor, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%s [", flp_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
    return text;
}

flp_status flp_tensor_measure(flp_dtype dtype, int rank, const int64_t *shape, size_t *bytes)
{
    /* An extent of 0 must not hide an impossible one behind it, so zeros count as ones until the end. */
    size_t product = (size_t)flp_dtype_bytes(dtype);
    int empty = 0;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return flp_status_fail(FLP_BAD_ARGUMENT, "shape: extent %d is %lld, wanted 0 or more", i, (long long)shape[i]);
        empty |= shape[i] == 0;
        if (__builtin_mul_overflow(product, shape[i] == 0 ? 1 : (uint64_t)shape[i], &product))
            return flp_status_fail(FLP_BAD_ARGUMENT, "shape: more bytes than can be addressed");
    }
    *bytes = empty ? 0 : product;
    return FLP_OK;
}
