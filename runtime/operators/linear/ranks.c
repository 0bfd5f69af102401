/* The ranks of an NCCL communicator, each with a shard of the vocabulary: what they have to agree on, and what they exchange.
 *
 * Before the first exchange of a kind of call, the ranks compare the terms of their calls, in an exchange of a fixed size. If they disagree, or one rank's part
 * has failed, all of them report it, and none waits for data that never comes. N is compared then, too. Later calls do not compare it: their first exchange has
 * N's size already, and the result of an exchange in which the ranks' sizes differ is undefined. */
#include "operators/linear/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/arguments.h"
#include "core/context.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/nccl.h"
#include "jit/generator.h"

/* What ranks have to agree on, and where each one's shard lies. */
typedef flp_rank_terms terms;

enum { FAILED = 1, MOST_AGREED = 64 };

/* Memory of the caller's that is registered with the communicator. */
typedef struct registration {
    struct registration *next;
    void *memory, *handle;
} registration;

struct flp_ranks {
    flp_context *context;
    const flp_nccl *nccl;
    ncclComm_t communicator;
    int rank, ranks;
    flp_device device;     /* the device and the CUDA context of the terms' memory, the stream and the events */
    CUdeviceptr on_device; /* [ranks] terms */
    terms *on_host;
    CUstream beside; /* on which grad_hidden is summed up */
    CUevent grad_hidden, summed;
    registration *registered;
    terms agreed[MOST_AGREED]; /* [agreed_count], with rows 0: a call with any rows matches them */
    int agreed_count;
    char token_loss[FLP_TOKEN_LOSS_NAME_BYTES + 1]; /* the last one that a digest was requested of */
    uint32_t token_loss_digest;
};

/* ---- the parts of flp_ranks ---- */

static flp_status find_ranks(flp_ranks *ranks)
{
    flp_status status = flp_nccl_get(&ranks->nccl);

    if (status == FLP_OK)
        status = flp_nccl_check(ranks->nccl, ranks->nccl->comm_count(ranks->communicator, &ranks->ranks), "ncclCommCount");
    if (status == FLP_OK)
        status = flp_nccl_check(ranks->nccl, ranks->nccl->comm_user_rank(ranks->communicator, &ranks->rank), "ncclCommUserRank");
    if (status == FLP_OK && (ranks->ranks < 1 || ranks->rank < 0 || ranks->rank >= ranks->ranks))
        status = flp_status_fail(FLP_NCCL_FAILED, "the communicator says rank %d of %d", ranks->rank, ranks->ranks);
    return status;
}

static flp_status allocate(flp_ranks *ranks)
{
    const size_t bytes = (size_t)ranks->ranks * sizeof(terms);
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    ranks->on_host = malloc(bytes);
    if (!ranks->on_host)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what %d ranks agree on", ranks->ranks);
    if (status == FLP_OK)
        status = flp_device_current(&ranks->device);
    return status == FLP_OK ? flp_driver_check(driver, driver->memory_allocate(&ranks->on_device, bytes), "cuMemAlloc") : status;
}

