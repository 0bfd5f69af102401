/* Our declarations of the driver, of NVRTC and of NVML against the real headers, where they are installed: constants and every parameter list. */
#ifdef HAVE_CUDA_H
#include <cuda.h>
#define FLP_CUDA_TYPES_DECLARED
#endif
#ifdef HAVE_NVRTC_H
#include <nvrtc.h>
#define FLP_NVRTC_TYPES_DECLARED
#endif
#ifdef HAVE_NVML_H
#include <nvml.h>
#define FLP_NVML_TYPES_DECLARED
#endif
#include "cuda/cuda_abi.h"
#include "cuda/nvml_abi.h"
#include "cuda/nvrtc_abi.h"
#include "assertions.h"

#define SAME_FUNCTION(type, symbol, parameters) _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol), type(*) parameters), #symbol);
#define SAME_CONSTANT(name, value) _Static_assert((int)(name) == (value), #name);

#ifdef HAVE_CUDA_H
#define SAME_DRIVER_FUNCTION(field, symbol, parameters) SAME_FUNCTION(CUresult, symbol, parameters)
FLP_DRIVER_FUNCTIONS(SAME_DRIVER_FUNCTION)
FLP_DRIVER_OPTIONAL_FUNCTIONS(SAME_DRIVER_FUNCTION)
FLP_CUDA_CONSTANTS(SAME_CONSTANT)
_Static_assert(sizeof(CUresult) == sizeof(int), "an enumeration is passed as an int");
_Static_assert(sizeof(CUtensorMap) == 128 && _Alignof(CUtensorMap) <= FLP_CUDA_TENSOR_MAP_ALIGNMENT, "CUtensorMap");
/* The layout that runtime/operators/linear/linear_logp.c asserts of our declarations. */
_Static_assert(sizeof(CUlaunchAttribute) == 72 && offsetof(CUlaunchAttribute, value) == 8, "CUlaunchAttribute");
_Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, hStream) == 32 && offsetof(CUlaunchConfig, attrs) == 40 &&
                   offsetof(CUlaunchConfig, numAttrs) == 48,
               "CUlaunchConfig");
_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(CUdevice) == 4, "CUdeviceptr, CUdevice");
#endif
#ifdef HAVE_NVRTC_H
#define SAME_NVRTC_FUNCTION(field, symbol, result, parameters) SAME_FUNCTION(result, symbol, parameters)
FLP_NVRTC_FUNCTIONS(SAME_NVRTC_FUNCTION)
FLP_NVRTC_CONSTANTS(SAME_CONSTANT)
_Static_assert(sizeof(nvrtcResult) == sizeof(int), "an enumeration is passed as an int");
#endif
#ifdef HAVE_NVML_H
#define SAME_NVML_FUNCTION(field, symbol, parameters) SAME_FUNCTION(nvmlReturn_t, symbol, parameters)
FLP_NVML_FUNCTIONS(SAME_NVML_FUNCTION)
FLP_NVML_CONSTANTS(SAME_CONSTANT)
_Static_assert(sizeof(nvmlReturn_t) == sizeof(int), "an enumeration is passed as an int");
#endif

/* The comparison is made by the compiler; these say whether it was made. */
static void the_driver_declarations_are_those_of_cuda_h(void **state)
{
    (void)state;
#ifndef HAVE_CUDA_H
    skip();
#endif
}

static void the_nvrtc_declarations_are_those_of_nvrtc_h(void **state)
{
    (void)state;
#ifndef HAVE_NVRTC_H
    skip();
#endif
}

static void the_nvml_declarations_are_those_of_nvml_h(void **state)
{
    (void)state;
#ifndef HAVE_NVML_H
    skip();
#endif
}

/* Holds without any header: the kernels take tensor maps by value. */
static void a_tensor_map_has_the_size_and_alignment_that_tma_wants(void **state)
{
    (void)state;
    assert_int_equal(128, sizeof(CUtensorMap));
    assert_true(_Alignof(CUtensorMap) >= 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_declarations_are_those_of_cuda_h),
        cmocka_unit_test(the_nvrtc_declarations_are_those_of_nvrtc_h),
        cmocka_unit_test(the_nvml_declarations_are_those_of_nvml_h),
        cmocka_unit_test(a_tensor_map_has_the_size_and_alignment_that_tma_wants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
