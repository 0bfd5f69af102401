/* fusedlogp-gen cache: lists and clears the kernels on disk. */
#include <inttypes.h>
#include <stdio.h>
#include "cli/console.h"
#include "cli/gen.h"
#include "jit/cubin_cache.h"

static int open_cache(const flp_gen_options *options, flp_cubin_cache **cache, flp_cubin_cache_facts *facts)
{
    flp_status status = flp_cubin_cache_create(&(flp_cubin_cache_options){ .directory = options->out }, cache);
    if (status != FLP_OK)
        return flp_console_fail(status);
    flp_cubin_cache_describe(*cache, facts);
    return FLP_EXIT_OK;
}

static int print_kernel(void *data, const char *file, const char *variant, int64_t bytes)
{
    (void)data;
    printf("%-64s %8" PRId64 "  %s\n", variant ? variant : "(damaged)", bytes, file);
    return 0;
}

static int append_kernel(void *data, const char *file, const char *variant, int64_t bytes)
{
    json_t *variant_name = variant ? flp_console_json_string(variant) : json_null(); /* null: damaged */
    return json_array_append_new(data,
                                 json_pack("{s:o, s:o, s:I}", "variant", variant_name, "file", flp_console_json_string(file), "bytes", (json_int_t)bytes));
}

int flp_gen_cache_list(const flp_gen_options *options)
{
    flp_cubin_cache *cache;
    flp_cubin_cache_facts facts;
    int code = open_cache(options, &cache, &facts);
    if (code != FLP_EXIT_OK)
        return code;
    if (options->json) {
        json_t *kernels = json_array();
        flp_cubin_cache_visit(cache, append_kernel, kernels);
        code = flp_console_print_json(json_pack("{s:o, s:o}", "directory", flp_console_json_string(facts.directory), "kernels", kernels));
    } else {
        flp_cubin_cache_visit(cache, print_kernel, NULL);
        if (!options->quiet)
            printf("%" PRId64 " kernels, %.1f MiB; %s\n", facts.files, (double)facts.bytes / 0x1p20, facts.directory[0] ? facts.directory : "no directory");
    }
    flp_cubin_cache_destroy(cache);
    return code;
}

int flp_gen_cache_clear(const flp_gen_options *options)
{
    flp_cubin_cache *cache;
    flp_cubin_cache_facts facts;
    int code = open_cache(options, &cache, &facts);
    if (code != FLP_EXIT_OK)
        return code;
    int64_t removed = flp_cubin_cache_clear(cache);
    if (options->json)
        code = flp_console_print_json(json_pack("{s:o, s:I}", "directory", flp_console_json_string(facts.directory), "removed", (json_int_t)removed));
    else if (!options->quiet)
        printf("%" PRId64 " kernels removed; %s\n", removed, facts.directory[0] ? facts.directory : "no directory");
    /* What is left could not be removed. */
    flp_cubin_cache_describe(cache, &facts);
    if (facts.files > 0) {
        flp_console_error("%" PRId64 " kernels could not be removed from %s", facts.files, facts.directory);
        if (code == FLP_EXIT_OK)
            code = FLP_EXIT_FAILED;
    }
    flp_cubin_cache_destroy(cache);
    return code;
}
