/* One call of an operator, whoever makes it: its inputs, its outputs, and what only torch can do (allocate). The two callers are torch_stable_abi.c and,
 * through ctypes, python/fusedlogp/_ctypes.py. */
#ifndef FLP_BINDING_TORCH_FRAME_H
#define FLP_BINDING_TORCH_FRAME_H
#include "fusedlogp.h"
#include <stdbool.h>

enum { FLP_TORCH_ERROR_BYTES = 1024, FLP_TORCH_OUTPUTS_MAX = 8, FLP_TORCH_INPUTS_MAX = 32 };

/* KEEP IN STEP: python/fusedlogp/_ctypes.py. */
typedef enum { FLP_TORCH_NONE, FLP_TORCH_TENSOR, FLP_TORCH_NUMBER, FLP_TORCH_NUMBERS } flp_torch_kind;

typedef struct {
    flp_torch_kind kind;
    flp_dtype dtype; /* of a tensor; FLP_NONE: one that the library does not know */
    int32_t device;  /* of a tensor: its GPU, or -1: the CPU */
    int32_t dim;
    const int64_t *sizes, *strides;
    void *data;
    int64_t integer; /* of a bool too */
    double number;   /* of an integer too */
    const double *numbers;
    int64_t count;
} flp_torch_value;

typedef struct flp_torch_frame flp_torch_frame;

struct flp_torch_frame {
    flp_torch_value inputs[FLP_TORCH_INPUTS_MAX]; /* in the schema's order */
    int32_t device;                               /* of the call: that of its tensors */
    void *stream;                                 /* CUstream */
    void *caller;
    /* Makes a new tensor on the call's device: the output of that number or, with -1, memory that lives until the call returns. Returns 0 if it could. */
    int (*allocate)(flp_torch_frame *frame, int output, flp_dtype dtype, int dim, const int64_t *sizes, const int64_t *strides, void **data);
    flp_status status; /* the library's, of a call that it refused */
    char error[FLP_TORCH_ERROR_BYTES];
};
#endif
