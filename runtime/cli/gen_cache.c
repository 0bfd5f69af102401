/* fusedlogp-gen cache: lists and clears the kernels on disk. */
#include <inttypes.h>
#include <stdio.h>
#include "base/text.h"
#include "cli/cache_report.h"
#include "cli/console.h"
#include "cli/gen.h"
#include "jit/cubin_cache.h"

static int open_cache(const flp_gen_options *options, flp_cubin_cache **cache, flp_cubin_cache_facts *facts)
{
    flp_status status = flp_cubin_cache_create(&(flp_cubin_cache_options){ .directory = options->out, .system_directories = options->out ? "" : NULL }, cache);
    if (status != FLP_OK)
        return flp_console_fail(status);
    flp_cubin_cache_describe(*cache, facts);
    return FLP_EXIT_OK;
}

/* Of a directory that is there but was not opened nothing is known, and nothing is removed from it. */
static int check_opened(const flp_cubin_cache_facts *facts)
{
    if (!facts->refusal[0])
        return FLP_EXIT_OK;
    flp_console_error("the kernel cache is there but was not opened: %s", facts->refusal);
    return FLP_EXIT_FAILED;
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

static void print_directories(json_t *report)
{
    if (*json_string_value(json_object_get(report, "directory")))
        flp_cache_report_print_user("", report);
    else
        puts("no directory");
    flp_cache_report_print_systems("system ", report);
}

int flp_gen_cache_list(const flp_gen_options *options)
{
    flp_cubin_cache *cache;
    flp_cubin_cache_facts facts;
    int code = open_cache(options, &cache, &facts);
    if (code != FLP_EXIT_OK)
        return code;
    json_t *report = flp_cache_report_make(cache);
    if (report == NULL) {
        flp_console_error("out of memory");
        code = FLP_EXIT_FAILED;
    } else if (options->json) {
        json_t *kernels = json_array();
        flp_cubin_cache_visit(cache, append_kernel, kernels);
        json_object_set_new(report, "kernels", kernels);
        code = flp_console_print_json(report);
    } else {
        flp_cubin_cache_visit(cache, print_kernel, NULL);
        if (!options->quiet)
            print_directories(report);
        json_decref(report);
    }
    if (code == FLP_EXIT_OK)
        code = check_opened(&facts);
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
    if (check_opened(&facts) != FLP_EXIT_OK) {
        flp_cubin_cache_destroy(cache);
        return FLP_EXIT_FAILED;
    }
    int64_t removed = flp_cubin_cache_clear(cache);
    if (options->json)
        code = flp_console_print_json(json_pack("{s:o, s:I}", "directory", flp_console_json_string(facts.directory), "removed", (json_int_t)removed));
    else if (!options->quiet)
        printf("%" PRId64 " kernel%s removed; %s\n", removed, flp_text_plural(removed), facts.directory[0] ? facts.directory : "no directory");
    /* What is left could not be removed. */
    flp_cubin_cache_describe(cache, &facts);
    const int64_t left = facts.files + facts.sources + facts.refused;
    if (left > 0) {
        flp_console_error("%" PRId64 " file%s or folder%s could not be removed from %s", left, flp_text_plural(left), flp_text_plural(left), facts.directory);
        if (code == FLP_EXIT_OK)
            code = FLP_EXIT_FAILED;
    }
    flp_cubin_cache_destroy(cache);
    return code;
}
