/* Tuning on first use, in contexts with FLP_CONTEXT_TUNE: a new plan without an exact record is tuned for before its caller gets it. */
#ifndef FLP_CORE_TUNE_FIRST_H
#define FLP_CORE_TUNE_FIRST_H
#include "core/call.h"

/* For flp_operator_calls.tune. *plan is that of problem, in the CUDA context that is current; where tuning gives it a record, the plan that takes it stands
 * in its place. Within the context's seconds, on memory and a stream of the tuning's own. Threads and processes that ask for one problem at once tune it
 * once: the others wait for the record, up to ten seconds beyond that time. Never fails: the plan stays, and says why in its description; so does a warning.
 * This thread's error message stays. */
void flp_tune_first_use(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan);
#endif
