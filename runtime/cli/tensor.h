/* Tensors in files, memory-mapped: "file.npy", "file.safetensors:name", or "file.safetensors" where it holds one tensor.
 * Only C order and little endian. */
#ifndef FLP_CLI_TENSOR_H
#define FLP_CLI_TENSOR_H
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "cli/mapped_file.h"
#include "fusedlogp.h"

#define FLP_TENSOR_RANK 8

/* An element type of files. */
typedef struct {
    const char *name;                                        /* in messages */
    const char *npy, *safetensors;                           /* its name in each format; NULL: another row of the table has it */
    int bytes;                                               /* of an element in the file */
    flp_dtype dtype;                                         /* what it is read as: of integers the library has only i32 and i64 */
    void (*widen)(const void *from, size_t count, void *to); /* converts to dtype; NULL: nothing to convert */
} flp_tensor_element;

/* The element type of this name; NULL: there is none. */
const flp_tensor_element *flp_tensor_element_of_npy(const char *descr);
const flp_tensor_element *flp_tensor_element_of_safetensors(const char *name);

typedef struct {
    flp_dtype dtype;                   /* of data: FLP_BF16, FLP_F16, FLP_F32, FLP_I32 or FLP_I64 */
    const flp_tensor_element *element; /* of the file */
    int rank;
    int64_t shape[FLP_TENSOR_RANK];
    const void *data; /* aligned to an element; read-only */
    size_t bytes;     /* of data: the product of shape times the element */
    flp_mapped_file file;
    void *copy; /* NULL, or what data points to because the file holds it unaligned, or in another type */
} flp_tensor;

/* "bf16 [4096, 64]" into text; returns text. */
const char *flp_tensor_describe(const flp_tensor *tensor, char *text, size_t bytes);

/* Bytes of a shape's elements; FLP_BAD_ARGUMENT: a negative extent, or more than a size_t. */
flp_status flp_tensor_measure(int element_bytes, int rank, const int64_t *shape, size_t *bytes);

int flp_tensor_is_integer(const flp_tensor *tensor);
int64_t flp_tensor_integer(const flp_tensor *tensor, int64_t index); /* of an FLP_I32 or FLP_I64 */

/* Fills *tensor, which flp_tensor_file_close frees. spec: as at the top of this file.
 * FLP_IO_FAILED: the file cannot be read. FLP_BAD_ARGUMENT: an unknown extension, no such tensor, a malformed file, or an unsigned integer that is too large
 * for an i64. Messages start with the file's name. */
flp_status flp_tensor_file_open(const char *spec, flp_tensor *tensor);
/* The same for the tensor `name` of a safetensors file with any extension. */
flp_status flp_tensor_file_open_named(const char *path, const char *name, flp_tensor *tensor);
void flp_tensor_file_close(flp_tensor *tensor); /* a zeroed one is allowed */

/* The parsers of the formats. bytes[count] is the whole file; lengths and offsets in it are compared with count before they are used. Each sets element,
 * dtype, rank, shape, bytes and data, all as the file holds them. Messages do not name the file. */
flp_status flp_npy_parse(const void *bytes, size_t count, flp_tensor *tensor);
/* name: NULL where the file must hold one tensor. */
flp_status flp_safetensors_parse(const void *bytes, size_t count, const char *name, flp_tensor *tensor);

#define FLP_NPY_HEADER_BYTES 128
/* The header of an array, padded so that the data after it is 64-byte aligned. dtype: FLP_F32 or FLP_I32. rank: at most FLP_NPY_RANK. */
#define FLP_NPY_RANK 2
void flp_npy_header(flp_dtype dtype, int rank, const int64_t *shape, char header[FLP_NPY_HEADER_BYTES]);

/* The header of a safetensors file, an object from names to entries, "__metadata__" among them, which the caller releases. The data begins at byte data_at.
 * bytes[count] is the whole file. FLP_BAD_ARGUMENT: not a safetensors file; the message does not name it. */
flp_status flp_safetensors_header(const void *bytes, size_t count, json_t **header, size_t *data_at);
#endif
