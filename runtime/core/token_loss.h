/* Token losses as a plan has them, and the caller's own. */
#ifndef FLP_CORE_TOKEN_LOSS_H
#define FLP_CORE_TOKEN_LOSS_H
#include "cpu/token_program.h"
#include "core/context.h"

/* FLP_BAD_ARGUMENT: the context knows none of that name. */
flp_status flp_token_loss_load(flp_context *context, const char *name, flp_token_program *program);
#endif
