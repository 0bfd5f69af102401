/* Obtains a variant's cubin: emits the source, looks for its cubin in the cache, else compiles it by NVRTC and stores it. */
#include "jit/kernel_obtain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "cuda/nvrtc.h"

/* --ptxas-options=-v writes registers and spills to the log. Without -modify-stack-limit=false NVRTC would raise the stack limit
 * of the whole process while it compiles, which does not work in two threads at once. In the cache key each option is a line. */
#define OPTION_LIST(X) X("-std=c++17") X("-default-device") X("--ptxas-options=-v") X("-modify-stack-limit=false")
#define OPTION_ENTRY(option) option,
#define OPTION_LINE(option) option "\n"
static const char *const options[] = { OPTION_LIST(OPTION_ENTRY) NULL };
const char flp_kernel_obtain_options[] = OPTION_LIST(OPTION_LINE);

/* Longer than any compilation takes. A process that is killed releases its lock, so that nobody waits for it. */
static const double lock_seconds = 60;

typedef struct {
    const char *variant;
    flp_emitted emitted;
    flp_nvrtc_facts nvrtc;
    char source_digest[FLP_DIGEST_TEXT_BYTES];
    flp_cubin_key key;
    flp_status can_compile; /* FLP_OK, or the status that says why nothing can be compiled */
    char *obstacle;         /* the message of that status */
} request;

/* PTX runs on later GPUs unless its architecture has a suffix ("sm_90a", "sm_100f"). */
static int ptx_is_portable(const char *arch)
{
    size_t length = strlen(arch);

    return length && isdigit((unsigned char)arch[length - 1]);
}

static flp_status look_for_compiler(const flp_kernel_origin *origin, flp_nvrtc_facts *nvrtc)
{
    if (origin->flags & FLP_CONTEXT_NO_COMPILE)
        return flp_status_fail(FLP_NO_NVRTC, "it is in no cache directory, and the context was created with FLP_CONTEXT_NO_COMPILE");
    return flp_nvrtc_find(nvrtc);
}

static flp_status prepare(flp_kernel_origin *origin, const char *variant, request *request)
{
    flp_status status;

    request->variant = variant;
    status = flp_generator_emit(origin->generator, variant, &request->emitted);
    if (status != FLP_OK)
        return status;
    request->can_compile = look_for_compiler(origin, &request->nvrtc);
    if (request->can_compile != FLP_OK && !(request->obstacle = flp_text_duplicate(flp_error_message())))
        return flp_status_fail(FLP_OUT_OF_MEMORY, "kernel %s: no memory", variant);
    flp_digest_format(request->emitted.source, request->emitted.source_bytes, request->source_digest);
    request->key = (flp_cubin_key){
        .source = request->emitted.source,
        .source_bytes = request->emitted.source_bytes,
        .source_digest = request->source_digest,
        .options = flp_kernel_obtain_options,
        .arch = request->emitted.manifest.arch,
        .nvrtc_build = request->can_compile == FLP_OK ? request->nvrtc.build : NULL,
    };
    return FLP_OK;
}

static void finish(request *request)
{
    flp_emitted_free(&request->emitted);
    free(request->obstacle);
}

/* Puts the variant and the path of the kept source in front of NVRTC's message, which may be long. */
static flp_status report_rejected(flp_cubin_cache *cache, const request *request)
{
    char path[4096];
    char *message = flp_text_duplicate(flp_error_message());

    if (cache && flp_cubin_cache_keep_source(cache, request->variant, request->emitted.source, request->emitted.source_bytes, path) != FLP_OK)
        snprintf(path, sizeof(path), "nowhere (%s)", flp_error_message());
    flp_status_fail(FLP_COMPILE_FAILED, "%s", message ? message : "no memory for the message");
    free(message);
    if (!cache)
        return flp_status_prefix(FLP_COMPILE_FAILED, "kernel %s", request->variant);
    return flp_status_prefix(FLP_COMPILE_FAILED, "kernel %s, its source kept in %s", request->variant, path);
}

/* cache: where a source that NVRTC rejects is kept; NULL: nowhere. */
static flp_status compile(flp_kernel_origin *origin, flp_cubin_cache *cache, const request *request, flp_cubin *cubin, char **log)
{
    flp_nvrtc_output output;
    flp_status status = flp_nvrtc_compile(request->emitted.source, request->variant, request->emitted.manifest.arch, options, &output);

    if (status == FLP_COMPILE_FAILED)
        status = report_rejected(cache, request);
    else if (status == FLP_NO_NVRTC)
        flp_status_prefix(status, "kernel %s", request->variant);
    if (status == FLP_OK) {
        *cubin = (flp_cubin){
            .variant = flp_text_duplicate(request->variant),
            .manifest_text = flp_text_duplicate(request->emitted.manifest_text),
            .cubin = output.cubin,
            .cubin_bytes = output.cubin_bytes,
            .ptx = ptx_is_portable(request->emitted.manifest.arch) ? output.ptx : NULL,
        };
        output.cubin = NULL;
        if (cubin->ptx)
            output.ptx = NULL;
        if (!cubin->variant || !cubin->manifest_text)
            status = flp_status_fail(FLP_OUT_OF_MEMORY, "kernel %s: no memory", request->variant);
    }
    if (status == FLP_OK) {
        atomic_fetch_add(&origin->compiled, 1);
        if (log) {
            *log = output.log;
            output.log = NULL;
        }
    }
    flp_nvrtc_output_free(&output);
    return status;
}

