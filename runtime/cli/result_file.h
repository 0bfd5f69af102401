/* Writes results, one value per row, as .npy, .csv or .json, as the file's extension says. */
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

/* The mean of values, summed in fp64 and in row order, over the rows whose target is not ignore_index; *tokens gets their number. NaN if there is none. */
double flp_result_mean(const flp_result_column *target, int64_t ignore_index, const float *values, int64_t rows, int64_t *tokens);

/* The value as it is printed: a NaN without its sign, which says nothing and depends on the processor. */
double flp_result_printable(double value);

/* 1 where path ends in one of the extensions, is in /dev, or is "-". */
int flp_result_file_accepts(const char *path);

/* .csv: a header line of "row" and the columns' names, then a line per row; .json: an object with "rows" and an array for each column, with null for values
 * that are not finite; .npy: the last column alone (FLP_F32 or FLP_I32), in its shape. Numbers are written so that they read back to the same bits. A name in
 * /dev without an extension is written as .csv, "-" as .npy. Writes as flp_output_file_write does. FLP_IO_FAILED, FLP_OUT_OF_MEMORY. */
flp_status flp_result_file_publish(const char *path, const flp_result_shape *shape, int count, const flp_result_column *columns);
#endif
