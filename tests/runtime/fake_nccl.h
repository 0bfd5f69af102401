/* A fake NCCL: this process is one rank of several, and what the other ranks contribute is made up from what this one does. */
#ifndef FLP_TESTS_FAKE_NCCL_H
#define FLP_TESTS_FAKE_NCCL_H
#include "cuda/nccl_abi.h"

enum { FAKE_NCCL_CALLS = 16 };

typedef struct {
    const char *function;
    const void *from;
    void *to;
    size_t count;
    ncclComm_t communicator;
    CUstream stream;
    int launches; /* the fake driver's launches before this call */
} fake_nccl_call;

typedef struct {
    int rank, ranks;
    int failing_call;         /* the collective of this number, from 0 on, fails; -1: none */
    ncclResult_t async_error; /* of the communicator */
    int registered;           /* how many pieces of memory are registered */
    int refuses_memory;       /* 1: ncclCommRegister fails */
    int calls;                /* collectives since the reset; the first FAKE_NCCL_CALLS are kept */
    fake_nccl_call call[FAKE_NCCL_CALLS];
    /* Replaces, in slot, a copy of this rank's contribution to an all-gather by that of rank `rank`. NULL: all ranks contribute the same. */
    void (*bring)(int rank, void *slot, size_t bytes);
} fake_nccl_state;

extern fake_nccl_state fake_nccl;

void fake_nccl_reset(void); /* rank 0 of 2 */
void *fake_nccl_symbol(const char *name);
/* The communicator. */
ncclComm_t fake_nccl_communicator(void);
#endif
