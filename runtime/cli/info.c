/* fusedlogp info: what the library finds on this machine. */
#include "cli/commands.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/cache_report.h"
#include "cli/console.h"
#include "cli/options.h"
#include "operators/linear/linear_logp_cpu.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "jit/generator.h"
#include "tune/records.h"

/* The whole answer is one JSON object; the text is printed from it, so that both always say the same. */

static json_t *describe_devices(void)
{
    json_t *devices = json_array();
    int count = 0;
    if (flp_device_count(&count) != FLP_OK)
        count = 0; /* why: see "driver" */
    for (int i = 0; i < count; i++) {
        flp_device_facts facts;
        if (flp_device_describe(i, &facts) != FLP_OK) {
            json_array_append_new(devices, json_pack("{s:i, s:o}", "ordinal", i, "error", flp_console_json_string(flp_error_message())));
            continue;
        }
        json_array_append_new(devices, json_pack("{s:i, s:o, s:i, s:i, s:I, s:i}", "ordinal", i, "name", flp_console_json_string(facts.name),
                                                 "compute_capability", facts.compute_capability, "multiprocessors", facts.multiprocessors, "memory_bytes",
                                                 (json_int_t)facts.memory_bytes, "shared_bytes_per_block", facts.shared_bytes_per_block));
    }
    return devices;
}

static json_t *describe_error(void)
{
    return json_pack("{s:o}", "error", flp_console_json_string(flp_error_message()));
}

static json_t *describe_driver(void)
{
    const flp_driver *driver;
    if (flp_driver_get(&driver) != FLP_OK)
        return describe_error();
    char version[32];
    snprintf(version, sizeof version, "%d.%d", driver->version / 1000, driver->version % 1000 / 10);
    return json_pack("{s:s}", "version", version);
}

static json_t *describe_nvrtc(void)
{
    flp_nvrtc_facts facts;
    int major, minor;
    if (flp_nvrtc_find(&facts) != FLP_OK)
        return describe_error();
    json_t *found = json_pack("{s:o, s:s}", "path", flp_console_json_string(facts.path), "build", facts.build);
    char version[32];
    if (flp_nvrtc_version(&major, &minor) == FLP_OK) {
        snprintf(version, sizeof version, "%d.%d", major, minor);
        json_object_set_new(found, "version", json_string(version));
    } else {
        json_object_set_new(found, "error", flp_console_json_string(flp_error_message()));
    }
    return found;
}

static json_t *describe_cache(void)
{
    flp_cubin_cache *cache;
    if (flp_cubin_cache_create(&(flp_cubin_cache_options){ 0 }, &cache) != FLP_OK)
        return describe_error();
    json_t *report = flp_cache_report_make(cache);
    flp_cubin_cache_destroy(cache);
    return report;
}

/* Counts the records of tunings: this user's, the system's, and damaged files. */
static json_t *describe_records(void)
{
    flp_records *records = NULL;
    const flp_record_files *files;
    int64_t users = 0, systems = 0, damaged = 0;
    if (flp_records_create(&(flp_records_options){ 0 }, &records) != FLP_OK || flp_records_list(records, &files) != FLP_OK) {
        flp_records_destroy(records);
        return describe_error();
    }
    for (size_t i = 0; i < files->count; i++) {
        const int is_users = strcmp(files->files[i].place, flp_records_directory(records)) == 0;
        damaged += files->files[i].fault != NULL;
        users += files->files[i].fault == NULL && is_users;
        systems += files->files[i].fault == NULL && !is_users;
    }
    json_t *report = json_pack("{s:o, s:I, s:I, s:I}", "directory", flp_console_json_string(flp_records_directory(records)), "users", (json_int_t)users,
                               "systems", (json_int_t)systems, "damaged", (json_int_t)damaged);
    flp_records_destroy(records);
    return report;
}

