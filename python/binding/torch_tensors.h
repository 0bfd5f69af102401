/* The tensors of a frame: operators check their inputs and make their outputs and workspaces. A function that checks or makes something returns 0, or 1 with
 * the reason in frame->error. */
#ifndef FLP_BINDING_TORCH_TENSORS_H
#define FLP_BINDING_TORCH_TENSORS_H
#include "core/problem.h"
#include "core/workspace.h"
#include "torch_operators.h"
#include "torch_plans.h"

#define FLP_TORCH_DTYPES(x) (1u << (x))
enum {
    FLP_TORCH_FLOATS = FLP_TORCH_DTYPES(FLP_BF16) | FLP_TORCH_DTYPES(FLP_F16) | FLP_TORCH_DTYPES(FLP_F32),
    FLP_TORCH_INDICES = FLP_TORCH_DTYPES(FLP_I32) | FLP_TORCH_DTYPES(FLP_I64),
    FLP_TORCH_F32 = FLP_TORCH_DTYPES(FLP_F32),
    FLP_TORCH_VECTOR_ALIGNMENT = FLP_PROBLEM_ALIGNMENT, /* what the fast kernels want of their arrays. KEEP IN STEP: _places (python/fusedlogp/_operators.py) */
    FLP_TORCH_WORKSPACE_ALIGNMENT = FLP_WORKSPACE_ALIGNMENT
};

/* Returns 1, with the text in frame->error; flp_torch_check_status: 0 for FLP_OK. */
int flp_torch_fail(flp_torch_frame *frame, const char *format, ...) __attribute__((format(printf, 2, 3)));
int flp_torch_check_status(flp_torch_frame *frame, flp_status status);

/* ---- inputs */

bool flp_torch_given(const flp_torch_value *value);
const void *flp_torch_data_of(const flp_torch_value *value);
flp_dtype flp_torch_dtype_of(const flp_torch_value *value);

/* name: the argument's, for the error. dtypes: FLP_TORCH_DTYPES of those that are taken. */
int flp_torch_check_tensor(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int dim, unsigned dtypes);
/* rows, columns: -1: any. The elements of a row must be contiguous. */
int flp_torch_check_matrix(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t rows, int64_t columns, unsigned dtypes);
int flp_torch_check_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes);
int flp_torch_check_optional_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes);

int64_t flp_torch_row_stride(const flp_torch_value *value);
/* The alignment of both addresses, at most FLP_TORCH_VECTOR_ALIGNMENT. */
int flp_torch_alignment_of(const void *a, const void *b);

/* The address of arrays without elements, because the library refuses NULL. flp_torch_some: data, or this in place of NULL. */
extern const char flp_torch_nothing[FLP_TORCH_VECTOR_ALIGNMENT];
const void *flp_torch_some(const void *data);

/* ---- outputs */

int flp_torch_make(flp_torch_frame *frame, int output, flp_dtype dtype, int dim, const int64_t *sizes, const int64_t *strides, void **data);
/* An output that is not wanted is made without elements, and *data is NULL. */
int flp_torch_make_vector(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t count, bool wanted, void **data);
int flp_torch_make_matrix(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t rows, int64_t columns, bool transposed, bool wanted, void **data);

/* The bytes of the tensor that holds a workspace, and the address in it at which the workspace begins. */
int64_t flp_torch_workspace_size(const flp_plan *plan, int64_t rows);
void *flp_torch_aligned(void *data);
/* Makes a workspace; *workspace is NULL and *bytes 0 where the plan needs none. output: the number of an output; -1: memory that only this call uses. On the
 * CPU, the last byte of an output, which is past the workspace's end, holds the offset at which the workspace begins. */
int flp_torch_make_workspace(flp_torch_frame *frame, int output, const flp_plan *plan, int64_t rows, void **workspace, size_t *bytes);

int flp_torch_find_plan(flp_torch_frame *frame, flp_torch_plans_operator kind, const void *problem, flp_plan **plan);
#endif
