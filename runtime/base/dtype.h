/* The sizes and names of the element types. */
#ifndef FLP_BASE_DTYPE_H
#define FLP_BASE_DTYPE_H
#include "fusedlogp.h"

/* The dtypes that an operator's inputs may have, for messages: as names, and as C constants. */
#define FLP_DTYPE_FLOATS "bf16, f16 or f32"
#define FLP_DTYPE_FLOAT_CONSTANTS "FLP_BF16, FLP_F16 or FLP_F32"

/* Bytes of an element; 0 for FLP_NONE and for a value that is no dtype. */
static inline int flp_dtype_bytes(flp_dtype dtype)
{
    static const signed char bytes[] = { [FLP_NONE] = 0, [FLP_BF16] = 2, [FLP_F16] = 2, [FLP_F32] = 4, [FLP_I32] = 4, [FLP_I64] = 8 };

    return (size_t)dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

const char *flp_dtype_name(flp_dtype dtype); /* "bf16", "f16", "f32", "i32", "i64", "none" */
flp_dtype flp_dtype_parse(const char *name); /* also "fp16" and "fp32"; FLP_NONE for an unknown name */
#endif
