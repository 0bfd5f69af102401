/* Keeps a context for each device, a plan for each problem, and the token losses, which calls name by a number. */
#include "torch_plans.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 256, BUCKETS = 256 };

typedef struct entry {
    struct entry *next;
    flp_plan *plan;
    int32_t device;
    flp_torch_plans_operator kind;
    size_t bytes;
    unsigned char problem[];
} entry;

typedef struct {
    flp_torch_plans_token_loss loss;
    int64_t id;
    char *definition;
    bool defined[DEVICES_MAX + 1]; /* [device + 1]: in the device's context */
} token_loss;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static flp_context *contexts[DEVICES_MAX + 1]; /* [0]: the CPU's */
static int cpu_threads, plan_count;
static entry *_Atomic table[BUCKETS]; /* entries are added at the head and never leave: read without the lock */
static token_loss *token_losses[FLP_TORCH_TOKEN_LOSSES_MAX];
static int token_loss_count;

void flp_torch_cpu_threads(int threads)
{
    cpu_threads = threads;
}

int flp_torch_plan_count(void)
{
    int count;

    pthread_mutex_lock(&mutex);
    count = plan_count;
    pthread_mutex_unlock(&mutex);
    return count;
}

static size_t problem_bytes(flp_torch_plans_operator kind)
{
    switch (kind) {
    case FLP_TORCH_PLANS_LINEAR_LOGP:
        return sizeof(flp_linear_logp_problem);
    case FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD:
        return sizeof(flp_linear_logp_backward_problem);
    case FLP_TORCH_PLANS_LINEAR_CROSS_ENTROPY:
        return sizeof(flp_linear_cross_entropy_problem);
    case FLP_TORCH_PLANS_LOGITS_LOGP:
        return sizeof(flp_logits_logp_problem);
    case FLP_TORCH_PLANS_LOGITS_LOGP_BACKWARD:
        return sizeof(flp_logits_logp_backward_problem);
    case FLP_TORCH_PLANS_WEIGHTED_SUM:
        return sizeof(flp_weighted_sum_problem);
    case FLP_TORCH_PLANS_WEIGHTED_SUM_BACKWARD:
        return sizeof(flp_weighted_sum_backward_problem);
    case FLP_TORCH_PLANS_SCALE:
        return sizeof(flp_scale_problem);
    }
    return 0;
}

static flp_status plan_create(flp_context *context, flp_torch_plans_operator kind, const void *problem, flp_plan **plan)
{
    switch (kind) {
    case FLP_TORCH_PLANS_LINEAR_LOGP:
        return flp_linear_logp_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD:
        return flp_linear_logp_backward_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_LINEAR_CROSS_ENTROPY:
        return flp_linear_cross_entropy_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_LOGITS_LOGP:
        return flp_logits_logp_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_LOGITS_LOGP_BACKWARD:
        return flp_logits_logp_backward_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_WEIGHTED_SUM:
        return flp_weighted_sum_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_WEIGHTED_SUM_BACKWARD:
        return flp_weighted_sum_backward_plan_create(context, problem, plan);
    case FLP_TORCH_PLANS_SCALE:
        return flp_scale_plan_create(context, problem, plan);
    }
    return FLP_INTERNAL;
}

/* FNV-1a. */
static uint64_t hash(int32_t device, flp_torch_plans_operator kind, const unsigned char *problem, size_t bytes)
{
    uint64_t value = 14695981039346656037u ^ (uint64_t)(device + 1) ^ (uint64_t)kind << 16;

    for (size_t i = 0; i < bytes; i++)
        value = (value ^ problem[i]) * 1099511628211u;
    return value;
}

static entry *find(entry *at, int32_t device, flp_torch_plans_operator kind, const void *problem, size_t bytes)
{
    while (at && (at->device != device || at->kind != kind || memcmp(at->problem, problem, bytes) != 0))
        at = at->next;
    return at;
}

static flp_status context_of(int32_t device, flp_context **context)
{
    flp_context_options options = { .flags = device < 0 ? FLP_CONTEXT_NO_GPU : 0, .cpu_threads = cpu_threads };

    if (device < -1 || device >= DEVICES_MAX)
        return FLP_BAD_ARGUMENT;
    if (!contexts[device + 1]) {
        flp_status status = flp_context_create(&options, &contexts[device + 1]);
        if (status != FLP_OK)
            return status;
    }
    *context = contexts[device + 1];
    return FLP_OK;
}

