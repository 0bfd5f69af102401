/* The few declarations of NCCL 2, with the values of its nccl.h. */
#ifndef FLP_CUDA_NCCL_ABI_H
#define FLP_CUDA_NCCL_ABI_H
#include <stddef.h>

#include "cuda/cuda_abi.h"

enum { NCCL_SUCCESS = 0, NCCL_SUM = 0, NCCL_FLOAT32 = 7 };
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t; /* enumerations, which its functions take as a C int */
typedef struct ncclComm *ncclComm_t;

/* X(field, symbol, result, parameters): the table that cuda/nccl.c fills. */
#define FLP_NCCL_FUNCTIONS(X)                                                                                                                             \
    X(error_string, ncclGetErrorString, const char *, (ncclResult_t result))                                                                              \
    X(comm_count, ncclCommCount, ncclResult_t, (const ncclComm_t communicator, int *count))                                                               \
    X(comm_user_rank, ncclCommUserRank, ncclResult_t, (const ncclComm_t communicator, int *rank))                                                         \
    X(comm_async_error, ncclCommGetAsyncError, ncclResult_t, (ncclComm_t communicator, ncclResult_t * error))                                             \
    X(all_gather, ncclAllGather, ncclResult_t, (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator, CUstream stream)) \
    X(all_reduce, ncclAllReduce, ncclResult_t,                                                                                                            \
      (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation, ncclComm_t communicator, CUstream stream))
/* Functions that an NCCL older than 2.19 lacks; their fields are then NULL, and no memory is registered. */
#define FLP_NCCL_OPTIONAL_FUNCTIONS(X)                                                                                           \
    X(comm_register, ncclCommRegister, ncclResult_t, (const ncclComm_t communicator, void *memory, size_t bytes, void **handle)) \
    X(comm_deregister, ncclCommDeregister, ncclResult_t, (const ncclComm_t communicator, void *handle))
#endif
