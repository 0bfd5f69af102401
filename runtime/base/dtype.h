/* The element types by size and name. */
#ifndef FLP_BASE_DTYPE_H
#define FLP_BASE_DTYPE_H
#include "fusedlogp.h"

/* What an operator's inputs may be, for messages: as text has it, and as C has it. */
#define FLP_DTYPE_FLOATS "bf16, f16 or f32"
#define FLP_DTYPE_FLOAT_CONSTANTS "FLP_BF16, FLP_F16 or FLP_F32"

/* 0 for FLP_NONE, and for what is no dtype. */
static inline int flp_dtype_bytes(flp_dtype dtype)
{
    static const signed char bytes[] = { [FLP_NONE] = 0, [FLP_BF16] = 2, [FLP_F16] = 2, [FLP_F32] = 4, [FLP_I32] = 4, [FLP_I64] = 8 };

    return (size_t)dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

const char *flp_dtype_name(flp_dtype dtype); /* "bf16", "f16", "f32", "i32", "i64", "none" */
flp_dtype flp_dtype_parse(const char *name); /* also "fp16" and "fp32"; FLP_NONE for an unknown name */
#endif
