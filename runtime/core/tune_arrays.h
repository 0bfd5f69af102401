/* The arrays of the calls that a tuning makes itself: sized by the problem, inputs filled with random numbers, results sampled and compared. */
#ifndef FLP_CORE_TUNE_ARRAYS_H
#define FLP_CORE_TUNE_ARRAYS_H
#include "core/call.h"

enum { FLP_TUNE_ARRAYS = 24, FLP_TUNE_FEW_ROWS = 4 };

/* The samples that are kept of results: of few rows on the CPU path, and on the device of few rows and of all rows. */
typedef enum { FLP_TUNE_REFERENCE, FLP_TUNE_FEW, FLP_TUNE_ALL, FLP_TUNE_SAMPLES } flp_tune_sample;

typedef struct {
    const flp_argument *argument;
    flp_argument_values values;
    flp_dtype dtype; /* FLP_NONE: elements are int32 or int64 */
    int element_bytes;
    int is_matrix;
    int64_t per_row;  /* elements for each row of the call; 0: their number does not depend on the rows */
    int64_t elements; /* in all */
    CUdeviceptr device;
    char *sample[FLP_TUNE_SAMPLES]; /* of a result; NULL: not taken */
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

/* The target of row i of a call that is timed: spread over the vocabulary's entries 0 .. vocab - 1, the first row's is the last. The benchmark has it, too. */
static inline int64_t flp_tune_arrays_target(int64_t i, int64_t vocab)
{
    return i == 0 ? vocab - 1 : (i * 7919 + 13) % vocab;
}

/* Fills in array and count, without allocating anything. FLP_INTERNAL: a tuning cannot make calls of this operator or problem. */
flp_status flp_tune_arrays_describe(flp_tune_arrays *arrays);
int64_t flp_tune_arrays_bytes(const flp_tune_arrays *arrays);
/* Allocates the arrays on the device, fills the inputs and clears the results. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_tune_arrays_allocate(flp_tune_arrays *arrays);
void flp_tune_arrays_free(flp_tune_arrays *arrays);

/* Fills in args [FLP_CALL_ARGS_BYTES] with the arrays on the device. workspace NULL: the context's scratch. */
void flp_tune_arrays_args(const flp_tune_arrays *arrays, int64_t rows, void *workspace, size_t workspace_bytes, void *args);

/* Makes the call, after the call that must come before it, if any (flp_operator_calls.execute_before). Errors as flp_call_execute. */
flp_status flp_tune_arrays_execute(const flp_tune_arrays *arrays, flp_plan *plan, const void *args);

/* Computes the results of FLP_TUNE_FEW_ROWS rows on the CPU path, and keeps them as FLP_TUNE_REFERENCE. */
flp_status flp_tune_arrays_run_reference(flp_tune_arrays *arrays, flp_context *context);
/* Clears the results, before a call whose results are compared. */
flp_status flp_tune_arrays_clear(flp_tune_arrays *arrays);
/* Keeps a sample of the results that a call has left on the device. */
flp_status flp_tune_arrays_keep(flp_tune_arrays *arrays, flp_tune_sample sample);
/* Compares the results on the device with the sample that is kept: bit for bit (by_bits 1), or within a tolerance. FLP_INTERNAL: which array differs, and
 * where. */
flp_status flp_tune_arrays_compare(flp_tune_arrays *arrays, flp_tune_sample sample, int by_bits);
#endif
