/* Token losses: defines them, and loads those that plans name. */
#include "core/token_loss.h"

#include <stdlib.h>

#include "base/status.h"

flp_status flp_token_loss_load(flp_context *context, const char *name, flp_token_program *program)
{
    char *text;
    flp_status status = flp_generator_token_loss(flp_kernel_store_generator(context->store), name, &text);

    if (status == FLP_OK)
        status = flp_token_program_parse(text, program);
    free(text);
    return status;
}

flp_status flp_token_loss_define(flp_context *context, const char *name, const char *definition)
{
    flp_token_program program;
    flp_status status;

    if (!context || !name || !definition)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !context ? "context" : !name ? "name" : "definition");
    status = flp_generator_define_token_loss(flp_kernel_store_generator(context->store), name, definition);
    return status == FLP_OK ? flp_token_loss_load(context, name, &program) : status; /* it may be too long */
}
