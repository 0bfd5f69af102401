/* The element types of tensor files, and a tensor's size and description. */
#include "cli/tensor.h"
#include <stdio.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"

#define WIDEN(name, narrow, wide)                                                \
    static void name(const void *from, size_t count, void *to)                   \
    {                                                                            \
        for (size_t i = 0; i < count; i++) {                                     \
            narrow value;                                                        \
            memcpy(&value, (const char *)from + i * sizeof value, sizeof value); \
            ((wide *)to)[i] = value;                                             \
        }                                                                        \
    }
WIDEN(widen_u8, uint8_t, int32_t)
WIDEN(widen_i8, int8_t, int32_t)
WIDEN(widen_u16, uint16_t, int32_t)
WIDEN(widen_i16, int16_t, int32_t)
WIDEN(widen_u32, uint32_t, int64_t)

/* NumPy has no bf16: an array of ml_dtypes.bfloat16 is saved with the descr of two opaque bytes, so every such array is read as bf16. */
static const flp_tensor_element elements[] = {
    { "bf16", "<V2", "BF16", 2, FLP_BF16, NULL },   { "bf16", "|V2", NULL, 2, FLP_BF16, NULL },     { "bf16", "bfloat16", NULL, 2, FLP_BF16, NULL },
    { "f16", "<f2", "F16", 2, FLP_F16, NULL },      { "f32", "<f4", "F32", 4, FLP_F32, NULL },      { "i32", "<i4", "I32", 4, FLP_I32, NULL },
    { "i64", "<i8", "I64", 8, FLP_I64, NULL },      { "u8", "|u1", "U8", 1, FLP_I32, widen_u8 },    { "i8", "|i1", "I8", 1, FLP_I32, widen_i8 },
    { "u16", "<u2", "U16", 2, FLP_I32, widen_u16 }, { "i16", "<i2", "I16", 2, FLP_I32, widen_i16 }, { "u32", "<u4", "U32", 4, FLP_I64, widen_u32 },
    { "u64", "<u8", "U64", 8, FLP_I64, NULL },
};

const flp_tensor_element *flp_tensor_element_of_npy(const char *descr)
{
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (strcmp(descr, elements[i].npy) == 0)
            return &elements[i];
    return NULL;
}

const flp_tensor_element *flp_tensor_element_of_safetensors(const char *name)
{
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (elements[i].safetensors != NULL && strcmp(name, elements[i].safetensors) == 0)
            return &elements[i];
    return NULL;
}

int flp_tensor_is_integer(const flp_tensor *tensor)
{
    return tensor->dtype == FLP_I32 || tensor->dtype == FLP_I64;
}

int64_t flp_tensor_integer(const flp_tensor *tensor, int64_t index)
{
    return tensor->dtype == FLP_I64 ? ((const int64_t *)tensor->data)[index] : ((const int32_t *)tensor->data)[index];
}

const char *flp_tensor_describe(const flp_tensor *tensor, char *text, size_t bytes)
{
    size_t used = (size_t)snprintf(text, bytes, "%s [", tensor->element ? tensor->element->name : flp_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%lld", i ? ", " : "", (long long)tensor->shape[i]);
    if (used < bytes)
        snprintf(text + used, bytes - used, "]");
    return text;
}

flp_status flp_tensor_measure(int element_bytes, int rank, const int64_t *shape, size_t *bytes)
{
    /* An extent of 0 must not hide an impossible extent that follows it, so zeros count as ones until the end. */
    size_t product = (size_t)element_bytes;
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
