/* The names of the element types. */
#include "base/dtype.h"

#include <string.h>

static const char *const names[] = { [FLP_NONE] = "none", [FLP_BF16] = "bf16", [FLP_F16] = "f16", [FLP_F32] = "f32", [FLP_I32] = "i32", [FLP_I64] = "i64" };

const char *flp_dtype_name(flp_dtype dtype)
{
    return names[dtype];
}

flp_dtype flp_dtype_parse(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0)
            return (flp_dtype)i;
    if (strcmp(name, "fp16") == 0)
        return FLP_F16;
    return strcmp(name, "fp32") == 0 ? FLP_F32 : FLP_NONE;
}
