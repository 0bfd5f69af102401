/* Registers the operators through torch's stable C ABI. The declarations are those of torch/csrc/inductor/aoti_torch/c/shim.h and torch/csrc/stable/c/shim.h
 * (torch 2.13), which promise to keep them; torch/csrc/stable/stableivalue_conversions.h says what a StableIValue holds of each type. The functions are
 * looked up in the libtorch that is loaded: nothing of torch is needed to build this. */
#include "torch_stable_abi.h"
#include "torch_operators.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t stable_value; /* the bits of a number, a handle, or a pointer to a stable_value for what is optional */
typedef struct AtenTensorOpaque *tensor_handle;
typedef struct StableListOpaque *list_handle;
typedef struct TorchLibraryOpaque *library_handle;
typedef void kernel_function(stable_value *stack, uint64_t inputs, uint64_t outputs);
typedef int32_t torch_error;

/* Behaviour as of torch 2.10, the first whose boxed kernels take lists. */
static const uint64_t abi_version = (uint64_t)2 << 56 | (uint64_t)10 << 48;

#define FUNCTIONS(X)                                                                                                                                \
    X(torch_error, aoti_torch_library_init_def, (const char *name, const char *file, uint32_t line, library_handle *library))                       \
    X(torch_error, aoti_torch_library_init_impl, (const char *name, const char *key, const char *file, uint32_t line, library_handle *library))     \
    X(torch_error, aoti_torch_library_def, (library_handle library, const char *schema))                                                            \
    X(torch_error, torch_library_impl, (library_handle library, const char *name, kernel_function *kernel, uint64_t version))                       \
    X(torch_error, aoti_torch_get_data_ptr, (tensor_handle tensor, void **data))                                                                    \
    X(torch_error, aoti_torch_get_dim, (tensor_handle tensor, int64_t * dim))                                                                       \
    X(torch_error, aoti_torch_get_sizes, (tensor_handle tensor, int64_t * *sizes))                                                                  \
    X(torch_error, aoti_torch_get_strides, (tensor_handle tensor, int64_t * *strides))                                                              \
    X(torch_error, aoti_torch_get_dtype, (tensor_handle tensor, int32_t * dtype))                                                                   \
    X(torch_error, aoti_torch_get_device_type, (tensor_handle tensor, int32_t * type))                                                              \
    X(torch_error, aoti_torch_get_device_index, (tensor_handle tensor, int32_t * index))                                                            \
    X(torch_error, aoti_torch_delete_tensor_object, (tensor_handle tensor))                                                                         \
    X(torch_error, aoti_torch_empty_strided,                                                                                                        \
      (int64_t dim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device_type, int32_t device_index, tensor_handle *tensor)) \
    X(int32_t, aoti_torch_device_type_cpu, (void))                                                                                                  \
    X(int32_t, aoti_torch_device_type_cuda, (void))                                                                                                 \
    X(int32_t, aoti_torch_dtype_bfloat16, (void))                                                                                                   \
    X(int32_t, aoti_torch_dtype_float16, (void))                                                                                                    \
    X(int32_t, aoti_torch_dtype_float32, (void))                                                                                                    \
    X(int32_t, aoti_torch_dtype_int32, (void))                                                                                                      \
    X(int32_t, aoti_torch_dtype_int64, (void))                                                                                                      \
    X(int32_t, aoti_torch_dtype_uint8, (void))                                                                                                      \
    X(torch_error, torch_list_size, (list_handle list, size_t * size))                                                                              \
    X(torch_error, torch_list_get_item, (list_handle list, size_t index, stable_value * item))                                                      \
    X(torch_error, torch_delete_list, (list_handle list))                                                                                           \
    X(void, aoti_torch_check, (bool condition, const char *function, const char *file, uint32_t line, const char *message))

static struct {
#define MEMBER(type, name, parameters) type(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
    torch_error (*get_current_cuda_stream)(int32_t device, void **stream); /* of libtorch_cuda.so */
    void (*delete_optional)(stable_value *value);
    void (*throw_out_of_range)(const char *message); /* of libstdc++; NULL: this torch has another */
    int32_t cpu, cuda;                               /* device types */
    int32_t dtypes[FLP_I64 + 1], bytes;              /* torch's dtypes by flp_dtype; bytes: for FLP_NONE */
    library_handle registered, cpu_kernels, cuda_kernels;
} torch;

enum { NUMBERS_MAX = 8 };

/* What a call holds until it returns. */
typedef struct {
    flp_torch_frame frame;
    tensor_handle tensors[FLP_TORCH_INPUTS_MAX], outputs[FLP_TORCH_OUTPUTS_MAX], workspace;
    double numbers[NUMBERS_MAX];
    int tensor_count;
} call;

/* ---- inputs: a kernel owns what the stack holds */

static flp_dtype dtype_of(int32_t dtype)
{
    for (int i = FLP_BF16; i <= FLP_I64; i++)
        if (torch.dtypes[i] == dtype)
            return (flp_dtype)i;
    return FLP_NONE;
}

