/* Creates and destroys the context; defines its token losses, and loads those that plans name. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "core/context.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/status.h"
#include "core/dispatch.h"
#include "core/scratch.h"

static const double default_tune_seconds = 2;

static flp_status check_options(const flp_context_options *options)
{
    const unsigned known =
        FLP_CONTEXT_NO_COMPILE | FLP_CONTEXT_NO_GPU | FLP_CONTEXT_SHARED_CACHE | FLP_CONTEXT_REPLAY | FLP_CONTEXT_TUNED_BITS | FLP_CONTEXT_TUNE;

    if (options->flags & ~known)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got 0x%x, wanted no bits but 0x%x", options->flags, known);
    if (options->flags & FLP_CONTEXT_TUNE && options->flags & (FLP_CONTEXT_REPLAY | FLP_CONTEXT_NO_COMPILE))
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got 0x%x, wanted FLP_CONTEXT_TUNE without FLP_CONTEXT_REPLAY and FLP_CONTEXT_NO_COMPILE",
                               options->flags);
    if (!(options->tune_seconds >= 0 && options->tune_seconds <= DBL_MAX))
        return flp_status_fail(FLP_BAD_ARGUMENT, "tune_seconds: got %g, wanted 0 or more", options->tune_seconds);
    if (options->cache_bytes < 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "cache_bytes: got %" PRId64 ", wanted 0 or more", options->cache_bytes);
    if (options->cpu_threads < 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "cpu_threads: got %d, wanted 0 or more", options->cpu_threads);
    return FLP_OK;
}

/* A variable that is not a number above 0 counts as not set. */
static double tune_seconds_of(const flp_context_options *options)
{
    static const char variable[] = "FUSEDLOGP_TUNE_SECONDS";
    const char *text = secure_getenv(variable);
    double seconds = options->tune_seconds;

    if (seconds > 0 || !(options->flags & FLP_CONTEXT_TUNE))
        return seconds;
    if (text && *text && (!flp_number_parse(text, &seconds) || seconds <= 0)) {
        flp_log_warning("%s: got '%s', wanted a number above 0", variable, text);
        seconds = 0;
    }
    return seconds > 0 ? seconds : default_tune_seconds;
}

static flp_status fill(const flp_context_options *options, flp_context *context)
{
    static atomic_uint_fast64_t contexts;
    flp_status status;

    context->serial = atomic_fetch_add(&contexts, 1) + 1;
    context->flags = options->flags;
    context->tune_seconds = tune_seconds_of(options);
    status = flp_kernel_store_create(options, &context->store);
    if (status == FLP_OK)
        status = flp_thread_pool_create(options->cpu_threads, &context->pool);
    if (status == FLP_OK)
        status = flp_dispatch_create(&context->dispatch);
    if (status == FLP_OK)
        status = flp_scratch_create(&context->scratch);
    if (status == FLP_OK)
        status = flp_records_create(&(flp_records_options){ options->records_directory, options->system_records_directories }, &context->records);
    return status;
}

flp_status flp_context_create_sized(const flp_context_options *options, flp_context **context, const flp_sizes *sizes)
{
    const flp_context_options defaults = { 0 };
    char callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_context_options own;
    flp_status status = FLP_OK;

    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a pointer to flp_context *");
    *context = NULL;
    options = flp_sized_take(&flp_sized_context_options, sizes, options, &own, &status);
    if (!options)
        options = &defaults;
    if (status == FLP_OK)
        status = check_options(options);
    if (status != FLP_OK)
        return status;
    *context = calloc(1, sizeof(**context));
    if (!*context)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a context");
    flp_status_keep_message(callers_message);
    status = fill(options, *context);
    if (status == FLP_OK) {
        flp_status_restore_message(callers_message); /* a cache that cannot be used is no failure of the call */
        return FLP_OK;
    }
    flp_context_destroy(*context);
    *context = NULL;
    return status;
}

void flp_context_destroy(flp_context *context)
{
    if (!context)
        return;
    flp_dispatch_destroy(context->dispatch);
    flp_scratch_destroy(context->scratch);
    flp_records_destroy(context->records);
    flp_thread_pool_destroy(context->pool);
    flp_kernel_store_destroy(context->store);
    free(context);
}

flp_status flp_context_release_scratch(flp_context *context, int of_graphs)
{
    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    return flp_scratch_release(context->scratch, of_graphs != 0);
}

flp_status flp_context_counters_sized(const flp_context *context, flp_counters *counters, const flp_sizes *sizes)
{
    flp_counters own = { 0 };

    if (!context || !counters)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", context ? "counters" : "context");
    flp_kernel_store_counters(context->store, &own);
    own.plans = atomic_load(&context->plans);
    return flp_sized_give(&flp_sized_counters, sizes, &own, 0, counters);
}

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
    return status == FLP_OK ? flp_token_loss_load(context, name, &program) : status; /* fails where the program is too long */
}
