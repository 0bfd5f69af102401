/* fusedlogp-gen: collects the variants that the options mean, lists them and writes their sources. */
#include <argz.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/gen.h"
#include "cli/output_file.h"

flp_context_options flp_gen_context_options(const flp_gen_options *options)
{
    const unsigned flags = options->numerics ? FLP_CONTEXT_TUNED_BITS : 0;
    if (options->out == NULL)
        return (flp_context_options){ .cpu_threads = 1, .flags = flags };
    return (
        flp_context_options){ .cache_directory = options->out, .system_cache_directories = "", .cpu_threads = 1, .flags = FLP_CONTEXT_SHARED_CACHE | flags };
}

static flp_status append_arch(const flp_gen_options *options, flp_context *context, const char *arch, flp_text *lines)
{
    char *more;
    if (flp_gen_has_problems(options))
        return flp_gen_problems_append(options, context, arch, lines);
    flp_status status = flp_generator_list(flp_kernel_store_generator(context->store), arch, options->dtypes, options->hidden_sizes, &more);
    if (status != FLP_OK)
        return status;
    size_t length = strlen(more);
    flp_text_append(lines, "%s%s", more, length && more[length - 1] != '\n' ? "\n" : "");
    free(more);
    return FLP_OK;
}

static flp_status append_ptx(const flp_gen_options *options, flp_context *context, flp_text *lines)
{
    char *arch;
    flp_status status = flp_generator_ptx_architecture(flp_kernel_store_generator(context->store), &arch);
    if (status == FLP_OK)
        status = append_arch(options, context, arch, lines);
    free(arch);
    return status;
}

static flp_status append_all(const flp_gen_options *options, flp_context *context, flp_text *lines)
{
    const char *known;
    char *archs = NULL;
    size_t archs_bytes = 0;
    flp_status status = FLP_OK;
    if (options->archs == NULL) {
        status = flp_generator_architectures(flp_kernel_store_generator(context->store), &known);
        if (status != FLP_OK)
            return status;
        if (argz_create_sep(known, ' ', &archs, &archs_bytes) != 0)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "the list of architectures");
    }
    const char *list = archs ? archs : options->archs, *arch = NULL;
    size_t list_bytes = archs ? archs_bytes : options->archs_bytes;
    while (status == FLP_OK && (arch = argz_next(list, list_bytes, arch)) != NULL)
        status = append_arch(options, context, arch, lines);
    free(archs);
    return status == FLP_OK && options->ptx ? append_ptx(options, context, lines) : status;
}

/* Two architectures may share kernels: sm_90a takes those of sm_90 where it has none of its own. */
static int is_listed(const flp_gen_variants *variants, const char *name)
{
    for (size_t i = 0; i < variants->count; i++)
        if (strcmp(variants->name[i], name) == 0)
            return 1;
    return 0;
}

/* The file policy.lua defines the token loss `policy`. */
static flp_status define(flp_context *context, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    size_t length = strlen(base);
    if (length > 4 && strcmp(base + length - 4, ".lua") == 0)
        length -= 4;
    char *text = NULL, *name = strndup(base, length);
    flp_status status = name ? flp_file_read(AT_FDCWD, path, &text, &length) : flp_status_fail(FLP_OUT_OF_MEMORY, "%s", path);
    if (status == FLP_OK)
        status = flp_token_loss_define(context, name, text);
    free(name);
    free(text);
    return status == FLP_OK ? status : flp_status_prefix(status, "--token-loss %s", path);
}

static flp_status define_all(const flp_gen_options *options, flp_context *context)
{
    const char *path = NULL;
    flp_status status = FLP_OK;
    while (status == FLP_OK && (path = argz_next(options->token_losses, options->token_losses_bytes, path)) != NULL)
        status = define(context, path);
    return status;
}

int flp_gen_token_losses_check(const flp_gen_options *options)
{
    if (options->token_losses == NULL)
        return FLP_EXIT_OK;
    flp_context *context = NULL;
    flp_status status = flp_context_create(&(flp_context_options){ .cache_directory = "", .cpu_threads = 1 }, &context);
    if (status == FLP_OK)
        status = define_all(options, context);
    flp_context_destroy(context);
    return status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
}

static int count_tuning(void *count, const flp_record *record)
{
    *(size_t *)count += record->tuning[0] && strcmp(record->identity.problem, "model") != 0;
    return 0;
}

/* Notes what the usual variants leave out: what the generator says and, because they are without tunings, the kernels of this machine's records. */
static flp_status find_left_out(const flp_gen_options *options, flp_context *context, flp_gen_variants *variants)
{
    size_t tunings = 0;
    char *lines = NULL;
    flp_text text = { 0 };
    flp_status status = flp_generator_left_out(flp_kernel_store_generator(context->store), options->hidden_sizes, &lines);
    if (status == FLP_OK)
        status = flp_records_visit(context->records, count_tuning, &tunings);
    flp_text_append(&text, "%s", lines ? lines : "");
    if (tunings)
        flp_text_append(&text, "%sthe kernels of the tunings of %zu record%s of this machine (fusedlogp records list)", text.length ? "\n" : "", tunings,
                        flp_text_plural(tunings));
    if (status == FLP_OK && text.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "what the usual kernels leave out");
    free(lines);
    variants->left_out = text.data;
    return status;
}

