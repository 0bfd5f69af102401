/* Loads NVRTC at first use and compiles one source with it. */
#include "cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "cuda/library.h"
#include "cuda/nvrtc_abi.h"

typedef struct {
#define NVRTC_FIELD(field, symbol, result, parameters) result(*field) parameters;
    FLP_NVRTC_FUNCTIONS(NVRTC_FIELD)
#undef NVRTC_FIELD
    int major, minor;
    flp_nvrtc_facts facts;
} nvrtc_table;

enum { LARGEST_OPTIONS = 30, MESSAGE_LOG_LINES = 12 };

/* Loads libnvrtc-builtins from NVRTC's folder. NVRTC opens it by its bare name and has no run path, so the dynamic loader would not find it there unless it
 * is loaded already. Where that folder does not have it, the loader may find it elsewhere when NVRTC opens it; else NVRTC reports the error. */
static void load_builtins(const flp_library_loader *loader, const nvrtc_table *table)
{
    const char *file = table->facts.path, *slash = strrchr(file, '/');
    char path[sizeof(table->facts.path) + 64];

    if (!slash)
        return;
    snprintf(path, sizeof(path), "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - file), file, table->major, table->minor);
    if (loader->readable(path))
        loader->open(path);
}

static nvrtc_table loaded;

static flp_status load(void)
{
    const flp_library_loader *loader = flp_library_loader_get();
    const char *path = loaded.facts.path;
    flp_status status = flp_nvrtc_find(&loaded.facts);
    void *library;

    if (status != FLP_OK)
        return status;
    library = loader->open(path);
    if (!library)
        return flp_status_fail(FLP_NO_NVRTC, "%s cannot be loaded: %s", path, loader->error());
#define LOAD_SYMBOL(field, exported, result, parameters)                     \
    loaded.field = (result(*) parameters)loader->symbol(library, #exported); \
    if (!loaded.field)                                                       \
        return flp_status_fail(FLP_NO_NVRTC, "%s has no %s, NVRTC is too old: " FLP_NVRTC_ADVICE, path, #exported);
    FLP_NVRTC_FUNCTIONS(LOAD_SYMBOL)
#undef LOAD_SYMBOL
    if (loaded.version(&loaded.major, &loaded.minor) != NVRTC_SUCCESS || loaded.major < FLP_NVRTC_LEAST_MAJOR)
        return flp_status_fail(FLP_NO_NVRTC, "%s is NVRTC %d.%d: " FLP_NVRTC_ADVICE, path, loaded.major, loaded.minor);
    load_builtins(loader, &loaded);
    return FLP_OK;
}

static flp_status get_table(const nvrtc_table **table)
{
    static flp_library_once once = { .mutex = PTHREAD_MUTEX_INITIALIZER };

    *table = &loaded;
    return flp_library_load_once(&once, load);
}

flp_status flp_nvrtc_version(int *major, int *minor)
{
    const nvrtc_table *table;
    flp_status status = get_table(&table);

    *major = status == FLP_OK ? table->major : 0;
    *minor = status == FLP_OK ? table->minor : 0;
    return status;
}

/* An NVRTC that cannot load its libnvrtc-builtins compiles nothing, so it is as good as none. */
static flp_status status_of(nvrtcResult result)
{
    return result == NVRTC_ERROR_OUT_OF_MEMORY ? FLP_OUT_OF_MEMORY : result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE ? FLP_NO_NVRTC : FLP_COMPILE_FAILED;
}

static flp_status failed(const nvrtc_table *table, nvrtcResult result, const char *what)
{
    return flp_status_fail(status_of(result), "%s: %s", what, table->error_string(result));
}

/* Fetches the program's log, cubin or PTX into malloc'ed *bytes. The sizes of PTX and log include their 0 byte; a 0 byte is added after the cubin too. */
static flp_status fetch(const nvrtc_table *table, nvrtcProgram program, nvrtcResult (*get_size)(nvrtcProgram, size_t *),
                        nvrtcResult (*get)(nvrtcProgram, char *), const char *what, char **bytes, size_t *count)
{
    nvrtcResult result = get_size(program, count);

    if (result != NVRTC_SUCCESS)
        return failed(table, result, what);
    *bytes = malloc(*count + 1);
    if (!*bytes)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory for %zu bytes", what, *count);
    (*bytes)[*count] = 0;
    result = get(program, *bytes);
    return result == NVRTC_SUCCESS ? FLP_OK : failed(table, result, what);
}

/* Reports a failed compilation: the message has the options and the first lines of the log. The caller gets the whole log in its output. */
static flp_status rejected(const nvrtc_table *table, nvrtcResult result, const char *name, int option_count, const char *const *options, const char *log)
{
    const flp_status status = status_of(result);
    flp_text list = { 0 };
    const char *end = log ? log : "";

    for (int i = 0; i < option_count; i++)
        flp_text_append(&list, " %s", options[i]);
    for (int line = 0; line < MESSAGE_LOG_LINES && *end; line++)
        end += strcspn(end, "\n") + (end[strcspn(end, "\n")] != 0);
    flp_status_fail(status, "%s: NVRTC %d.%d: %s, options%s\n%.*s", name, table->major, table->minor, table->error_string(result), list.failed ? "" : list.data,
                    log ? (int)(end - log) : 0, log ? log : "");
    flp_text_free(&list);
    return status;
}

static flp_status compile(const nvrtc_table *table, nvrtcProgram program, const char *name, int option_count, const char *const *options,
                          flp_nvrtc_output *output)
{
    nvrtcResult result = table->compile(program, option_count, options);
    size_t bytes;
    flp_status status = fetch(table, program, table->log_size, table->log, "nvrtcGetProgramLog", &output->log, &bytes);

    if (result != NVRTC_SUCCESS)
        return rejected(table, result, name, option_count, options, output->log);
    if (status == FLP_OK)
        status = fetch(table, program, table->cubin_size, table->cubin, "nvrtcGetCUBIN", &output->cubin, &output->cubin_bytes);
    if (status == FLP_OK)
        status = fetch(table, program, table->ptx_size, table->ptx, "nvrtcGetPTX", &output->ptx, &bytes);
    return status;
}

/* FLP_NO_NVRTC where the architecture's number (90 of "sm_90a") is not among those that NVRTC lists, as for a GPU that is newer than NVRTC. */
static flp_status check_arch(const nvrtc_table *table, const char *arch)
{
    const int wanted = atoi(arch + strcspn(arch, "0123456789"));
    int count = 0, known = 0, newest = 0, *archs;

    if (table->arch_count(&count) != NVRTC_SUCCESS || count < 1)
        return FLP_OK; /* the compilation reports the error */
    archs = calloc((size_t)count, sizeof(*archs));
    if (!archs)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for NVRTC's architectures");
    if (table->archs(archs) != NVRTC_SUCCESS)
        known = 1;
    for (int i = 0; i < count; i++) {
        known |= archs[i] == wanted;
        newest = archs[i] > newest ? archs[i] : newest;
    }
    free(archs);
    if (known)
        return FLP_OK;
    return flp_status_fail(FLP_NO_NVRTC,
                           "NVRTC %d.%d (%s) does not know %s, its newest architecture is sm_%d: install a newer NVRTC (pip install nvidia-cuda-nvrtc), "
                           "or set FUSEDLOGP_NVRTC_PATH to its directory",
                           table->major, table->minor, table->facts.path, arch, newest);
}

/* 1: this NVRTC has the option -minimal, which leaves out what no kernel uses: textures, launches on the device, the CUDA runtime's types. NVRTC 13.0 makes
 * the same cubins of a step's ten kernels with the option and without it. The cache key does not name the option, because NVRTC's build, which the key has,
 * decides whether it is used. */
static int knows_minimal(const nvrtc_table *table)
{
    return table->major > 12 || (table->major == 12 && table->minor >= 4);
}

flp_status flp_nvrtc_compile(const char *source, const char *name, const char *arch, const char *const *options, flp_nvrtc_output *output)
{
    char architecture[64];
    const char *list[LARGEST_OPTIONS + 2] = { architecture };
    int count = 1;
    nvrtcProgram program = NULL;
    nvrtcResult result;
    const nvrtc_table *table;
    flp_status status;

    *output = (flp_nvrtc_output){ 0 };
    snprintf(architecture, sizeof(architecture), "-arch=%s", arch);
    for (; *options; options++) {
        if (count > LARGEST_OPTIONS)
            return flp_status_fail(FLP_INTERNAL, "%s: more than %d compile options", name, LARGEST_OPTIONS);
        list[count++] = *options;
    }
    status = get_table(&table);
    if (status == FLP_OK)
        status = check_arch(table, arch);
    if (status != FLP_OK)
        return status;
    if (knows_minimal(table))
        list[count++] = "-minimal";
    result = table->create(&program, source, name, 0, NULL, NULL);
    if (result != NVRTC_SUCCESS)
        return failed(table, result, "nvrtcCreateProgram");
    status = compile(table, program, name, count, list, output);
    table->destroy(&program);
    return status;
}

void flp_nvrtc_output_free(flp_nvrtc_output *output)
{
    free(output->cubin);
    free(output->ptx);
    free(output->log);
    *output = (flp_nvrtc_output){ 0 };
}