static int unbox_tensor(call *c, tensor_handle tensor, flp_torch_value *value)
{
    int64_t dim = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = 0, type = 0, index = 0;
    torch_error failed = torch.aoti_torch_get_dim(tensor, &dim);

    c->tensors[c->tensor_count++] = tensor;
    failed |= torch.aoti_torch_get_sizes(tensor, &sizes) | torch.aoti_torch_get_strides(tensor, &strides) | torch.aoti_torch_get_dtype(tensor, &dtype) |
              torch.aoti_torch_get_device_type(tensor, &type) | torch.aoti_torch_get_device_index(tensor, &index) |
              torch.aoti_torch_get_data_ptr(tensor, &value->data);
    value->kind = FLP_TORCH_TENSOR;
    value->dtype = dtype_of(dtype), value->device = type == torch.cuda ? index : -1;
    value->dim = (int32_t)dim, value->sizes = sizes, value->strides = strides;
    if (c->tensor_count == 1)
        c->frame.device = value->device;
    return failed;
}

static int unbox_numbers(call *c, list_handle list, flp_torch_value *value)
{
    size_t size = 0;
    torch_error failed = torch.torch_list_size(list, &size);
    stable_value item;

    for (size_t i = 0; i < size && i < NUMBERS_MAX && !failed; i++) {
        failed = torch.torch_list_get_item(list, i, &item);
        memcpy(&c->numbers[i], &item, sizeof(item));
    }
    value->kind = FLP_TORCH_NUMBERS, value->numbers = c->numbers, value->count = (int64_t)size;
    return failed | torch.torch_delete_list(list);
}

/* Reads one input from the stack. type: in the schema, such as "Tensor?". */
static int unbox(call *c, const char *type, stable_value bits, flp_torch_value *value)
{
    const char *end = type + strcspn(type, " ");
    bool optional = end[-1] == '?';
    stable_value inner = bits;

    *value = (flp_torch_value){ .kind = FLP_TORCH_NONE };
    if (optional && !bits)
        return 0;
    if (optional) {
        memcpy(&inner, (void *)(uintptr_t)bits, sizeof(inner));
        torch.delete_optional((stable_value *)(uintptr_t)bits);
    }
    if (strncmp(type, "Tensor", 6) == 0)
        return unbox_tensor(c, (tensor_handle)(uintptr_t)inner, value);
    if (strncmp(type, "float[]", 7) == 0)
        return unbox_numbers(c, (list_handle)(uintptr_t)inner, value);
    value->kind = FLP_TORCH_NUMBER;
    if (strncmp(type, "float", 5) == 0) {
        memcpy(&value->number, &inner, sizeof(inner));
    } else {
        value->integer = strncmp(type, "bool", 4) == 0 ? (inner & 0xff) != 0 : (int64_t)inner;
        value->number = (double)value->integer;
    }
    return 0;
}

static int unbox_all(call *c, const flp_torch_operator *op, const stable_value *stack)
{
    const char *at = strchr(op->schema, '(') + 1;
    int failed = 0;

    for (int i = 0; i < op->inputs; i++) {
        failed |= unbox(c, at, stack[i], &c->frame.inputs[i]);
        if (i + 1 < op->inputs)
            at = strstr(at, ", ") + 2;
    }
    return failed;
}

/* ---- outputs */

static int allocate(flp_torch_frame *frame, int output, flp_dtype dtype, int dim, const int64_t *sizes, const int64_t *strides, void **data)
{
    call *c = frame->caller;
    tensor_handle *tensor = output < 0 ? &c->workspace : &c->outputs[output];
    int32_t type = frame->device < 0 ? torch.cpu : torch.cuda, index = frame->device < 0 ? 0 : frame->device;

    return torch.aoti_torch_empty_strided(dim, sizes, strides, dtype == FLP_NONE ? torch.bytes : torch.dtypes[dtype], type, index, tensor) ||
           torch.aoti_torch_get_data_ptr(*tensor, data);
}

static void release(tensor_handle *tensors, int count)
{
    for (int i = 0; i < count; i++)
        if (tensors[i])
            torch.aoti_torch_delete_tensor_object(tensors[i]);
}

typedef enum { NOTHING_WRONG, RUNTIME_ERROR, INDEX_ERROR } outcome;

/* The outputs take the inputs' places; on failure the stack is as it was. */
static outcome run(int number, stable_value *stack, char *error)
{
    const flp_torch_operator *op = flp_torch_operators[number];
    call c;
    int failed;

    memset(&c, 0, sizeof(c));
    c.frame.device = -1, c.frame.caller = &c, c.frame.allocate = allocate;
    failed = unbox_all(&c, op, stack);
    if (!failed && c.frame.device >= 0)
        failed = !torch.get_current_cuda_stream || torch.get_current_cuda_stream(c.frame.device, &c.frame.stream);
    if (failed)
        snprintf(c.frame.error, sizeof(c.frame.error), "fusedlogp: torch did not say what the arguments are");
    else
        failed = flp_torch_run(number, &c.frame);
    release(c.tensors, c.tensor_count);
    release(&c.workspace, 1);
    if (failed) {
        release(c.outputs, op->outputs);
        memcpy(error, c.frame.error, FLP_TORCH_ERROR_BYTES);
        return c.frame.status == FLP_BAD_TARGET ? INDEX_ERROR : RUNTIME_ERROR;
    }
    for (int i = 0; i < op->outputs; i++)
        stack[i] = (stable_value)(uintptr_t)c.outputs[i];
    return NOTHING_WRONG;
}