flp_status flp_gen_variants_collect(const flp_gen_options *options, flp_context *context, flp_gen_variants *variants)
{
    flp_text lines = { 0 };
    memset(variants, 0, sizeof *variants);
    flp_status status = define_all(options, context);
    if (status == FLP_OK)
        status = append_all(options, context, &lines);
    if (status == FLP_OK && !flp_gen_has_problems(options))
        status = find_left_out(options, context, variants);
    if (status == FLP_OK && lines.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "the list of variants");
    if (status == FLP_OK && lines.length == 0)
        status = flp_status_fail(FLP_NO_VARIANT, "no kernel for what was asked");
    if (status != FLP_OK) {
        flp_text_free(&lines);
        return status;
    }
    variants->lines = lines.data;
    size_t most = 0;
    for (const char *at = lines.data; *at; at++)
        most += *at == '\n';
    variants->name = calloc(most + 1, sizeof *variants->name);
    if (variants->name == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%zu variants", most);
    char *rest;
    for (char *line = strtok_r(variants->lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (!is_listed(variants, line))
            variants->name[variants->count++] = line;
    return FLP_OK;
}

void flp_gen_variants_free(flp_gen_variants *variants)
{
    free(variants->name);
    free(variants->lines);
    free(variants->left_out);
    memset(variants, 0, sizeof *variants);
}

json_t *flp_gen_variants_left_out(const flp_gen_variants *variants)
{
    json_t *lines = json_array();
    const char *line = variants->left_out ? variants->left_out : "";
    for (size_t length; (length = strcspn(line, "\n")) > 0; line += length + (line[length] != 0))
        json_array_append_new(lines, json_stringn(line, length));
    return lines;
}

void flp_gen_variants_tell(const flp_gen_options *options, const flp_gen_variants *variants)
{
    size_t i;
    json_t *line, *lines = flp_gen_variants_left_out(variants);
    if (json_array_size(lines) && !options->json && !options->quiet) {
        flp_console_error("the usual kernels leave out, for --problem to name:");
        json_array_foreach (lines, i, line)
            fprintf(stderr, "  %s\n", json_string_value(line));
    }
    json_decref(lines);
    const char *problem = NULL;
    if (options->model_problems != NULL && !options->json && !options->quiet) {
        flp_console_error("the models' problems, of any number of rows up to the one that they name:");
        while ((problem = argz_next(options->model_problems, options->model_problems_bytes, problem)) != NULL)
            fprintf(stderr, "  %s\n", problem);
    }
}

/* Creates a context without a cache and collects the variants that the options mean. The caller frees both, also after a failure. */
static flp_status start(const flp_gen_options *options, flp_context **context, flp_gen_variants *variants)
{
    memset(variants, 0, sizeof *variants);
    const unsigned flags = options->numerics ? FLP_CONTEXT_TUNED_BITS : 0;
    flp_status status = flp_context_create(&(flp_context_options){ .cache_directory = "", .cpu_threads = 1, .flags = flags }, context);
    if (status == FLP_OK)
        status = flp_gen_variants_collect(options, *context, variants);
    return status;
}

static json_t *json_names(const flp_gen_variants *variants)
{
    json_t *names = json_array();
    for (size_t i = 0; i < variants->count; i++)
        json_array_append_new(names, json_string(variants->name[i]));
    return names;
}

int flp_gen_list_run(const flp_gen_options *options)
{
    flp_context *context = NULL;
    flp_gen_variants variants;
    flp_status status = start(options, &context, &variants);
    int code = status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
    if (code == FLP_EXIT_OK && options->json)
        code = flp_console_print_json(json_pack("{s:o, s:o}", "variants", json_names(&variants), "left_out", flp_gen_variants_left_out(&variants)));
    else
        for (size_t i = 0; i < variants.count; i++)
            puts(variants.name[i]);
    if (code == FLP_EXIT_OK)
        flp_gen_variants_tell(options, &variants);
    flp_gen_variants_free(&variants);
    flp_context_destroy(context);
    return code;
}

static flp_status publish(const char *directory, const char *variant, const char *extension, const char *bytes, size_t count)
{
    flp_text path = { 0 };
    flp_text_append(&path, "%s/%s%s", directory, variant, extension);
    flp_status status = path.failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "%s", variant) : flp_output_file_write(path.data, bytes, count);
    flp_text_free(&path);
    return status;
}

static flp_status emit(const char *directory, flp_generator *generator, const char *variant)
{
    flp_emitted emitted;
    flp_status status = flp_generator_emit(generator, variant, &emitted);
    if (status != FLP_OK)
        return flp_status_prefix(status, "%s", variant);
    /* The kernels of an @host architecture, which the GPU simulator runs, are plain C++. */
    status = publish(directory, variant, strstr(variant, "@host") ? ".cpp" : ".cu", emitted.source, emitted.source_bytes);
    if (status == FLP_OK)
        status = publish(directory, variant, ".manifest", emitted.manifest_text, strlen(emitted.manifest_text));
    flp_emitted_free(&emitted);
    return status;
}

int flp_gen_emit_run(const flp_gen_options *options)
{
    flp_context *context = NULL;
    flp_gen_variants variants;
    flp_status status = start(options, &context, &variants);
    if (status == FLP_OK)
        status = flp_file_make_directories(options->emit, 0777);
    for (size_t i = 0; i < variants.count && status == FLP_OK; i++)
        status = emit(options->emit, flp_kernel_store_generator(context->store), variants.name[i]);
    int code = status == FLP_OK ? FLP_EXIT_OK : flp_console_fail(status);
    if (code == FLP_EXIT_OK && options->json)
        code = flp_console_print_json(json_pack("{s:o, s:o}", "directory", flp_console_json_string(options->emit), "variants", json_names(&variants)));
    else if (code == FLP_EXIT_OK && !options->quiet)
        printf("%zu variant%s, sources and manifests in %s\n", variants.count, flp_text_plural(variants.count), options->emit);
    flp_gen_variants_free(&variants);
    flp_context_destroy(context);
    return code;
}
