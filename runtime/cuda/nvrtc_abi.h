/* The few declarations of NVRTC that the library uses. tests/runtime/test_cuda_abi.c includes the real nvrtc.h, defines
 * FLP_NVRTC_TYPES_DECLARED and compares nvrtc.h with the lists below. */
#ifndef FLP_CUDA_NVRTC_ABI_H
#define FLP_CUDA_NVRTC_ABI_H
#include <stddef.h>

/* X(name, value) */
#define FLP_NVRTC_CONSTANTS(X)      \
    X(NVRTC_SUCCESS, 0)             \
    X(NVRTC_ERROR_OUT_OF_MEMORY, 1) \
    X(NVRTC_ERROR_COMPILATION, 6)   \
    X(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE, 7)

#ifndef FLP_NVRTC_TYPES_DECLARED
enum {
#define FLP_NVRTC_ENUM(name, value) name = value,
    FLP_NVRTC_CONSTANTS(FLP_NVRTC_ENUM)
#undef FLP_NVRTC_ENUM
};
typedef int nvrtcResult; /* an enumeration, which its functions take as a C int */
typedef struct _nvrtcProgram *nvrtcProgram;
#endif

/* X(field, symbol, result type, parameters): the table that cuda/nvrtc.c fills. CUDA 11.2 and later have all of these functions. */
#define FLP_NVRTC_FUNCTIONS(X)                                                                                                                        \
    X(version, nvrtcVersion, nvrtcResult, (int *major, int *minor))                                                                                   \
    X(arch_count, nvrtcGetNumSupportedArchs, nvrtcResult, (int *count))                                                                               \
    X(archs, nvrtcGetSupportedArchs, nvrtcResult, (int *archs))                                                                                       \
    X(error_string, nvrtcGetErrorString, const char *, (nvrtcResult result))                                                                          \
    X(create, nvrtcCreateProgram, nvrtcResult,                                                                                                        \
      (nvrtcProgram * program, const char *source, const char *name, int header_count, const char *const *headers, const char *const *include_names)) \
    X(destroy, nvrtcDestroyProgram, nvrtcResult, (nvrtcProgram * program))                                                                            \
    X(compile, nvrtcCompileProgram, nvrtcResult, (nvrtcProgram program, int option_count, const char *const *options))                                \
    X(ptx_size, nvrtcGetPTXSize, nvrtcResult, (nvrtcProgram program, size_t * bytes))                                                                 \
    X(ptx, nvrtcGetPTX, nvrtcResult, (nvrtcProgram program, char *ptx))                                                                               \
    X(cubin_size, nvrtcGetCUBINSize, nvrtcResult, (nvrtcProgram program, size_t * bytes))                                                             \
    X(cubin, nvrtcGetCUBIN, nvrtcResult, (nvrtcProgram program, char *cubin))                                                                         \
    X(log_size, nvrtcGetProgramLogSize, nvrtcResult, (nvrtcProgram program, size_t * bytes))                                                          \
    X(log, nvrtcGetProgramLog, nvrtcResult, (nvrtcProgram program, char *log))
#endif