static flp_status make_stream(flp_ranks *ranks)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->stream_create(&ranks->beside, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->event_create(&ranks->grad_hidden, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return status == FLP_OK ? flp_driver_check(driver, driver->event_create(&ranks->summed, CU_EVENT_DISABLE_TIMING), "cuEventCreate") : status;
}

/* ---- registered memory ---- */

static registration **find_registered(flp_ranks *ranks, const void *memory)
{
    registration **at = &ranks->registered;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    return at;
}

/* Forgets the registration whatever NCCL returns, because the caller is going to free the memory. */
static flp_status take_back(const flp_ranks *ranks, registration **at)
{
    registration *old = *at;
    const ncclResult_t result = ranks->nccl->comm_deregister(ranks->communicator, old->handle);

    *at = old->next;
    free(old);
    return flp_nccl_check(ranks->nccl, result, "ncclCommDeregister");
}

flp_status flp_ranks_register(flp_ranks *ranks, void *memory, size_t bytes)
{
    registration *made;
    flp_status status;

    if (!ranks || !memory || bytes == 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %s", !ranks ? "ranks" : !memory ? "memory" : "bytes", ranks && memory ? "0" : "NULL");
    if (*find_registered(ranks, memory))
        return flp_status_fail(FLP_BAD_ARGUMENT, "memory: got %p, which is registered already", memory);
    if (!ranks->nccl->comm_register || !ranks->nccl->comm_deregister)
        return FLP_OK;
    made = malloc(sizeof(*made));
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a registration");
    *made = (registration){ ranks->registered, memory, NULL };
    status = flp_nccl_check(ranks->nccl, ranks->nccl->comm_register(ranks->communicator, memory, bytes, &made->handle), "ncclCommRegister");
    if (status == FLP_OK)
        ranks->registered = made;
    else
        free(made);
    return status;
}

flp_status flp_ranks_unregister(flp_ranks *ranks, void *memory)
{
    registration **at;

    if (!ranks)
        return flp_status_fail(FLP_BAD_ARGUMENT, "ranks: got NULL");
    at = find_registered(ranks, memory);
    return *at ? take_back(ranks, at) : FLP_OK;
}

/* ---- creation and destruction ---- */

flp_status flp_ranks_create(flp_context *context, void *communicator, flp_ranks **ranks)
{
    flp_ranks *made;
    flp_status status;

    if (!context || !communicator || !ranks)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !context ? "context" : !communicator ? "communicator" : "ranks");
    *ranks = NULL;
    made = calloc(1, sizeof(*made));
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for ranks");
    made->context = context;
    made->communicator = communicator;
    status = find_ranks(made);
    if (status == FLP_OK)
        status = allocate(made);
    if (status == FLP_OK)
        status = make_stream(made);
    if (status == FLP_OK)
        *ranks = made;
    else
        flp_ranks_destroy(made);
    return status;
}

/* Frees everything in the CUDA context in which it was made, whichever is current. If that context is gone, or the process has forked, there is nothing to
 * free. */
static void free_on_device(flp_ranks *ranks)
{
    const flp_driver *driver;
    CUcontext left;

    if (!flp_device_enter(&ranks->device, &left))
        return;
    while (ranks->registered)
        take_back(ranks, &ranks->registered);
    if (flp_driver_get(&driver) == FLP_OK) {
        if (ranks->on_device)
            driver->memory_free(ranks->on_device);
        if (ranks->beside)
            driver->stream_destroy(ranks->beside);
        if (ranks->grad_hidden)
            driver->event_destroy(ranks->grad_hidden);
        if (ranks->summed)
            driver->event_destroy(ranks->summed);
    }
    flp_device_leave(left);
}

void flp_ranks_destroy(flp_ranks *ranks)
{
    if (!ranks)
        return;
    if (ranks->device.context)
        free_on_device(ranks);
    for (registration *next; ranks->registered; ranks->registered = next) {
        next = ranks->registered->next;
        free(ranks->registered);
    }
    free(ranks->on_host);
    free(ranks);
}

flp_context *flp_ranks_context(const flp_ranks *ranks)
{
    return ranks->context;
}

int flp_ranks_count(const flp_ranks *ranks)
{
    return ranks->ranks;
}

/* ---- agreement ---- */

uint32_t flp_ranks_mix(uint32_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT32_C(16777619);
    return hash;
}

/* Every call requests a digest. A name keeps its definition as long as the context lives, so the generator is only asked if the name differs from the last
 * one's. */
uint32_t flp_ranks_token_loss(flp_ranks *ranks, const char *name)
{
    const char *computed;
    char *program;

    if (!name[0])
        return 0;
    if (strcmp(ranks->token_loss, name) == 0)
        return ranks->token_loss_digest;
    if (flp_generator_token_loss(flp_kernel_store_generator(ranks->context->store), name, &program) != FLP_OK)
        return 0;
    computed = strchr(program, '\n'); /* after its identity, which contains the definition's spaces */
    ranks->token_loss_digest = computed ? flp_ranks_mix(FLP_RANKS_DIGEST, computed, strlen(computed)) : 0;
    free(program);
    strcpy(ranks->token_loss, name);
    return ranks->token_loss_digest;
}

flp_rank_terms flp_ranks_terms(const char *name, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, uint32_t others)
{
    const int is_ignoring = flp_arguments_ignore(inputs->flags), has_bias = problem->bias_dtype != FLP_NONE, has_rows = inputs->row_temperature != NULL;
    const double temperature = flp_arguments_temperature(inputs->temperature);
    uint32_t options = FLP_RANKS_DIGEST;

    options = flp_ranks_mix(options, &problem->softcap, sizeof(problem->softcap));
    options = flp_ranks_mix(options, &problem->argmax, sizeof(problem->argmax));
    options = flp_ranks_mix(options, &problem->entropy, sizeof(problem->entropy));
    options = flp_ranks_mix(options, &has_bias, sizeof(has_bias));
    options = flp_ranks_mix(options, &temperature, sizeof(temperature));
    options = flp_ranks_mix(options, &has_rows, sizeof(has_rows));
    options = flp_ranks_mix(options, &is_ignoring, sizeof(is_ignoring));
    options = flp_ranks_mix(options, &inputs->ignore_index, sizeof(inputs->ignore_index));
    options = flp_ranks_mix(options, &others, sizeof(others));
    return (terms){ .call = flp_ranks_mix(flp_ranks_mix(FLP_RANKS_DIGEST, name, strlen(name)), flp_version(), strlen(flp_version())) | FAILED << 1,
                    .rows = (uint32_t)inputs->rows,
                    .hidden = (uint32_t)problem->hidden,
                    .vocab_total = (uint32_t)problem->vocab_total,
                    .dtype = (uint32_t)problem->dtype,
                    .options = options,
                    .vocab_first = (uint32_t)problem->vocab_first,
                    .vocab = (uint32_t)problem->vocab };
}

static flp_status refuse(const flp_ranks *ranks, int rank, const char *what, uint32_t theirs, uint32_t ours)
{
    return flp_status_fail(FLP_BAD_ARGUMENT, "ranks disagree: rank %d has %s %" PRIu32 ", rank %d (this one) %" PRIu32, rank, what, theirs, ranks->rank, ours);
}

static flp_status compare(const flp_ranks *ranks, int rank)
{
    const terms *theirs = &ranks->on_host[rank], *ours = &ranks->on_host[ranks->rank];
    const struct {
        const char *what;
        uint32_t theirs, ours;
    } named[] = { { "another call or version of the library:", theirs->call, ours->call },
                  { "rows", theirs->rows, ours->rows },
                  { "hidden", theirs->hidden, ours->hidden },
                  { "vocab_total", theirs->vocab_total, ours->vocab_total },
                  { "dtype", theirs->dtype, ours->dtype },
                  { "other options (softcap, argmax, entropy, bias, temperature, ignore_index, gradients), digest", theirs->options, ours->options } };

    if (theirs->call == FAILED)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rank %d was refused its own part of the call: its error message says why", rank);
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++)
        if (named[i].theirs != named[i].ours)
            return refuse(ranks, rank, named[i].what, named[i].theirs, named[i].ours);
    return FLP_OK;
}

