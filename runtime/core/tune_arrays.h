/* The arrays of a call that is made up: sizes by the problem, inputs of random numbers, results that are compared. */
#ifndef FLP_CORE_TUNE_ARRAYS_H
#define FLP_CORE_TUNE_ARRAYS_H
#include "core/call.h"

enum { FLP_TUNE_ARRAYS = 24, FLP_TUNE_FEW_ROWS = 4 };

/* Results of one kind of call, sampled: NULL where they were not taken. */
typedef enum { FLP_TUNE_REFERENCE, FLP_TUNE_FEW, FLP_TUNE_ALL, FLP_TUNE_SAMPLES } flp_tune_sample;

typedef struct {
    const flp_argument *argument;
    flp_argument_values values;
    flp_dtype dtype; /* FLP_NONE: elements of int64 or int32 without one */
    int element_bytes;
    int is_matrix;
    int64_t per_row;  /* elements of a row of the call; 0: it has as many for any rows */
    int64_t elements; /* of all rows */
    CUdeviceptr device;
    char *sample[FLP_TUNE_SAMPLES];
} flp_tune_array;

typedef struct {
    const flp_operator_calls *calls;
    const void *problem; /* normal */
    int64_t checked_bytes;
    const flp_driver *driver;
    CUstream stream;
    const flp_device *owner;
    int count;
    flp_tune_array array[FLP_TUNE_ARRAYS];
} flp_tune_arrays;

/* Their sizes alone. FLP_BAD_ARGUMENT: the call cannot be made up. */
flp_status flp_tune_arrays_describe(flp_tune_arrays *arrays);
int64_t flp_tune_arrays_bytes(const flp_tune_arrays *arrays);
/* On the device, inputs filled. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_tune_arrays_allocate(flp_tune_arrays *arrays);
void flp_tune_arrays_free(flp_tune_arrays *arrays);

/* args [FLP_CALL_ARGS_BYTES], of the arrays on the device. workspace: NULL: the context's scratch. */
void flp_tune_arrays_args(const flp_tune_arrays *arrays, int64_t rows, void *workspace, size_t workspace_bytes, void *args);

/* The call, behind the one that comes before it where there is one. Errors as flp_call_execute. */
flp_status flp_tune_arrays_execute(const flp_tune_arrays *arrays, flp_plan *plan, const void *args);

/* The CPU path's results of few rows become the reference. */
flp_status flp_tune_arrays_run_reference(flp_tune_arrays *arrays, flp_context *context);
/* Before a call whose results are compared. */
flp_status flp_tune_arrays_clear(flp_tune_arrays *arrays);
/* Keeps what a call has left on the device. */
flp_status flp_tune_arrays_keep(flp_tune_arrays *arrays, flp_tune_sample sample);
/* Compares it: with the bits that are kept, or within what the paths may differ by. FLP_INTERNAL: which array differs, and where. */
flp_status flp_tune_arrays_compare(flp_tune_arrays *arrays, flp_tune_sample sample, int by_bits);
#endif
