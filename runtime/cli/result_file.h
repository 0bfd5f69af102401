/* Results a row, written as .npy, .csv or .json by the file's extension. */
#ifndef FLP_CLI_RESULT_FILE_H
#define FLP_CLI_RESULT_FILE_H
#include <stdint.h>
#include "cli/tensor.h"
#include "fusedlogp.h"

typedef struct {
    int rank; /* 1 or 2 */
    int64_t extents[FLP_NPY_RANK];
    int64_t rows; /* their product */
} flp_result_shape;

typedef struct {
    const char *name;
    flp_dtype dtype; /* FLP_F32, FLP_I32 or FLP_I64 */
    const void *data;
} flp_result_column;

/* In fp64 and in row order, of rows whose target is not ignore_index, which it counts; NaN without one. */
double flp_result_mean(const flp_result_column *target, int64_t ignore_index, const float *values, int64_t rows, int64_t *tokens);

/* 1 where path ends in an extension that can be written, lies in /dev, or is -. */
int flp_result_file_accepts(const char *path);

/* .csv: a line of names after "row", then a line a row; .json: an object with "rows" and an array for each column, null for
 * what is not finite; .npy: the last column alone (FLP_F32 or FLP_I32), in its shape. Numbers are written so that they read back to the
 * same bits. A name in /dev without an extension: .csv; -: .npy. Writes as flp_output_file_write does. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_result_file_publish(const char *path, const flp_result_shape *shape, int count, const flp_result_column *columns);
#endif
