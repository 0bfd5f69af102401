/* Two-dimensional tensor maps for TMA. */
#ifndef FLP_CUDA_TENSOR_MAP_H
#define FLP_CUDA_TENSOR_MAP_H
#include "cuda/driver.h"

typedef struct {
    unsigned long long context_id; /* of the CUDA context whose device reads through the map */
    const void *address;           /* 16-byte aligned */
    flp_dtype dtype;
    int64_t columns, rows;     /* of the tensor: what lies outside is filled with zeros */
    int64_t row_bytes;         /* stride, a multiple of 16 */
    int box_columns, box_rows; /* each <= 256; box_columns x element size = 128 bytes, the swizzle's width */
    int fetches_ahead;         /* what the L2 misses it fetches 256 bytes of, not 128 */
} flp_tensor_map_spec;

/* This thread's last maps are kept: one that is asked for again is a copy. FLP_BAD_ARGUMENT names the rule that the spec breaks, before the driver is asked. */
flp_status flp_tensor_map_encode(const flp_tensor_map_spec *spec, CUtensorMap *map);
#endif
