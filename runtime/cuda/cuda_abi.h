/* The few declarations of the CUDA driver API that the library uses, so that no toolkit is needed to build it.
 * tests/runtime/test_cuda_abi.c includes the real cuda.h, defines FLP_CUDA_TYPES_DECLARED and compares cuda.h with the lists below. */
#ifndef FLP_CUDA_CUDA_ABI_H
#define FLP_CUDA_CUDA_ABI_H
#include <stddef.h>
#include <stdint.h>

/* X(name, value) */
#define FLP_CUDA_CONSTANTS(X)                                                            \
    /* CUresult */                                                                       \
    X(CUDA_SUCCESS, 0)                                                                   \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                       \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                       \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                     \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                         \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                                     \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                   \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                                 \
    X(CUDA_ERROR_INVALID_PTX, 218)                                                       \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                                            \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                                           \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                                                    \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                         \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                              \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                     \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) /* the first of the capture errors, */ \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                           \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) /* and the last */                    \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                                      \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                                                \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                                         \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)                                   \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                                             \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                  \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                  \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                         \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                                             \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                \
    X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)                           \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                                          \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                          \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                        \
    X(CU_STREAM_NON_BLOCKING, 1)                                                         \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                  \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                                \
    X(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 7)                                                \
    X(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 9)                                               \
    X(CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                                  \
    X(CU_TENSOR_MAP_SWIZZLE_NONE, 0)                                                     \
    X(CU_TENSOR_MAP_SWIZZLE_32B, 1)                                                      \
    X(CU_TENSOR_MAP_SWIZZLE_64B, 2)                                                      \
    X(CU_TENSOR_MAP_SWIZZLE_128B, 3)                                                     \
    X(CU_TENSOR_MAP_L2_PROMOTION_NONE, 0)                                                \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 2)                                             \
    X(CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                                             \
    X(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)

/* Alignment of CUtensorMap in bytes: 64 in CUDA 12's cuda.h, 128 in CUDA 13's. */
#define FLP_CUDA_TENSOR_MAP_ALIGNMENT 128

#ifndef FLP_CUDA_TYPES_DECLARED
#define CU_STREAM_LEGACY ((CUstream)0x1)     /* the default stream that NULL stands for */
#define CU_STREAM_PER_THREAD ((CUstream)0x2) /* the default stream of each thread */
enum {
#define FLP_CUDA_ENUM(name, value) name = value,
    FLP_CUDA_CONSTANTS(FLP_CUDA_ENUM)
#undef FLP_CUDA_ENUM
};
/* Enumerations of the API, which its functions take as a C int. */
typedef int CUresult, CUdevice_attribute, CUfunction_attribute, CUstreamCaptureStatus;
typedef int CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct __attribute__((aligned(FLP_CUDA_TENSOR_MAP_ALIGNMENT))) {
    uint64_t opaque[16];
} CUtensorMap;
typedef struct {
    int id;
    char pad[4];
    union {
        char pad[64];
        struct {
            unsigned x, y, z;
        } clusterDim;
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;
typedef struct {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;
#endif

/* X(field, symbol, parameters): the functions that flp_driver has a field for. `symbol` is the name that the
 * shared object exports (for a versioned function the _v2 name, where cuda.h maps to that). */
#define FLP_DRIVER_FUNCTIONS(X)                                                                                                                             \
    X(init, cuInit, (unsigned flags))                                                                                                                       \
    X(driver_version, cuDriverGetVersion, (int *version))                                                                                                   \
    X(error_name, cuGetErrorName, (CUresult result, const char **name))                                                                                     \
    X(error_string, cuGetErrorString, (CUresult result, const char **text))                                                                                 \
    X(device_count, cuDeviceGetCount, (int *count))                                                                                                         \
    X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                                                                            \
    X(device_name, cuDeviceGetName, (char *name, int bytes, CUdevice device))                                                                               \
    X(device_attribute, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))                                                  \
    X(device_total_memory, cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                                                          \
    X(context_current, cuCtxGetCurrent, (CUcontext * context))                                                                                              \
    X(context_set_current, cuCtxSetCurrent, (CUcontext context))                                                                                            \
    X(context_device, cuCtxGetDevice, (CUdevice * device))                                                                                                  \
    X(context_id, cuCtxGetId, (CUcontext context, unsigned long long *id))                                                                                  \
    X(context_synchronize, cuCtxSynchronize, (void))                                                                                                        \
    X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                                                     \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                                                     \
    X(memory_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                                                                            \
    X(memory_allocate, cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes))                                                                                \
    X(memory_free, cuMemFree_v2, (CUdeviceptr pointer))                                                                                                     \
    X(memory_set, cuMemsetD8Async, (CUdeviceptr pointer, unsigned char value, size_t bytes, CUstream stream))                                               \
    X(copy_to_device, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                                              \
    X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                                      \
    X(module_load, cuModuleLoadData, (CUmodule * module, const void *image))                                                                                \
    X(module_unload, cuModuleUnload, (CUmodule module))                                                                                                     \
    X(module_function, cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                                                     \
    X(function_set_attribute, cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value))                                         \
    X(function_attribute, cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function))                                            \
    X(launch, cuLaunchKernel,                                                                                                                               \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, \
       CUstream stream, void **parameters, void **extra))                                                                                                   \
    X(stream_create, cuStreamCreate, (CUstream * stream, unsigned flags))                                                                                   \
    X(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                                                                                \
    X(stream_synchronize, cuStreamSynchronize, (CUstream stream))                                                                                           \
    X(stream_is_capturing, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status))                                                          \
    X(stream_id, cuStreamGetId, (CUstream stream, unsigned long long *id))                                                                                  \
    X(stream_wait_event, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                                               \
    X(event_create, cuEventCreate, (CUevent * event, unsigned flags))                                                                                       \
    X(event_destroy, cuEventDestroy_v2, (CUevent event))                                                                                                    \
    X(event_record, cuEventRecord, (CUevent event, CUstream stream))                                                                                        \
    X(event_synchronize, cuEventSynchronize, (CUevent event))                                                                                               \
    X(event_elapsed, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))
/* Functions that a driver may lack; their fields are then NULL. Without cuOccupancyMaxActiveClusters the number of resident clusters is estimated from the
 * number of resident blocks. Without cuLaunchKernelEx a launch does not overlap the kernel before it. Without cuTensorMapEncodeTiled kernels that take tensor
 * maps are not chosen. Without cuDeviceGetPCIBusId a device has no NVML handle. Without cuFuncLoad (driver 12.4) a lazily loaded kernel is loaded by its first
 * launch. */
#define FLP_DRIVER_OPTIONAL_FUNCTIONS(X)                                                                                                      \
    X(device_bus, cuDeviceGetPCIBusId, (char *bus, int bytes, CUdevice device))                                                               \
    X(function_load, cuFuncLoad, (CUfunction function))                                                                                       \
    X(active_clusters, cuOccupancyMaxActiveClusters, (int *clusters, CUfunction function, const CUlaunchConfig *config))                      \
    X(launch_extended, cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))                \
    X(tensor_map_encode_tiled, cuTensorMapEncodeTiled,                                                                                        \
      (CUtensorMap * map, CUtensorMapDataType dtype, uint32_t rank, void *address, const uint64_t *dimensions, const uint64_t *strides_bytes, \
       const uint32_t *box, const uint32_t *element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,                    \
       CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill out_of_bounds_fill))
#endif
