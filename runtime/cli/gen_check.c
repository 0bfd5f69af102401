/* fusedlogp-gen --check: finds the kernels that programs would not find on disk. */
#include <stdio.h>
#include "base/text.h"
#include "cli/console.h"
#include "cli/gen.h"

/* Counts the variants that are not on disk, and appends their names to names or, where that is NULL, prints them. */
static flp_status look(const flp_gen_variants *variants, flp_context *context, json_t *names, size_t *missing)
{
    flp_status status = FLP_OK;
    for (size_t i = 0; i < variants->count && status == FLP_OK; i++) {
        int there;
        status = flp_kernel_store_find(context->store, variants->name[i], &there);
        if (status != FLP_OK || there)
            continue;
        ++*missing;
        if (names != NULL)
            json_array_append_new(names, json_string(variants->name[i]));
        else
            puts(variants->name[i]);
    }
    return status;
}

static int report(const flp_gen_options *options, const flp_gen_variants *variants, const flp_cubin_cache_facts *facts, json_t *names, size_t missing)
{
    int code = missing ? FLP_EXIT_MISSING : FLP_EXIT_OK;
    if (names != NULL) {
        int printed = flp_console_print_json(
            json_pack("{s:o, s:I, s:O}", "directory", flp_console_json_string(facts->directory), "kernels", (json_int_t)variants->count, "missing", names));
        return printed != FLP_EXIT_OK ? printed : code;
    }
    const char *directory = facts->directory[0] ? facts->directory : "no directory";
    if (missing && !options->quiet)
        flp_console_error("%zu kernel%s: %zu there, %zu missing; %s", variants->count, flp_text_plural(variants->count), variants->count - missing, missing,
                          directory);
    else if (!options->quiet)
        printf("%zu kernel%s: %zu there, 0 missing; %s\n", variants->count, flp_text_plural(variants->count), variants->count, directory);
    return code;
}

int flp_gen_check_run(const flp_gen_options *options)
{
    const flp_context_options context_options = flp_gen_context_options(options);
    flp_context *context = NULL;
    flp_gen_variants variants = { 0 };
    flp_cubin_cache_facts facts;
    json_t *names = options->json ? json_array() : NULL;
    size_t missing = 0;
    flp_status status = flp_context_create(&context_options, &context);
    if (status == FLP_OK)
        status = flp_gen_variants_collect(options, context, &variants);
    if (status == FLP_OK)
        status = look(&variants, context, names, &missing);
    if (status == FLP_OK)
        flp_cubin_cache_describe(flp_kernel_store_cache(context->store), &facts);
    int code = status == FLP_OK ? report(options, &variants, &facts, names, missing) : flp_console_fail(status);
    json_decref(names);
    flp_gen_variants_free(&variants);
    flp_context_destroy(context);
    return code;
}