/* Checks that each entry of the vocabulary is in exactly one shard. */
static flp_status check_cover(const flp_ranks *ranks)
{
    const terms *all = ranks->on_host;
    uint64_t entries = 0;

    for (int i = 0; i < ranks->ranks; i++) {
        entries += all[i].vocab;
        for (int j = 0; j < i; j++)
            if (all[i].vocab_first < all[j].vocab_first + all[j].vocab && all[j].vocab_first < all[i].vocab_first + all[i].vocab)
                return flp_status_fail(FLP_BAD_ARGUMENT, "vocab_first: ranks %d and %d both have entry %" PRIu32, j, i,
                                       all[i].vocab_first > all[j].vocab_first ? all[i].vocab_first : all[j].vocab_first);
    }
    if (entries == all[0].vocab_total)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "vocab: the ranks have %" PRIu64 " entries in all, wanted the vocab_total %" PRIu32, entries, all[0].vocab_total);
}

static flp_status exchange(flp_ranks *ranks, const terms *own, CUstream stream)
{
    const flp_driver *driver;
    const CUdeviceptr slot = ranks->on_device + (CUdeviceptr)((size_t)ranks->rank * sizeof(terms));
    void *all = (void *)(uintptr_t)ranks->on_device;
    int capturing = 0;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK)
        status = flp_device_is_capturing(stream, &capturing);
    if (status == FLP_OK && capturing)
        status = flp_status_fail(FLP_CAPTURING, "the ranks have not agreed on this call yet, for which they wait: run it once before it is captured");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->copy_to_device(slot, own, sizeof(*own), stream), "cuMemcpyHtoDAsync of the terms");
    if (status == FLP_OK)
        status = flp_nccl_check(ranks->nccl,
                                ranks->nccl->all_gather((void *)(uintptr_t)slot, all, sizeof(*own) / sizeof(float), NCCL_FLOAT32, ranks->communicator, stream),
                                "ncclAllGather of the terms");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->copy_to_host(ranks->on_host, ranks->on_device, (size_t)ranks->ranks * sizeof(*own), stream),
                                  "cuMemcpyDtoHAsync of the terms");
    return status == FLP_OK ? flp_driver_check(driver, driver->stream_synchronize(stream), "cuStreamSynchronize") : status;
}

