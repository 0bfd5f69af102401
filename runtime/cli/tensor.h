/* A tensor that lies in a file. */
#ifndef FLP_CLI_TENSOR_H
#define FLP_CLI_TENSOR_H
#include <stddef.h>
#include <stdint.h>
#include "cli/mapped_file.h"
#include "fusedlogp.h"

#define FLP_TENSOR_RANK 8

typedef struct {
    flp_dtype dtype; /* FLP_BF16, FLP_F16, FLP_F32, FLP_I32 or FLP_I64 */
    int rank;
    int64_t shape[FLP_TENSOR_RANK];
    const void *data; /* aligned to an element; read-only */
    size_t bytes;     /* of data: the product of shape times the element */
    flp_mapped_file file;
    void *copy; /* NULL, or what data points to because the file holds it unaligned */
} flp_tensor;

/* "bf16 [4096, 64]" into text; returns text. */
const char *flp_tensor_describe(const flp_tensor *tensor, char *text, size_t bytes);

/* Bytes of a shape's elements; FLP_BAD_ARGUMENT: a negative extent, or more than a size_t. */
flp_status flp_tensor_measure(flp_dtype dtype, int rank, const int64_t *shape, size_t *bytes);
#endif
