/* Parameters of scale's kernel. Strides are in elements. */
#ifndef FLP_PARAMS_SCALE_H
#define FLP_PARAMS_SCALE_H
#include "params/types.h"

/* Bytes of a row that a block takes at a time: eight vectors of 16 bytes for each of its 256 threads. */
enum { FLP_SCALE_PART_BYTES = 32768 };

/* x *= factor: any number of blocks, which take the `parts` parts of each row in turn. */
typedef struct ScaleParams {
    void *x;             /* [rows][x_stride], of which the first `columns` are scaled */
    const float *factor; /* [1] */
    i64 rows, columns, x_stride;
    i64 parts; /* ceil(columns x bytes of an element / FLP_SCALE_PART_BYTES) */
} flp_scale_params;

FLP_PARAMS_BYTES(flp_scale_params, 48);
#endif