static int is_agreed(const flp_ranks *ranks, const terms *wanted)
{
    for (int i = 0; i < ranks->agreed_count; i++)
        if (memcmp(&ranks->agreed[i], wanted, sizeof(*wanted)) == 0)
            return 1;
    return 0;
}

/* Where there is no room, the oldest terms are forgotten, on all ranks alike. */
static void remember(flp_ranks *ranks, const terms *wanted)
{
    if (ranks->agreed_count == MOST_AGREED)
        memmove(ranks->agreed, ranks->agreed + 1, (size_t)--ranks->agreed_count * sizeof(*wanted));
    ranks->agreed[ranks->agreed_count++] = *wanted;
}

flp_status flp_ranks_agree(flp_ranks *ranks, flp_rank_terms own, unsigned flags, flp_status status, CUstream stream)
{
    char why[FLP_STATUS_MESSAGE_BYTES];
    terms known = own;
    flp_status exchanged;

    known.rows = 0;
    if (is_agreed(ranks, &known) && !(flags & FLP_CHECK_TARGETS))
        return status;
    if (status != FLP_OK) {
        flp_status_keep_message(why);
        own.call = FAILED;
    }
    exchanged = exchange(ranks, &own, stream);
    if (status != FLP_OK) {
        flp_status_restore_message(why);
        return status;
    }
    for (int rank = 0; exchanged == FLP_OK && rank < ranks->ranks; rank++)
        exchanged = compare(ranks, rank);
    if (exchanged == FLP_OK)
        exchanged = check_cover(ranks);
    if (exchanged == FLP_OK && !is_agreed(ranks, &known))
        remember(ranks, &known);
    return exchanged;
}

flp_status flp_ranks_check(const flp_ranks *ranks, const flp_linear_logp_problem *problem)
{
    unsigned long long cuda_context;
    ncclResult_t error = NCCL_SUCCESS;
    flp_status status = flp_device_current_id(&cuda_context);

    if (status == FLP_OK && cuda_context != ranks->device.context_id)
        status = flp_status_fail(FLP_WRONG_CONTEXT, "the current CUDA context is number %llu, the ranks were made in number %llu", cuda_context,
                                 ranks->device.context_id);
    if (status == FLP_OK)
        status = flp_nccl_check(ranks->nccl, ranks->nccl->comm_async_error(ranks->communicator, &error), "ncclCommGetAsyncError");
    if (status == FLP_OK)
        status = flp_nccl_check(ranks->nccl, error, "the communicator");
    if (status == FLP_OK && problem->vocab_total == 0)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "problem.vocab_total: got 0, wanted that of a shard");
    if (status == FLP_OK && problem->backend == FLP_BACKEND_CPU)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "problem.backend: got FLP_BACKEND_CPU: NCCL is for GPUs");
    return status;
}

