/* Emits, changes, compiles and loads kernels for the host machine. */
#include "host/host_kernels.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"
#include "cross_entropy_cases.h" /* for their token loss, of which there may be a kernel */
#include "jit/generator.h"

/* -fsanitize=thread makes the compiler insert a call at each memory access; the host machine implements these calls, and the sanitizer's library is not linked.
 * -fpermissive: CUDA templates that are never instantiated may name what a kernel's source does not contain. */
static const char default_flags[] = "-Og -g1";
static const char compile_options[] = "-std=gnu++17 -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -fPIC -fpermissive -fno-exceptions "
                                      "-ffp-contract=off -w -shared -nostdlib";

typedef struct made_kernel {
    char name[FLP_VARIANT_BYTES];
    flp_host_kernel kernel;
    char failure[1024]; /* "": none */
    struct made_kernel *next;
} made_kernel;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static made_kernel *made;
static flp_generator *generator;
static const flp_host_mutation *mutation;
static int mutated;

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && value[0] ? value : otherwise;
}

void flp_host_kernels_mutate(const flp_host_mutation *wanted)
{
    mutation = wanted;
    mutated = 0;
}

int flp_host_kernels_mutated(void)
{
    return mutated;
}

static int fail(made_kernel *one, const char *format, const char *what)
{
    snprintf(one->failure, sizeof(one->failure), format, what);
    return 0;
}

/* Applies the mutation, if there is one for this source. 0: its `from` occurs more than once. */
static int mutate(made_kernel *one, flp_text *source)
{
    char *place = mutation ? strstr(source->data, mutation->from) : NULL;
    flp_text changed = { 0 };

    if (!place)
        return 1;
    if (strstr(place + 1, mutation->from))
        return fail(one, "\"%s\" stands in the source more than once", mutation->from);
    flp_text_append_bytes(&changed, source->data, (size_t)(place - source->data));
    flp_text_append(&changed, "%s%s", mutation->to, place + strlen(mutation->from));
    flp_text_free(source);
    *source = changed;
    mutated++;
    return !changed.failed;
}

static void replace(flp_text *text, const char *old, const char *with)
{
    flp_text changed = { 0 };
    const char *from = text->data;

    for (const char *at; (at = strstr(from, old)) != NULL; from = at + strlen(old)) {
        flp_text_append_bytes(&changed, from, (size_t)(at - from));
        flp_text_append(&changed, "%s", with);
    }
    flp_text_append(&changed, "%s", from);
    if (changed.failed)
        abort();
    flp_text_free(text);
    *text = changed;
}

/* Removes the architecture from the names in a source, so that architectures whose kernels have the same text share the object. */
static void leave_out_architecture(flp_text *text, const char *variant)
{
    char name[64];

    snprintf(name, sizeof(name), "%s@host", strrchr(variant, '.'));
    replace(text, name, "@host");
    snprintf(name, sizeof(name), "_%s_host", strrchr(variant, '.') + 1);
    replace(text, name, "_host");
}

static int write_source(const char *part, const flp_text *source)
{
    char name[PATH_MAX];
    FILE *file;
    int done;

    snprintf(name, sizeof(name), "%s.cpp", part);
    file = fopen(name, "w");
    done = file && fwrite(source->data, 1, source->length, file) == source->length;
    return file && fclose(file) == 0 && done;
}

/* Renames part's file with this ending to path's; path NULL: removes it. */
static int hand_over(const char *part, const char *path, const char *ending)
{
    char from[PATH_MAX], to[PATH_MAX];

    snprintf(from, sizeof(from), "%s%s", part, ending);
    snprintf(to, sizeof(to), "%s%s", path ? path : "", ending);
    return (path ? rename(from, to) : unlink(from)) == 0;
}

/* Compiles a source to path.so. Another process or thread may do the same at the same time, so files are renamed when they are complete. There are a thousand
 * kernels: one call of the compiler does it all, and the libraries of this program serve for the object. */
static int compile(made_kernel *one, const char *path, const flp_text *source)
{
    static const char script[] = "part='%s'; %s %s %s -o \"$part.so\" \"$part.cpp\" 2>\"$part.log\" || { grep -m 3 error \"$part.log\" >&2; exit 1; }";
    static atomic_int number;
    flp_text part = { 0 }, command = { 0 };
    int done;

    flp_text_append(&part, "%s.%ld.%d", path, (long)getpid(), atomic_fetch_add(&number, 1));
    flp_text_append(&command, script, part.data, setting("CXX", "c++"), compile_options, setting("FUSEDLOGP_HOST_CXXFLAGS", default_flags));
    if (part.failed || command.failed)
        abort();
    done = write_source(part.data, source) && system(command.data) == 0 && hand_over(part.data, path, ".cpp") && hand_over(part.data, path, ".so") &&
           hand_over(part.data, NULL, ".log");
    if (!done)
        fail(one, "%s.cpp does not compile; the .log files beside it say why", part.data);
    flp_text_free(&part);
    flp_text_free(&command);
    return done;
}

