/* Tensors in files, memory-mapped: "file.npy", "file.safetensors:name", or "file.safetensors" where it holds one tensor.
 * Only C order and little endian. */
#ifndef FLP_CLI_TENSOR_FILE_H
#define FLP_CLI_TENSOR_FILE_H
#include "cli/tensor.h"

/* Fills *tensor, which flp_tensor_file_close frees. spec: as above.
 * FLP_IO_FAILED: the file cannot be read. FLP_BAD_ARGUMENT: an unknown extension, no such tensor, or a malformed file; the
 * message starts with the file's name. */
flp_status flp_tensor_file_open(const char *spec, flp_tensor *tensor);
void flp_tensor_file_close(flp_tensor *tensor); /* a zeroed one is allowed */
#endif