flp_status flp_ranks_check_grad_hidden(const flp_linear_logp_backward_problem *problem, const void *grad_hidden_event)
{
    const int64_t stride = problem->grad_hidden_stride;

    if (grad_hidden_event)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden_event: got %p, wanted NULL: the call has its own", grad_hidden_event);
    if (problem->grad_hidden == FLP_NONE)
        return FLP_OK;
    if (problem->grad_hidden != FLP_F32 || problem->accumulate & FLP_ACCUMULATE_HIDDEN)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden: wanted FLP_F32 that is not added to: the ranks' parts are summed up in its place");
    if ((stride ? stride : problem->forward.hidden_stride) > problem->forward.hidden)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden_stride: got %" PRId64 ", wanted the row's %" PRId64 " elements, without gaps", stride,
                               problem->forward.hidden);
    return FLP_OK;
}

/* ---- what is exchanged ---- */

float *flp_ranks_own_part(const flp_ranks *ranks, float *partials, int64_t rows)
{
    return partials ? partials + (int64_t)ranks->rank * rows * FLP_PARTIAL_FLOATS : NULL;
}

flp_status flp_ranks_gather(const flp_ranks *ranks, float *partials, int64_t rows, CUstream stream)
{
    const size_t floats = (size_t)rows * FLP_PARTIAL_FLOATS;
    const ncclResult_t result = ranks->nccl->all_gather(flp_ranks_own_part(ranks, partials, rows), partials, floats, NCCL_FLOAT32, ranks->communicator, stream);

    return flp_nccl_check(ranks->nccl, result, "ncclAllGather of the partials");
}

void *flp_ranks_grad_hidden_event(const flp_ranks *ranks)
{
    return ranks->grad_hidden;
}

static flp_status sum_on(const flp_ranks *ranks, void *grad_hidden, int64_t count, CUstream stream)
{
    const ncclResult_t result = ranks->nccl->all_reduce(grad_hidden, grad_hidden, (size_t)count, NCCL_FLOAT32, NCCL_SUM, ranks->communicator, stream);

    return flp_nccl_check(ranks->nccl, result, "ncclAllReduce of grad_hidden");
}

static flp_status join(const flp_ranks *ranks, const flp_driver *driver, CUstream stream)
{
    flp_status status = flp_driver_check(driver, driver->event_record(ranks->summed, ranks->beside), "cuEventRecord");

    return status == FLP_OK ? flp_driver_check(driver, driver->stream_wait_event(stream, ranks->summed, 0), "cuStreamWaitEvent") : status;
}

/* If the ranks' stream cannot wait for the event, the sum runs on the caller's stream: the other ranks are waiting for it. The ranks' stream is joined to the
 * caller's even if the sum fails, so that a capture has no unjoined stream. */
flp_status flp_ranks_sum(const flp_ranks *ranks, void *grad_hidden, int64_t count, CUstream stream)
{
    char why[FLP_STATUS_MESSAGE_BYTES];
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    if (status != FLP_OK || driver->stream_wait_event(ranks->beside, ranks->grad_hidden, 0) != CUDA_SUCCESS)
        return sum_on(ranks, grad_hidden, count, stream);
    status = sum_on(ranks, grad_hidden, count, ranks->beside);
    if (status == FLP_OK)
        return join(ranks, driver, stream);
    flp_status_keep_message(why);
    join(ranks, driver, stream);
    flp_status_restore_message(why);
    return status;
}
