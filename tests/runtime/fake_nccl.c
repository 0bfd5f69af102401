/* An NCCL of one process: collectives are noted, and done at once. */
#include "fake_nccl.h"

#include <string.h>

#include "fake_driver.h"

fake_nccl_state fake_nccl;
static int communicator_here;

void fake_nccl_reset(void)
{
    fake_nccl = (fake_nccl_state){ .ranks = 2, .failing_call = -1 };
}

ncclComm_t fake_nccl_communicator(void)
{
    return (ncclComm_t)(void *)&communicator_here;
}

static const char *fake_error_string(ncclResult_t result)
{
    return result == NCCL_SUCCESS ? "no error" : "remote process exited";
}

static ncclResult_t fake_comm_count(const ncclComm_t communicator, int *count)
{
    *count = fake_nccl.ranks;
    return communicator == fake_nccl_communicator() ? NCCL_SUCCESS : 4;
}

static ncclResult_t fake_comm_user_rank(const ncclComm_t communicator, int *rank)
{
    *rank = fake_nccl.rank;
    return communicator == fake_nccl_communicator() ? NCCL_SUCCESS : 4;
}

static ncclResult_t fake_comm_async_error(ncclComm_t communicator, ncclResult_t *error)
{
    (void)communicator;
    *error = fake_nccl.async_error;
    return NCCL_SUCCESS;
}

static ncclResult_t note(const fake_nccl_call *call)
{
    const int number = fake_nccl.calls++;

    if (number < FAKE_NCCL_CALLS) {
        fake_nccl.call[number] = *call;
        fake_nccl.call[number].launches = fake_driver.launches;
    }
    fake_driver_put((fake_work){ FAKE_EXCHANGED, call->stream, NULL, NULL });
    return number == fake_nccl.failing_call ? 6 : NCCL_SUCCESS;
}

static ncclResult_t fake_all_gather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator, CUstream stream)
{
    const size_t bytes = count * sizeof(float);
    const fake_nccl_call call = { "ncclAllGather", from, to, count, communicator, stream, 0 };

    if (type != NCCL_FLOAT32)
        return 4;
    for (int rank = 0; rank < fake_nccl.ranks; rank++) {
        char *slot = (char *)to + (size_t)rank * bytes;
        if (slot != from)
            memcpy(slot, from, bytes);
        if (rank != fake_nccl.rank && fake_nccl.bring)
            fake_nccl.bring(rank, slot, bytes);
    }
    return note(&call);
}

static ncclResult_t fake_all_reduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t operation, ncclComm_t communicator,
                                    CUstream stream)
{
    const fake_nccl_call call = { "ncclAllReduce", from, to, count, communicator, stream, 0 };

    return type == NCCL_FLOAT32 && operation == NCCL_SUM ? note(&call) : 4;
}

static ncclResult_t fake_comm_register(const ncclComm_t communicator, void *memory, size_t bytes, void **handle)
{
    if (communicator != fake_nccl_communicator() || bytes == 0 || fake_nccl.refuses_memory)
        return 4;
    *handle = memory;
    fake_nccl.registered++;
    return NCCL_SUCCESS;
}

static ncclResult_t fake_comm_deregister(const ncclComm_t communicator, void *handle)
{
    if (communicator != fake_nccl_communicator() || !handle)
        return 4;
    fake_nccl.registered--;
    return NCCL_SUCCESS;
}

void *fake_nccl_symbol(const char *name)
{
#define FAKE_SYMBOL(field, symbol, result, parameters) \
    if (strcmp(name, #symbol) == 0)                    \
        return (void *)fake_##field;
    FLP_NCCL_FUNCTIONS(FAKE_SYMBOL)
    FLP_NCCL_OPTIONAL_FUNCTIONS(FAKE_SYMBOL)
#undef FAKE_SYMBOL
    return NULL;
}
