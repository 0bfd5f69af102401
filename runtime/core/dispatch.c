/* Finds the plan for a call of flp_X, which takes a problem and no plan. Every such call comes here, so a hit takes no lock, allocates nothing and makes no
 * system call. Also makes the plans of later calls (flp_X_prepare). */
#include "core/dispatch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/choose.h"
#include "core/plan.h"
#include "core/problem.h"
#include "core/row_buckets.h"
#include "core/scratch.h"

enum { TABLE_BUCKETS = 256 };
enum { UNKNOWN, THERE, NONE };

enum { KEY_WORDS = sizeof(flp_dispatch_key) / sizeof(uint64_t) };
_Static_assert(sizeof(flp_dispatch_key) == (4 + FLP_DISPATCH_SIZES) * sizeof(uint64_t), "a dispatch key has padding");

typedef struct entry {
    flp_dispatch_key key;
    flp_plan *plan;
    struct entry *next;
} entry;

struct flp_dispatch {
    pthread_mutex_t mutex; /* held while a plan is inserted */
    atomic_int driver;     /* UNKNOWN, THERE or NONE. Searching for it reads the disk, so FLP_BACKEND_AUTO searches only once for each context */
    _Atomic(entry *) buckets[TABLE_BUCKETS];
};

/* This thread's recent hits, with the problem as the caller gave it, because comparing it is quicker than packing a key. The context of a hit may have been
 * destroyed, so it is identified by its serial. */
enum { RECENT_LOG2 = 3 };
typedef struct {
    uint64_t context_serial;
    uint64_t op, cuda_context, call; /* as in the key */
    flp_plan *plan;
    flp_problem_storage problem;
} recent;
static _Thread_local recent recents[1 << RECENT_LOG2];
static _Thread_local unsigned latest; /* the index of the latest hit */

flp_status flp_dispatch_create(flp_dispatch **dispatch)
{
    *dispatch = calloc(1, sizeof(**dispatch));
    if (!*dispatch)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the table of plans");
    pthread_mutex_init(&(*dispatch)->mutex, NULL);
    return FLP_OK;
}

void flp_dispatch_destroy(flp_dispatch *dispatch)
{
    if (!dispatch)
        return;
    for (int i = 0; i < TABLE_BUCKETS; i++)
        for (entry *at = atomic_load(&dispatch->buckets[i]); at;) {
            entry *next = at->next;
            flp_plan_destroy(at->plan);
            free(at);
            at = next;
        }
    pthread_mutex_destroy(&dispatch->mutex);
    free(dispatch);
}

static unsigned alignment_log2(uintptr_t addresses)
{
    return (unsigned)__builtin_ctzll(addresses | 16);
}

static unsigned place_of(const flp_operator *op, const void *problem, const flp_dispatch_key *key)
{
    uint64_t words[FLP_PROBLEM_BYTES / sizeof(uint64_t)], mixed = key->op ^ key->call << 32;

    memcpy(words, problem, op->problem_bytes);
    for (size_t i = 0; i < op->problem_bytes / sizeof(uint64_t); i++)
        mixed += (words[i] ^ words[i] >> 32) * (2 * i + 3);
    return (unsigned)(mixed * UINT64_C(0x9e3779b97f4a7c15) >> (64 - RECENT_LOG2));
}

static int is_recent(unsigned place, const flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_key *key)
{
    const recent *at = &recents[place];

    return at->context_serial == context->serial && at->op == key->op && at->cuda_context == key->cuda_context && at->call == key->call &&
           memcmp(&at->problem, problem, op->problem_bytes) == 0;
}

static int same_key(const flp_dispatch_key *left, const flp_dispatch_key *right)
{
    return memcmp(left, right, sizeof(*left)) == 0;
}