/* symbol: its name in the object. */
static int load(made_kernel *one, const char *object, const flp_manifest *manifest, const char *symbol)
{
    flp_host_kernel *kernel = &one->kernel;
    char parameters[FLP_VARIANT_BYTES + 32];
    void *library = dlopen(object, RTLD_NOW | RTLD_LOCAL);

    *kernel = (flp_host_kernel){
        .threads = manifest->threads, .shared_bytes = manifest->shared_bytes, .registers = manifest->registers, .cluster = manifest->cluster
    };
    if (library) {
        snprintf(parameters, sizeof(parameters), "%s_parameter_bytes", symbol);
        *(void **)&kernel->body = dlsym(library, symbol);
        kernel->parameter_bytes = dlsym(library, parameters);
    }
    return kernel->body && kernel->parameter_bytes ? 1 : fail(one, "%s", dlerror());
}

/* $FUSEDLOGP_HOST_KERNELS, else a folder in the user's cache, so that no program leaves files in the tree from which it is run. */
static void append_directory(flp_text *path)
{
    const char *set = setting("FUSEDLOGP_HOST_KERNELS", NULL), *cache = setting("XDG_CACHE_HOME", NULL), *home = setting("HOME", NULL);

    if (set)
        flp_text_append(path, "%s", set);
    else if (cache || home)
        flp_text_append(path, "%s%s/fusedlogp-tests/kernels", cache ? cache : home, cache ? "" : "/.cache");
    else
        flp_text_append(path, "tests/host/kernels");
}

/* Compiles, if necessary, and loads a kernel. The name of its shared object is a digest of the source, the compiler and its options. */
static int make_object(made_kernel *one, const flp_text *source, const flp_manifest *manifest, const char *symbol)
{
    flp_text directory = { 0 }, key = { 0 }, path = { 0 }, object = { 0 };
    char digest[FLP_DIGEST_TEXT_BYTES];
    int done;

    flp_text_append(&key, "%s %s %s\n%s", setting("CXX", "c++"), compile_options, setting("FUSEDLOGP_HOST_CXXFLAGS", default_flags), source->data);
    flp_digest_format(key.data, key.length, digest);
    append_directory(&directory);
    flp_text_append(&path, "%s/%.20s", directory.data, digest);
    flp_text_append(&object, "%s.so", path.data);
    if (directory.failed || key.failed || path.failed || object.failed)
        abort();
    if (flp_file_make_directories(directory.data, 0777) != FLP_OK)
        done = fail(one, "%s", flp_error_message());
    else
        done = (access(object.data, R_OK) == 0 || compile(one, path.data, source)) && load(one, object.data, manifest, symbol);
    flp_text_free(&directory);
    flp_text_free(&key);
    flp_text_free(&path);
    flp_text_free(&object);
    return done;
}

static void build(const char *variant, made_kernel *one)
{
    flp_text name = { 0 }, source = { 0 }, symbol = { 0 };
    flp_emitted emitted;

    flp_text_append(&name, "%s@host", variant);
    if (name.failed || flp_generator_emit(generator, name.data, &emitted) != FLP_OK) {
        fail(one, "%s", flp_error_message());
    } else {
        flp_text_append_bytes(&source, emitted.source, emitted.source_bytes);
        flp_text_append(&symbol, "%s", emitted.manifest.kernel);
        leave_out_architecture(&source, variant);
        leave_out_architecture(&symbol, variant);
        if (mutate(one, &source))
            make_object(one, &source, &emitted.manifest, symbol.data);
        flp_emitted_free(&emitted);
    }
    flp_text_free(&name);
    flp_text_free(&source);
    flp_text_free(&symbol);
}

/* The kernel's name: "linear_logp.bf16.sm_90a" becomes flp_linear_logp_bf16_sm_90a. */
static void name_of(const char *variant, char *name, size_t bytes)
{
    snprintf(name, bytes, "flp_%s", variant);
    for (char *at = name; *at; at++)
        if (*at == '.')
            *at = '_';
}

static made_kernel *find(const char *name)
{
    made_kernel *one;

    pthread_mutex_lock(&mutex);
    one = made;
    while (one && strcmp(one->name, name) != 0)
        one = one->next;
    pthread_mutex_unlock(&mutex);
    return one;
}

void flp_host_kernels_make(const char *variant)
{
    made_kernel *one = calloc(1, sizeof(*one));
    int has_generator;

    if (!one)
        abort();
    name_of(variant, one->name, sizeof(one->name));
    if (find(one->name)) {
        free(one);
        return;
    }
    pthread_mutex_lock(&mutex);
    has_generator = generator || (flp_generator_create(&generator) == FLP_OK &&
                                  flp_generator_define_token_loss(generator, flp_cross_entropy_case_loss_name, flp_cross_entropy_case_loss) == FLP_OK);
    pthread_mutex_unlock(&mutex);
    if (!has_generator)
        snprintf(one->failure, sizeof(one->failure), "%s", flp_error_message());
    else
        build(variant, one);
    pthread_mutex_lock(&mutex);
    one->next = made;
    made = one;
    pthread_mutex_unlock(&mutex);
}

const flp_host_kernel *flp_host_kernels_find(const char *kernel_name, const char **failure)
{
    const made_kernel *one = find(kernel_name);

    *failure = one ? one->failure : "it was not compiled for the host";
    return one && !one->failure[0] ? &one->kernel : NULL;
}

void flp_host_kernels_forget(void)
{
    pthread_mutex_lock(&mutex);
    while (made) {
        made_kernel *next = made->next;
        free(made);
        made = next;
    }
    pthread_mutex_unlock(&mutex);
}