/* Loads the kernel from the cache, where it has it; nothing has to be compiled then. */
static flp_status load(flp_kernel_origin *origin, const flp_cubin_key *key, flp_kernel_image *image, int *found)
{
    flp_status status = flp_cubin_cache_load(origin->cache, key, &image->cubin, found);

    if (status == FLP_OK && *found)
        atomic_fetch_add(&origin->disk_hits, 1);
    return status;
}

static flp_status compile_and_store(flp_kernel_origin *origin, const request *request, flp_kernel_image *image)
{
    flp_status status;

    status = compile(origin, origin->cache, request, &image->cubin, &image->log);
    if (status != FLP_OK)
        return status;
    flp_log_info("compiled %s with NVRTC", request->variant);
    image->compiled = 1;
    image->stored = flp_cubin_cache_store(origin->cache, &request->key, &image->cubin);
    return FLP_OK;
}

/* The compilation's status was FLP_NO_NVRTC: there is an NVRTC, but it is too old, cannot be loaded, lacks its builtins or does not know the architecture. As
 * where there is none, a kernel that any other build compiled is as good. Where the cache has none, the compilation's status and message stay. */
static flp_status load_of_any_build(flp_kernel_origin *origin, const request *request, flp_kernel_image *image, int *found)
{
    flp_cubin_key key = request->key;
    char why[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    flp_status_keep_message(why);
    key.nvrtc_build = NULL;
    status = load(origin, &key, image, found);
    if (status != FLP_OK || *found)
        return status;
    flp_status_restore_message(why);
    return FLP_NO_NVRTC;
}

/* Compiles a kernel under the cache's lock. Another process may have stored it while this one waited for the lock, so the cache is read once more first. */
static flp_status compile_once(flp_kernel_origin *origin, const request *request, int anew, flp_kernel_image *image)
{
    flp_status status = FLP_OK;
    int lock, found = 0;

    if (request->can_compile != FLP_OK) {
        flp_status_fail(request->can_compile, "%s", request->obstacle);
        atomic_fetch_add(&origin->disk_misses, !anew);
        return flp_status_prefix(request->can_compile, "kernel %s", request->variant);
    }
    flp_log_hold(); /* a log callback may request the same kernel, and would wait for the lock */
    flp_cubin_cache_lock(origin->cache, &request->key, lock_seconds, &lock);
    if (!anew)
        status = load(origin, &request->key, image, &found);
    if (status == FLP_OK && !found) {
        status = compile_and_store(origin, request, image);
        if (status == FLP_NO_NVRTC && !anew)
            status = load_of_any_build(origin, request, image, &found);
        atomic_fetch_add(&origin->disk_misses, !anew && !found);
    }
    flp_cubin_cache_unlock(origin->cache, lock);
    flp_log_resume();
    return status;
}

flp_status flp_kernel_obtain(flp_kernel_origin *origin, const char *variant, int anew, flp_kernel_image *image)
{
    request request = { 0 };
    flp_status status = prepare(origin, variant, &request);
    int found = 0;

    *image = (flp_kernel_image){ .manifest = request.emitted.manifest };
    if (status == FLP_OK && anew)
        flp_cubin_cache_evict(origin->cache, &request.key);
    else if (status == FLP_OK)
        status = load(origin, &request.key, image, &found);
    if (status == FLP_OK && !found)
        status = compile_once(origin, &request, anew, image);
    finish(&request);
    return status;
}

flp_status flp_kernel_obtain_cached(flp_kernel_origin *origin, const char *variant, flp_kernel_image *image, int *found)
{
    request request = { 0 };
    flp_status status = prepare(origin, variant, &request);

    *image = (flp_kernel_image){ .manifest = request.emitted.manifest };
    *found = 0;
    if (status == FLP_OK)
        status = load(origin, &request.key, image, found);
    finish(&request);
    return status;
}

flp_status flp_kernel_obtain_compiled(flp_kernel_origin *origin, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log)
{
    request request = { 0 };
    flp_status status = prepare(origin, variant, &request);

    *emitted = (flp_emitted){ 0 };
    *cubin = (flp_cubin){ 0 };
    if (log)
        *log = NULL;
    if (status == FLP_OK && request.can_compile != FLP_OK)
        status = flp_status_fail(request.can_compile, "kernel %s: %s", variant, request.obstacle);
    if (status == FLP_OK)
        status = compile(origin, NULL, &request, cubin, log);
    if (status == FLP_OK) {
        *emitted = request.emitted;
        request.emitted = (flp_emitted){ 0 };
    } else {
        flp_cubin_free(cubin);
    }
    finish(&request);
    return status;
}

void flp_kernel_image_free(flp_kernel_image *image)
{
    flp_cubin_free(&image->cubin);
    free(image->log);
    image->log = NULL;
}
