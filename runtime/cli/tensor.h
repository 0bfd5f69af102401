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

/* A type that files hold. */
typedef struct {
    const char *name;                                        /* in messages */
    const char *npy, *safetensors;                           /* what the formats call it; NULL: another row has that */
    int bytes;                                               /* of an element in the file */
    flp_dtype dtype;                                         /* what it is read as: the library has no integers but i32 and i64 */
    void (*widen)(const void *from, size_t count, void *to); /* NULL where dtype is as the file holds it */
} flp_tensor_element;

/* NULL: none is called so. */
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

/* Fills *tensor, which flp_tensor_file_close frees. spec: as above.
 * FLP_IO_FAILED: the file cannot be read. FLP_BAD_ARGUMENT: an unknown extension, no such tensor, or a malformed file; the
 * message starts with the file's name, also where an unsigned integer is too large for an i64. */
flp_status flp_tensor_file_open(const char *spec, flp_tensor *tensor);
/* The same of a safetensors file, whatever it is called. */
flp_status flp_tensor_file_open_named(const char *path, const char *name, flp_tensor *tensor);
void flp_tensor_file_close(flp_tensor *tensor); /* a zeroed one is allowed */

/* The formats. bytes[count] is the whole file; nothing that it says is believed before it has been compared with its size. Each sets element, dtype, rank,
 * shape, bytes and the place of the data, all as the file holds them, and leaves messages without the file's name. */
flp_status flp_npy_parse(const void *bytes, size_t count, flp_tensor *tensor);
/* name: NULL where the file must hold one tensor. */
flp_status flp_safetensors_parse(const void *bytes, size_t count, const char *name, flp_tensor *tensor);

#define FLP_NPY_HEADER_BYTES 128
/* The header of an array, padded so that the data behind it is 64-byte aligned. dtype: FLP_F32 or FLP_I32. rank: at most FLP_NPY_RANK. */
#define FLP_NPY_RANK 2
void flp_npy_header(flp_dtype dtype, int rank, const int64_t *shape, char header[FLP_NPY_HEADER_BYTES]);

/* Of a safetensors file beside its tensors: */
/* The header as an object from names to entries, "__metadata__" among them, which the caller releases; the data begin at data_at. bytes[count] is the
 * whole file. FLP_BAD_ARGUMENT: not such a file; names no file. */
flp_status flp_safetensors_header(const void *bytes, size_t count, json_t **header, size_t *data_at);
#endif
