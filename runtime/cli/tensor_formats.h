/* The formats of tensor files: .npy and .safetensors. bytes[count] is the whole file; nothing that it says is believed before it has been compared
 * with its size. Each sets dtype, rank, shape, bytes and the place of the data, and leaves messages without the file's name. */
#ifndef FLP_CLI_TENSOR_FORMATS_H
#define FLP_CLI_TENSOR_FORMATS_H
#include "cli/tensor.h"

flp_status flp_npy_parse(const void *bytes, size_t count, flp_tensor *tensor);
/* name: NULL where the file must hold one tensor. */
flp_status flp_safetensors_parse(const void *bytes, size_t count, const char *name, flp_tensor *tensor);

#define FLP_NPY_HEADER_BYTES 128
/* The header of a one-dimensional array, padded so that the data behind it is 64-byte aligned. dtype: FLP_F32 or FLP_I32. */
void flp_npy_header(flp_dtype dtype, int64_t rows, char header[FLP_NPY_HEADER_BYTES]);
#endif
