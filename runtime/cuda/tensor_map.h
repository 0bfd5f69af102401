/* Two-dimensional tensor maps for TMA. */
#ifndef FLP_CUDA_TENSOR_MAP_H
#define FLP_CUDA_TENSOR_MAP_H
#include "cuda/driver.h"

typedef struct {
    unsigned long long context_id; /* of the CUDA context whose device reads through the map */
    const void *address;           /* 16-byte aligned */
    flp_dtype dtype;
    int64_t columns, rows;     /* of the tensor; elements outside it read as zeros */
    int64_t row_bytes;         /* from one row to the next, a multiple of 16 */
    int box_columns, box_rows; /* each <= 256; box_columns x element size = 128 bytes, the swizzle's width */
    int fetches_ahead;         /* 1: an L2 miss fetches 256 bytes; 0: 128 (the map's L2 promotion) */
} flp_tensor_map_spec;

/* Encodes the map of a spec. Each thread keeps its recent maps, so that a map that is needed again is only copied. FLP_BAD_ARGUMENT: the spec breaks a rule,
 * which the message names; rules are checked before the driver is called. FLP_NO_DRIVER: there is no driver, or it has no cuTensorMapEncodeTiled. */
flp_status flp_tensor_map_encode(const flp_tensor_map_spec *spec, CUtensorMap *map);
#endif