static unsigned table_index(const flp_dispatch_key *key)
{
    uint64_t words[KEY_WORDS], mixed = 0;

    memcpy(words, key, sizeof(words));
    for (int i = 0; i < KEY_WORDS; i++)
        mixed = (mixed ^ words[i] ^ mixed >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(mixed >> 56);
}

static flp_plan *look_up(flp_dispatch *dispatch, const flp_dispatch_key *key)
{
    entry *at = atomic_load_explicit(&dispatch->buckets[table_index(key)], memory_order_acquire);

    while (at && !same_key(&at->key, key))
        at = at->next;
    return at ? at->plan : NULL;
}

/* Adds *plan to the table. If another thread has added one of this key meanwhile, destroys *plan and sets it to that one. */
static flp_status insert(flp_dispatch *dispatch, const flp_dispatch_key *key, flp_plan **plan)
{
    _Atomic(entry *) *bucket = &dispatch->buckets[table_index(key)];
    entry *made = malloc(sizeof(*made));
    flp_plan *found;

    if (!made) {
        flp_plan_destroy(*plan);
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory to keep a plan");
    }
    flp_mutex_lock(&dispatch->mutex);
    found = look_up(dispatch, key);
    if (!found) {
        *made = (entry){ *key, *plan, atomic_load(bucket) };
        atomic_store_explicit(bucket, made, memory_order_release);
    }
    flp_mutex_unlock(&dispatch->mutex);
    if (found) {
        free(made);
        flp_plan_destroy(*plan);
        *plan = found;
    }
    return FLP_OK;
}

static flp_status check_new(const void *problem, const flp_dispatch_call *call)
{
    flp_status status = flp_problem_check_range("rows", call->rows, 0, FLP_PROBLEM_ROWS_MAX);

    return status == FLP_OK && call->check_new ? call->check_new(problem, call->args) : status;
}

static flp_status make(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, const flp_dispatch_key *key,
                       flp_plan **plan)
{
    flp_problem_storage bounded;
    int capturing = 0;
    flp_status status = check_new(problem, call);

    if (status == FLP_OK && key->cuda_context)
        status = flp_device_is_capturing(call->stream, &capturing);
    if (status == FLP_OK && capturing)
        status = flp_status_fail(FLP_CAPTURING, "the problem is new and the stream is captured: call flp_%s_prepare before the capture", op->name);
    if (status != FLP_OK)
        return status;
    memcpy(&bounded, problem, op->problem_bytes);
    *flp_operator_rows(op, &bounded) = flp_row_buckets_rows(call->rows);
    *flp_operator_pointer_alignment(op, &bounded) = 1 << alignment_log2(call->addresses);
    status = flp_create_plan(context, op, &bounded, plan);
    if (status != FLP_OK)
        return status;
    if (call->complete_new)
        call->complete_new(context, &bounded, call->args, plan);
    return insert(context->dispatch, key, plan);
}

/* For FLP_BACKEND_AUTO: without a driver the problem takes the CPU path, which is no failure. */
static flp_status look_for_driver(flp_dispatch *dispatch, unsigned long long *cuda_context)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    flp_status_keep_message(callers_message);
    status = flp_device_current_id(cuda_context);
    atomic_store_explicit(&dispatch->driver, status == FLP_NO_DRIVER ? NONE : THERE, memory_order_relaxed);
    if (status != FLP_NO_DRIVER)
        return status;
    flp_status_restore_message(callers_message);
    return FLP_OK;
}

/* *cuda_context is 0 where no GPU is used. */
static flp_status find_cuda_context(flp_context *context, flp_backend backend, unsigned long long *cuda_context)
{
    const int driver = atomic_load_explicit(&context->dispatch->driver, memory_order_relaxed);

    *cuda_context = 0;
    if (context->flags & FLP_CONTEXT_NO_GPU || backend == FLP_BACKEND_CPU)
        return FLP_OK;
    if (backend == FLP_BACKEND_AUTO && driver != THERE)
        return driver == NONE ? FLP_OK : look_for_driver(context->dispatch, cuda_context);
    return flp_device_current_id(cuda_context);
}

