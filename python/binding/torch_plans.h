/* The plans and contexts behind the operators: a context for the CPU and one for each GPU, a plan for each problem. */
#ifndef FLP_BINDING_TORCH_PLANS_H
#define FLP_BINDING_TORCH_PLANS_H
#include "torch_frame.h"

typedef enum {
    FLP_TORCH_PLANS_LINEAR_LOGP,
    FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD,
    FLP_TORCH_PLANS_LINEAR_CROSS_ENTROPY,
    FLP_TORCH_PLANS_LOGITS_LOGP,
    FLP_TORCH_PLANS_LOGITS_LOGP_BACKWARD,
    FLP_TORCH_PLANS_WEIGHTED_SUM,
    FLP_TORCH_PLANS_WEIGHTED_SUM_BACKWARD,
    FLP_TORCH_PLANS_SCALE
} flp_torch_plans_operator;

/* Threads of the CPU path; 0: one for each core. Before the first call. FLP_API: Python calls it. */
FLP_API void flp_torch_cpu_threads(int threads);

/* Plans made so far, on all devices. FLP_API: Python calls it. */
FLP_API int flp_torch_plan_count(void);

/* The plan of a problem (zeroed before it was filled: its bytes are the key) on a device whose CUDA context is current; made where there is none. It
 * lives as long as the process. */
flp_status flp_torch_plans_find(int32_t device, flp_torch_plans_operator kind, const void *problem, flp_plan **plan);

/* KEEP IN STEP: python/fusedlogp/token_loss.py. FULL: a process has so many token losses already, which it keeps until it ends. */
enum { FLP_TORCH_TOKEN_LOSSES_MAX = 256, FLP_TORCH_TOKEN_LOSSES_FULL = 1 };

typedef struct {
    const char *name; /* as the library knows it */
    int input_count, parameter_count;
    const char *inputs[8], *parameters[8];
} flp_torch_plans_token_loss;

/* Keeps a token loss under an id. inputs, parameters: the names of what calls bring, comma-separated. id: made by the caller from the other arguments, so
 * that it is the same in each process. definition: NULL for a ready-made one. check: 1: the definition is evaluated now, for which the CPU's context is
 * created; 0: the first call evaluates it. Returns a flp_status or FLP_TORCH_TOKEN_LOSSES_FULL. FLP_BAD_ARGUMENT: it is refused, and the id stands for nothing.
 * FLP_API: Python calls it. */
FLP_API int flp_torch_token_loss(int64_t id, const char *name, const char *definition, const char *inputs, const char *parameters, int check);

/* The token loss of an id, defined in the device's context. NULL: there is no such id (*status: FLP_BAD_ARGUMENT), or the definition is refused (*status and
 * flp_error_message say why). */
const flp_torch_plans_token_loss *flp_torch_plans_token_loss_find(int32_t device, int64_t id, flp_status *status);
#endif