flp_status flp_torch_plans_find(int32_t device, flp_torch_plans_operator kind, const void *problem, flp_plan **plan)
{
    size_t bytes = problem_bytes(kind);
    entry *_Atomic *head = &table[hash(device, kind, problem, bytes) % BUCKETS];
    entry *found = find(*head, device, kind, problem, bytes);
    flp_context *context = NULL;
    flp_status status = FLP_OK;

    if (!found) {
        pthread_mutex_lock(&mutex);
        found = find(*head, device, kind, problem, bytes);
        if (!found) {
            entry *made = calloc(1, sizeof(*made) + bytes);
            status = made ? context_of(device, &context) : FLP_OUT_OF_MEMORY;
            if (status == FLP_OK)
                status = plan_create(context, kind, problem, &made->plan);
            if (status == FLP_OK) {
                made->device = device, made->kind = kind, made->bytes = bytes, made->next = *head;
                memcpy(made->problem, problem, bytes);
                *head = found = made;
                plan_count++;
            } else {
                free(made);
            }
        }
        pthread_mutex_unlock(&mutex);
    }
    if (found)
        *plan = found->plan;
    return status;
}

/* ---- token losses */

static token_loss *token_loss_of(int64_t id)
{
    for (int i = 0; i < token_loss_count; i++)
        if (token_losses[i]->id == id)
            return token_losses[i];
    return NULL;
}

/* Cuts text at its commas; names [8] point into a copy that is never freed. */
static int split(const char *text, const char *names[8])
{
    int count = 0;
    char *copy = *text ? strdup(text) : NULL, *rest = copy;

    while (rest && count < 8)
        names[count++] = strsep(&rest, ",");
    return count;
}

static flp_status token_loss_define(int32_t device, const char *name, const char *definition)
{
    flp_context *context = NULL;
    flp_status status = context_of(device, &context);

    return status == FLP_OK ? flp_token_loss_define(context, name, definition) : status;
}

static flp_status token_loss_add(const token_loss *given, const char *inputs, const char *parameters, const char *definition)
{
    token_loss *made = calloc(1, sizeof(*made));

    if (!made)
        return FLP_OUT_OF_MEMORY;
    *made = *given;
    made->loss.name = strdup(given->loss.name);
    made->definition = definition ? strdup(definition) : NULL;
    made->loss.input_count = split(inputs, made->loss.inputs);
    made->loss.parameter_count = split(parameters, made->loss.parameters);
    token_losses[token_loss_count++] = made;
    return FLP_OK;
}

/* With the lock held. */
static int token_loss_make(int64_t id, const char *name, const char *definition, const char *inputs, const char *parameters, int check)
{
    const token_loss made = { .loss.name = name, .id = id, .defined[0] = definition && check };
    flp_status status = FLP_OK;

    if (token_loss_of(id))
        return FLP_OK;
    if (token_loss_count == FLP_TORCH_TOKEN_LOSSES_MAX)
        return FLP_TORCH_TOKEN_LOSSES_FULL;
    if (definition && check)
        status = token_loss_define(-1, name, definition);
    return status == FLP_OK ? token_loss_add(&made, inputs, parameters, definition) : status;
}

int flp_torch_token_loss(int64_t id, const char *name, const char *definition, const char *inputs, const char *parameters, int check)
{
    int status;

    pthread_mutex_lock(&mutex);
    status = token_loss_make(id, name, definition, inputs, parameters, check);
    pthread_mutex_unlock(&mutex);
    return status;
}

const flp_torch_plans_token_loss *flp_torch_plans_token_loss_find(int32_t device, int64_t id, flp_status *status)
{
    token_loss *found;

    pthread_mutex_lock(&mutex);
    found = token_loss_of(id);
    *status = found ? FLP_OK : FLP_BAD_ARGUMENT;
    if (found && found->definition && !found->defined[device + 1]) {
        *status = token_loss_define(device, found->loss.name, found->definition);
        found->defined[device + 1] = *status == FLP_OK;
    }
    pthread_mutex_unlock(&mutex);
    return *status == FLP_OK ? &found->loss : NULL;
}