flp_status flp_dispatch_find(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, unsigned long long *cuda_context,
                             flp_plan **plan)
{
    flp_dispatch_key key = { .op = (uintptr_t)op, .call = flp_row_buckets_of((uint64_t)call->rows) << 8 | alignment_log2(call->addresses) };
    flp_status status = find_cuda_context(context, flp_operator_backend(op, problem), cuda_context);
    int backend;

    /* A backend that does not exist is reported as such, rather than as a missing driver or CUDA context. */
    if (status != FLP_OK)
        return flp_problem_check_field(op, op->backend_at, problem, &backend) != FLP_OK ? FLP_BAD_ARGUMENT : flp_choose_refuse(status, (flp_backend)backend);
    key.cuda_context = *cuda_context;
    if (is_recent(latest, context, op, problem, &key) || is_recent(latest = place_of(op, problem, &key), context, op, problem, &key)) {
        *plan = recents[latest].plan;
        return FLP_OK;
    }
    if (!flp_problem_pack(op, problem, &key)) {
        status = check_new(problem, call);
        return status == FLP_OK ? flp_problem_refuse(op, problem) : status;
    }
    *plan = look_up(context->dispatch, &key);
    if (!*plan)
        status = make(context, op, problem, call, &key, plan);
    if (status != FLP_OK)
        return status;
    recents[latest] = (recent){ context->serial, key.op, key.cuda_context, key.call, *plan, .problem = { .bytes = { 0 } } };
    memcpy(&recents[latest].problem, problem, op->problem_bytes);
    return FLP_OK;
}

static int is_among(const char (*variants)[FLP_VARIANT_BYTES], int count, const char *variant)
{
    int i = 0;

    while (i < count && strcmp(variants[i], variant) != 0)
        i++;
    return i < count;
}

/* Compiles the kernels of the plans of all buckets in parallel. Errors are left out here, because making the plans reports them. */
static void compile_for_buckets(flp_context *context, const flp_operator *op, void *normal, CUstream stream)
{
    enum { BUCKETS = 24 };
    char(*variants)[FLP_VARIANT_BYTES] = calloc(BUCKETS * FLP_ROLES, sizeof(*variants));
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_problem_storage bounded;
    flp_selection selection;
    const int64_t most = *flp_operator_rows(op, normal);
    int count = 0, capturing = 0;

    flp_status_keep_message(callers_message);
    memcpy(&bounded, normal, op->problem_bytes);
    if (flp_device_is_capturing(stream, &capturing) != FLP_OK)
        capturing = 1; /* there is no GPU, or making the plans reports the error */
    for (int64_t rows = 1; variants && !capturing && rows <= most && count <= (BUCKETS - 1) * FLP_ROLES; rows++) {
        *flp_operator_rows(op, &bounded) = rows = flp_row_buckets_rows(rows);
        if (flp_plan_foresee(context, op, &bounded, &selection) != FLP_OK)
            break;
        for (int i = 0; i < selection.count; i++)
            if (!is_among(variants, count, selection.variant[i]))
                memcpy(variants[count++], selection.variant[i], FLP_VARIANT_BYTES);
    }
    if (count)
        flp_kernel_store_fill(context->store, count, variants);
    free(variants);
    flp_status_restore_message(callers_message);
}

/* Makes the plan of every bucket of rows up to the normal problem's, and reserves the largest scratch that any of them needs. */
static flp_status prepare_buckets(flp_context *context, const flp_operator *op, void *normal, const flp_dispatch_call *like)
{
    flp_dispatch_call call = *like;
    const int64_t most = *flp_operator_rows(op, normal);
    unsigned long long cuda_context;
    flp_plan *plan = NULL;
    int64_t bytes = 0;

    if (!(context->flags & FLP_CONTEXT_NO_GPU) && flp_operator_backend(op, normal) != FLP_BACKEND_CPU)
        compile_for_buckets(context, op, normal, call.stream);
    call.addresses = (uintptr_t)*flp_operator_pointer_alignment(op, normal);
    for (int64_t rows = 1; rows <= most; rows = flp_plan_rows(plan) + 1) {
        flp_status status;
        int64_t wanted;

        call.rows = rows;
        status = flp_dispatch_find(context, op, normal, &call, &cuda_context, &plan);
        if (status != FLP_OK)
            return status;
        wanted = flp_plan_workspace_bytes(plan, flp_int64_smaller(flp_plan_rows(plan), most));
        bytes = wanted > bytes ? wanted : bytes;
    }
    return bytes ? flp_scratch_reserve(context->scratch, &plan->device, call.stream, bytes) : FLP_OK;
}

flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, const flp_sizes *sizes)
{
    flp_problem_storage normal, own;
    flp_status status = FLP_OK;

    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    problem = flp_sized_take(op->problem_struct, sizes, problem, &own, &status);
    if (status == FLP_OK)
        status = flp_problem_normalize(op, problem, &normal);
    return status == FLP_OK ? prepare_buckets(context, op, &normal, call) : status;
}
