/* NCCL by dlopen. It is the NCCL that the process has loaded already, because the caller's communicator belongs to that one. */
#ifndef FLP_CUDA_NCCL_H
#define FLP_CUDA_NCCL_H
#include "cuda/nccl_abi.h"
#include "fusedlogp.h"

typedef struct {
#define FLP_NCCL_FIELD(field, symbol, result, parameters) result(*field) parameters;
    FLP_NCCL_FUNCTIONS(FLP_NCCL_FIELD)
    FLP_NCCL_OPTIONAL_FUNCTIONS(FLP_NCCL_FIELD)
#undef FLP_NCCL_FIELD
} flp_nccl;

/* FLP_NCCL_FAILED: there is no NCCL, or it lacks a function. */
flp_status flp_nccl_get(const flp_nccl **nccl);

/* FLP_OK, or FLP_NCCL_FAILED with "<what>: NCCL's text". */
flp_status flp_nccl_check(const flp_nccl *nccl, ncclResult_t result, const char *what);
#endif
