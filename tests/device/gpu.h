/* One GPU for the device tests and the benchmark: its primary context, memory, and the driver functions that only they use. */
#ifndef FLP_TESTS_DEVICE_GPU_H
#define FLP_TESTS_DEVICE_GPU_H
#include "cuda/driver.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

/* X(field, symbol, parameters), as FLP_DRIVER_FUNCTIONS. */
#define FLP_GPU_FUNCTIONS(X)                                                                                         \
    X(capture_begin, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                           \
    X(capture_end, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                           \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags)) \
    X(graph_launch, cuGraphLaunch, (CUgraphExec exec, CUstream stream))                                              \
    X(graph_exec_destroy, cuGraphExecDestroy, (CUgraphExec exec))                                                    \
    X(graph_destroy, cuGraphDestroy, (CUgraph graph))                                                                \
    X(context_create, cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device))                        \
    X(context_destroy, cuCtxDestroy_v2, (CUcontext context))                                                         \
    X(copy, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))

enum { FLP_GPU_ALLOCATIONS = 64 };

typedef struct {
    const flp_driver *driver;
    CUdevice device;
    CUcontext context; /* the primary one, current in the thread that opened it */
    flp_device_facts facts;
#define FLP_GPU_FIELD(field, symbol, parameters) CUresult(*field) parameters;
    FLP_GPU_FUNCTIONS(FLP_GPU_FIELD)
#undef FLP_GPU_FIELD
    CUdeviceptr live[FLP_GPU_ALLOCATIONS];
    int live_count;
} flp_gpu;

/* Device 0. FLP_NO_DRIVER: there is none. */
flp_status flp_gpu_open(flp_gpu *gpu);
void flp_gpu_close(flp_gpu *gpu);

/* FLP_OK or "what: CUDA_ERROR_NAME (text)". */
flp_status flp_gpu_check(const flp_gpu *gpu, CUresult result, const char *what);

/* Freed by flp_gpu_free_all, after the device is idle; bytes 0 is allowed. */
flp_status flp_gpu_allocate(flp_gpu *gpu, size_t bytes, CUdeviceptr *pointer);
void flp_gpu_free_all(flp_gpu *gpu);

/* These wait until they are done. */
flp_status flp_gpu_upload(const flp_gpu *gpu, CUdeviceptr to, const void *from, size_t bytes);
flp_status flp_gpu_download(const flp_gpu *gpu, void *to, CUdeviceptr from, size_t bytes);
flp_status flp_gpu_set(const flp_gpu *gpu, CUdeviceptr at, unsigned char value, size_t bytes);
flp_status flp_gpu_synchronize(const flp_gpu *gpu);

/* Allocates and uploads. */
flp_status flp_gpu_copy_in(flp_gpu *gpu, const void *from, size_t bytes, CUdeviceptr *pointer);

/* A device address as the library's arguments take it. */
void *flp_gpu_pointer(CUdeviceptr address);
#endif
