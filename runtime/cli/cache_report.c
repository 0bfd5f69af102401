/* Describes the directories of the kernel cache as JSON, and prints that description as text. */
#include "base/text.h"
#include "cli/cache_report.h"
#include <inttypes.h>
#include <stdio.h>
#include "cli/console.h"

static json_t *make_systems(flp_cubin_cache *cache)
{
    flp_cubin_cache_system_facts facts;
    json_t *systems = json_array();
    for (int i = 0; flp_cubin_cache_describe_system(cache, i, &facts); i++)
        json_array_append_new(systems,
                              json_pack("{s:o, s:b, s:o, s:I, s:I, s:I, s:I}", "directory", flp_console_json_string(facts.directory), "there", facts.there,
                                        "refusal", facts.refusal[0] ? flp_console_json_string(facts.refusal) : json_null(), "files", (json_int_t)facts.files,
                                        "sources", (json_int_t)facts.sources, "bytes", (json_int_t)facts.bytes, "refused", (json_int_t)facts.refused));
    return systems;
}

json_t *flp_cache_report_make(flp_cubin_cache *cache)
{
    flp_cubin_cache_facts facts;
    flp_cubin_cache_describe(cache, &facts);
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "directory", flp_console_json_string(facts.directory), "files", (json_int_t)facts.files,
                     "sources", (json_int_t)facts.sources, "bytes", (json_int_t)facts.bytes, "refused", (json_int_t)facts.refused, "writable", facts.writable,
                     "refusal", facts.refusal[0] ? flp_console_json_string(facts.refusal) : json_null(), "systems", make_systems(cache));
}

static const char *text_of(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void print_kernels(json_t *directory)
{
    const int64_t refused = json_integer_value(json_object_get(directory, "refused"));
    const int64_t files = json_integer_value(json_object_get(directory, "files")), sources = json_integer_value(json_object_get(directory, "sources"));
    printf("%" PRId64 " kernel%s, ", files, flp_text_plural(files));
    if (sources)
        printf("%" PRId64 " source%s that did not compile, ", sources, flp_text_plural(sources));
    printf("%.1f MiB", (double)json_integer_value(json_object_get(directory, "bytes")) / 0x1p20);
    if (refused)
        printf(", %" PRId64 " file%s or folder%s that this user cannot read or that others may write to", refused, flp_text_plural(refused),
               flp_text_plural(refused));
}

void flp_cache_report_print_user(const char *label, json_t *report)
{
    printf("%s%s: ", label, text_of(report, "directory"));
    if (text_of(report, "refusal") != NULL) {
        printf("refused: %s\n", text_of(report, "refusal"));
        return;
    }
    print_kernels(report);
    puts(json_is_true(json_object_get(report, "writable")) ? "" : ", not writable");
}

void flp_cache_report_print_systems(const char *label, json_t *report)
{
    size_t i;
    json_t *system;
    json_array_foreach (json_object_get(report, "systems"), i, system) {
        printf("%s%s: ", label, text_of(system, "directory"));
        if (!json_is_true(json_object_get(system, "there")))
            printf("not there");
        else if (text_of(system, "refusal") != NULL)
            printf("refused: %s", text_of(system, "refusal"));
        else
            print_kernels(system);
        putchar('\n');
    }
}