static json_t *describe_kernels(void)
{
    flp_generator *generator;
    const char *names;
    json_t *kernels;
    if (flp_generator_create(&generator) != FLP_OK)
        return describe_error();
    if (flp_generator_architectures(generator, &names) == FLP_OK)
        kernels = json_pack("{s:s, s:s}", "architectures", names, "digest", flp_generator_digest(generator));
    else
        kernels = describe_error();
    flp_generator_destroy(generator);
    return kernels;
}

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int64_t number_of(json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static void print_devices(json_t *devices)
{
    size_t i;
    json_t *device;
    if (json_array_size(devices) == 0)
        printf("devices        none\n");
    json_array_foreach (devices, i, device) {
        int64_t capability = number_of(device, "compute_capability");
        if (json_object_get(device, "error"))
            printf("device %-7zu %s\n", i, text_of(device, "error"));
        else
            printf("device %-7zu %s, compute capability %" PRId64 ".%" PRId64 ", %" PRId64 " multiprocessors, %.1f GiB\n", i, text_of(device, "name"),
                   capability / 10, capability % 10, number_of(device, "multiprocessors"), (double)number_of(device, "memory_bytes") / 0x1p30);
    }
}

/* Prints a line about one part: the text under the key `first` and `second`, where the part has them, and its error, where it has one. */
static void print_part(const char *label, json_t *part, const char *first, const char *second_label, const char *second)
{
    const char *error = text_of(part, "error");
    printf("%-14s ", label);
    if (*text_of(part, first))
        printf("%s%s%s%s", text_of(part, first), *second ? ", " : "", second_label, second);
    if (*error)
        printf("%s%s", *text_of(part, first) ? ": " : "not usable: ", error);
    putchar('\n');
}

static void print_records(json_t *records)
{
    const char *directory = text_of(records, "directory");
    if (json_object_get(records, "error"))
        print_part("records", records, "directory", "", "");
    else
        printf("records        %s: %" PRId64 " of this user, %" PRId64 " of the system, %" PRId64 " damaged\n", *directory ? directory : "no directory",
               number_of(records, "users"), number_of(records, "systems"), number_of(records, "damaged"));
}

static void print_text(json_t *info)
{
    json_t *nvrtc = json_object_get(info, "nvrtc"), *cache = json_object_get(info, "cache"), *kernels = json_object_get(info, "kernels");
    char build[192];
    snprintf(build, sizeof build, "%s%s%s", text_of(nvrtc, "version"), *text_of(nvrtc, "version") ? ", build " : "", text_of(nvrtc, "build"));
    printf("version        %s\n", text_of(info, "version"));
    print_devices(json_object_get(info, "devices"));
    print_part("driver", json_object_get(info, "driver"), "version", "", "");
    print_part("NVRTC", nvrtc, "path", "", build);
    printf("CPU path       %s\n", text_of(info, "cpu"));
    if (json_object_get(cache, "error"))
        print_part("cache", cache, "directory", "", "");
    else if (*text_of(cache, "directory") == 0)
        printf("cache          none, kernels are kept in memory only\n");
    else
        flp_cache_report_print_user("cache          ", cache);
    flp_cache_report_print_systems("system cache   ", cache);
    print_records(json_object_get(info, "records"));
    print_part("kernels for", kernels, "architectures", "", "");
    if (*text_of(kernels, "digest"))
        printf("generator      %s\n", text_of(kernels, "digest"));
}

int flp_info_main(int argc, char **argv)
{
    static const flp_option table[] = { { "json", NULL, "print JSON", FLP_OPTION_FLAG, .at = 0 }, { 0 } };
    static const flp_command_line line = { table, NULL, "Shows devices, libraries, cache and versions.", NULL, NULL };
    flp_text cpu = { 0 };
    int as_json = 0;
    flp_options_parse(&line, argc, argv, &as_json);
    flp_linear_logp_cpu_numerics(FLP_BF16, &cpu);
    json_t *info =
        json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "version", flp_version(), "devices", describe_devices(), "driver", describe_driver(), "nvrtc",
                  describe_nvrtc(), "cpu", cpu.data, "cache", describe_cache(), "records", describe_records(), "kernels", describe_kernels());
    flp_text_free(&cpu);
    if (as_json || info == NULL)
        return flp_console_print_json(info);
    print_text(info);
    json_decref(info);
    return FLP_EXIT_OK;
}