static void run_or_throw(int number, stable_value *stack)
{
    char error[FLP_TORCH_ERROR_BYTES];
    outcome found = run(number, stack, error);

    /* Both functions throw through these frames, which hold nothing to be released any more. Python sees std::out_of_range as an IndexError, in compiled
     * graphs too. */
    if (found == INDEX_ERROR && torch.throw_out_of_range)
        torch.throw_out_of_range(error);
    if (found != NOTHING_WRONG)
        torch.aoti_torch_check(false, "", "fusedlogp", 0, error);
}

/* ---- registration: torch passes a kernel nothing but the stack, so each operator has a function of its own */

#define KERNEL(number)                                                                  \
    static void kernel_##number(stable_value *stack, uint64_t inputs, uint64_t outputs) \
    {                                                                                   \
        (void)inputs, (void)outputs;                                                    \
        run_or_throw(number, stack);                                                    \
    }
KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)
KERNEL(5)
KERNEL(6)
KERNEL(7)
KERNEL(8)
KERNEL(9)
KERNEL(10)
KERNEL(11)
KERNEL(12)
KERNEL(13)
KERNEL(14)
KERNEL(15)
KERNEL(16)
#undef KERNEL
static kernel_function *const kernels[FLP_TORCH_OPERATORS] = { kernel_0, kernel_1,  kernel_2,  kernel_3,  kernel_4,  kernel_5,  kernel_6,  kernel_7, kernel_8,
                                                               kernel_9, kernel_10, kernel_11, kernel_12, kernel_13, kernel_14, kernel_15, kernel_16 };

static const char *load(void *cpu, void *cuda)
{
#define LOAD(type, name, parameters)                  \
    if (!(*(void **)&torch.name = dlsym(cpu, #name))) \
        return #name;
    FUNCTIONS(LOAD)
#undef LOAD
    /* torch 2.13 has a function for this; before, it is C++'s delete. */
    if (!(*(void **)&torch.delete_optional = dlsym(cpu, "torch_delete_stable_ivalue")) && !(*(void **)&torch.delete_optional = dlsym(cpu, "_ZdlPv")))
        return "torch_delete_stable_ivalue";
    *(void **)&torch.throw_out_of_range = dlsym(cpu, "_ZSt20__throw_out_of_rangePKc");
    if (cuda && !(*(void **)&torch.get_current_cuda_stream = dlsym(cuda, "aoti_torch_get_current_cuda_stream")))
        return "aoti_torch_get_current_cuda_stream";
    torch.cpu = torch.aoti_torch_device_type_cpu(), torch.cuda = torch.aoti_torch_device_type_cuda();
    torch.dtypes[FLP_NONE] = -1, torch.dtypes[FLP_BF16] = torch.aoti_torch_dtype_bfloat16(), torch.dtypes[FLP_F16] = torch.aoti_torch_dtype_float16();
    torch.dtypes[FLP_F32] = torch.aoti_torch_dtype_float32(), torch.dtypes[FLP_I32] = torch.aoti_torch_dtype_int32();
    torch.dtypes[FLP_I64] = torch.aoti_torch_dtype_int64(), torch.bytes = torch.aoti_torch_dtype_uint8();
    return NULL;
}

static torch_error implement(const char *key, library_handle *library)
{
    torch_error failed = torch.aoti_torch_library_init_impl("fusedlogp", key, __FILE__, __LINE__, library);
    char name[64];

    for (int i = 0; i < FLP_TORCH_OPERATORS && !failed; i++) {
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(flp_torch_operators[i]->schema, "("), flp_torch_operators[i]->schema);
        failed = torch.torch_library_impl(*library, name, kernels[i], abi_version);
    }
    return failed;
}

int flp_torch_register(const char *cpu, const char *cuda, char *text, size_t bytes)
{
    void *cpu_library = dlopen(cpu, RTLD_NOW | RTLD_NOLOAD), *cuda_library = cuda ? dlopen(cuda, RTLD_NOW | RTLD_NOLOAD) : NULL;
    const char *missing = cpu_library ? load(cpu_library, cuda_library) : cpu;
    torch_error failed;

    if (missing)
        return snprintf(text, bytes, "this torch has no %s", missing), 1;
    failed = torch.aoti_torch_library_init_def("fusedlogp", __FILE__, __LINE__, &torch.registered);
    for (int i = 0; i < FLP_TORCH_OPERATORS && !failed; i++)
        failed = torch.aoti_torch_library_def(torch.registered, flp_torch_operators[i]->schema);
    if (!failed)
        failed = implement("CPU", &torch.cpu_kernels) || implement("CUDA", &torch.cuda_kernels);
    if (failed)
        snprintf(text, bytes, "torch refused the operators");
    return failed;
}
