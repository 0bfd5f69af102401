/* The tensors of a frame: inputs are checked, outputs and workspaces made. */
#include "torch_tensors.h"
#include <stdarg.h>
#include <stdio.h>

int flp_torch_fail(flp_torch_frame *frame, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(frame->error, sizeof(frame->error), format, list);
    va_end(list);
    return 1;
}

int flp_torch_check_status(flp_torch_frame *frame, flp_status status)
{
    frame->status = status;
    return status == FLP_OK ? 0 : flp_torch_fail(frame, "fusedlogp: %s: %s", flp_status_text(status), flp_error_message());
}

/* ---- inputs */

bool flp_torch_given(const flp_torch_value *value)
{
    return value->kind == FLP_TORCH_TENSOR;
}

const void *flp_torch_data_of(const flp_torch_value *value)
{
    return flp_torch_given(value) ? value->data : NULL;
}

flp_dtype flp_torch_dtype_of(const flp_torch_value *value)
{
    return flp_torch_given(value) ? value->dtype : FLP_NONE;
}

int flp_torch_check_tensor(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int dim, unsigned dtypes)
{
    if (value->dim != dim)
        return flp_torch_fail(frame, "%s has %d dimensions, wanted %d", name, value->dim, dim);
    if (!(FLP_TORCH_DTYPES(value->dtype) & dtypes))
        return flp_torch_fail(frame, "%s has a dtype that is not taken, wanted %s", name,
                              dtypes == FLP_TORCH_F32 ? "float32" : (dtypes & FLP_TORCH_INDICES ? "int32 or int64" : "bfloat16, float16 or float32"));
    if (value->device != frame->device)
        return flp_torch_fail(frame, "%s is on another device than the first tensor", name);
    return 0;
}

int flp_torch_check_matrix(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t rows, int64_t columns, unsigned dtypes)
{
    if (flp_torch_check_tensor(frame, name, value, 2, dtypes))
        return 1;
    if ((rows >= 0 && value->sizes[0] != rows) || (columns >= 0 && value->sizes[1] != columns))
        return flp_torch_fail(frame, "%s has shape [%lld, %lld], wanted [%lld, %lld] (-1: any)", name, (long long)value->sizes[0], (long long)value->sizes[1],
                              (long long)rows, (long long)columns);
    if (value->sizes[1] > 1 && value->strides[1] != 1)
        return flp_torch_fail(frame, "%s has stride %lld along its rows, wanted 1", name, (long long)value->strides[1]);
    if (value->sizes[0] > 1 && value->strides[0] < value->sizes[1])
        return flp_torch_fail(frame, "%s has row stride %lld, wanted %lld or more", name, (long long)value->strides[0], (long long)value->sizes[1]);
    return 0;
}

int flp_torch_check_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes)
{
    if (flp_torch_check_tensor(frame, name, value, 1, dtypes))
        return 1;
    if (value->sizes[0] != count)
        return flp_torch_fail(frame, "%s has %lld elements, wanted %lld", name, (long long)value->sizes[0], (long long)count);
    if (count > 1 && value->strides[0] != 1)
        return flp_torch_fail(frame, "%s has stride %lld, wanted 1", name, (long long)value->strides[0]);
    return 0;
}

int flp_torch_check_optional_vector(flp_torch_frame *frame, const char *name, const flp_torch_value *value, int64_t count, unsigned dtypes)
{
    return flp_torch_given(value) ? flp_torch_check_vector(frame, name, value, count, dtypes) : 0;
}

int64_t flp_torch_row_stride(const flp_torch_value *value)
{
    return value->sizes[0] > 1 ? value->strides[0] : value->sizes[1];
}

int flp_torch_alignment_of(const void *a, const void *b)
{
    uintptr_t both = (uintptr_t)a | (uintptr_t)b | FLP_TORCH_VECTOR_ALIGNMENT;

    return (int)(both & -both);
}

const char flp_torch_nothing[FLP_TORCH_VECTOR_ALIGNMENT] __attribute__((aligned(FLP_TORCH_VECTOR_ALIGNMENT)));

const void *flp_torch_some(const void *data)
{
    return data ? data : flp_torch_nothing;
}

/* ---- outputs */

int flp_torch_make(flp_torch_frame *frame, int output, flp_dtype dtype, int dim, const int64_t *sizes, const int64_t *strides, void **data)
{
    if (frame->allocate(frame, output, dtype, dim, sizes, strides, data) == 0)
        return 0;
    return frame->error[0] ? 1 : flp_torch_fail(frame, "fusedlogp: torch could not allocate an output");
}

int flp_torch_make_vector(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t count, bool wanted, void **data)
{
    int64_t size = wanted ? count : 0, stride = 1;

    if (flp_torch_make(frame, output, dtype, 1, &size, &stride, data))
        return 1;
    if (!wanted)
        *data = NULL;
    return 0;
}

int flp_torch_make_matrix(flp_torch_frame *frame, int output, flp_dtype dtype, int64_t rows, int64_t columns, bool transposed, bool wanted, void **data)
{
    int64_t sizes[2] = { rows, columns }, strides[2] = { transposed ? 1 : columns, transposed ? rows : 1 };

    if (!wanted)
        return flp_torch_make_vector(frame, output, dtype, 0, false, data);
    return flp_torch_make(frame, output, dtype, 2, sizes, strides, data);
}

int64_t flp_torch_workspace_size(const flp_plan *plan, int64_t rows)
{
    return flp_plan_workspace_bytes(plan, rows) + FLP_TORCH_WORKSPACE_ALIGNMENT;
}

void *flp_torch_aligned(void *data)
{
    return (void *)(((uintptr_t)data + FLP_TORCH_WORKSPACE_ALIGNMENT - 1) & -(uintptr_t)FLP_TORCH_WORKSPACE_ALIGNMENT);
}

int flp_torch_make_workspace(flp_torch_frame *frame, int output, const flp_plan *plan, int64_t rows, void **workspace, size_t *bytes)
{
    int64_t wanted = flp_plan_workspace_bytes(plan, rows), stride = 1, size = flp_torch_workspace_size(plan, rows);
    void *data;

    *workspace = NULL, *bytes = 0;
    if (wanted <= 0 && output < 0)
        return 0;
    if (flp_torch_make(frame, output, FLP_NONE, 1, &size, &stride, &data))
        return 1;
    *workspace = flp_torch_aligned(data);
    *bytes = (size_t)wanted;
    if (output >= 0 && frame->device < 0)
        ((unsigned char *)data)[size - 1] = (unsigned char)((unsigned char *)*workspace - (unsigned char *)data);
    return 0;
}

int flp_torch_find_plan(flp_torch_frame *frame, flp_torch_plans_operator kind, const void *problem, flp_plan **plan)
{
    return flp_torch_check_status(frame, flp_torch_plans_find(frame->device, kind, problem, plan));
}
