/* The device memory of fusedlogp score: weight and bias are copied once, all that has rows is copied chunk by chunk. */
#include "cli/score_gpu.h"
#include <inttypes.h>
#include <string.h>
#include "base/dtype.h"
#include "base/status.h"
#include "base/text.h"

/* Larger chunks do not keep the device busier; they only wait longer for their copies. */
#define MOST_USEFUL_ROWS 65536
/* The part of the free memory that is used. The rest is left to the kernels' scratch, the modules and whoever else allocates meanwhile. */
#define USABLE_EIGHTHS 7
/* Results of a row, four bytes each: logp, lse, entropy, argmax. */
#define RESULTS 4

flp_status flp_score_gpu_open(const flp_driver *driver, int ordinal, int wraps, flp_score_gpu *gpu)
{
    int count = 0;
    CUcontext context;
    memset(gpu, 0, sizeof *gpu);
    flp_status status = flp_driver_check(driver, driver->device_count(&count), "cuDeviceGetCount");
    if (status != FLP_OK)
        return status;
    if (wraps && count > 0)
        ordinal %= count;
    if (ordinal >= count)
        return flp_status_fail(FLP_NO_DRIVER, "--device: got %d, and the driver shows %d device%s", ordinal, count, flp_text_plural(count));
    gpu->ordinal = ordinal;
    status = flp_driver_check(driver, driver->device_get(&gpu->device, ordinal), "cuDeviceGet");
    if (status != FLP_OK)
        return status;
    status = flp_driver_check(driver, driver->primary_retain(&context, gpu->device), "cuDevicePrimaryCtxRetain");
    if (status != FLP_OK)
        return status;
    gpu->driver = driver;
    status = flp_driver_check(driver, driver->context_set_current(context), "cuCtxSetCurrent");
    if (status != FLP_OK)
        return status;
    return flp_driver_check(driver, driver->stream_create(&gpu->stream, 0), "cuStreamCreate");
}

void flp_score_gpu_close(flp_score_gpu *gpu)
{
    if (gpu->driver == NULL)
        return;
    for (int i = 0; i < FLP_SCORE_BUFFERS; i++)
        if (gpu->buffer[i] != 0)
            gpu->driver->memory_free(gpu->buffer[i]);
    if (gpu->stream != NULL)
        gpu->driver->stream_destroy(gpu->stream);
    gpu->driver->context_set_current(NULL);
    gpu->driver->primary_release(gpu->device);
    memset(gpu, 0, sizeof *gpu);
}

static int64_t hidden_row_bytes(const flp_score_inputs *inputs)
{
    return inputs->problem.hidden * flp_dtype_bytes(inputs->problem.dtype);
}

flp_status flp_score_gpu_chunk(const flp_score_gpu *gpu, const flp_score_inputs *inputs, int64_t wanted, int64_t *rows)
{
    size_t free_bytes, total_bytes;
    flp_status status = flp_driver_check(gpu->driver, gpu->driver->memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    if (status != FLP_OK)
        return status;
    int64_t row_bytes = hidden_row_bytes(inputs) + flp_dtype_bytes(inputs->problem.target_dtype) + RESULTS * (int64_t)sizeof(float);
    int64_t usable = (int64_t)(free_bytes / 8 * USABLE_EIGHTHS) - (int64_t)inputs->weight.bytes - (int64_t)inputs->bias.bytes;
    int64_t fitting = usable > 0 ? usable / row_bytes : 0;
    *rows = wanted ? wanted : fitting < MOST_USEFUL_ROWS ? fitting : MOST_USEFUL_ROWS;
    if (*rows > inputs->problem.rows)
        *rows = inputs->problem.rows;
    if (*rows < 1)
        *rows = 1;
    if (*rows <= fitting)
        return FLP_OK;
    return flp_status_fail(FLP_OUT_OF_MEMORY,
                           "device %d: weight and bias take %zu bytes and a chunk of %" PRId64 " rows %" PRId64 "; of %zu bytes free, 7/8 "
                           "are used; %s",
                           gpu->ordinal, inputs->weight.bytes + inputs->bias.bytes, *rows, *rows * row_bytes, free_bytes,
                           fitting ? "wanted a smaller --chunk-rows" : "--backend cpu needs no device memory");
}

static flp_status upload(flp_score_gpu *gpu, int buffer, const void *from, size_t bytes)
{
    if (bytes == 0)
        return FLP_OK;
    return flp_driver_check(gpu->driver, gpu->driver->copy_to_device(gpu->buffer[buffer], from, bytes, gpu->stream), "cuMemcpyHtoDAsync");
}

static flp_status download(flp_score_gpu *gpu, int buffer, void *to, int64_t rows)
{
    if (to == NULL || rows == 0)
        return FLP_OK;
    size_t bytes = (size_t)rows * sizeof(float);
    return flp_driver_check(gpu->driver, gpu->driver->copy_to_host(to, gpu->buffer[buffer], bytes, gpu->stream), "cuMemcpyDtoHAsync");
}

flp_status flp_score_gpu_load(flp_score_gpu *gpu, const flp_score_inputs *inputs, const flp_plan *plan, int64_t rows)
{
    gpu->workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, rows);
    size_t row_words = (size_t)rows * sizeof(float);
    const size_t bytes[FLP_SCORE_BUFFERS] = { [FLP_SCORE_WEIGHT] = inputs->weight.bytes,
                                              [FLP_SCORE_BIAS] = inputs->bias.bytes,
                                              [FLP_SCORE_HIDDEN] = (size_t)(rows * hidden_row_bytes(inputs)),
                                              [FLP_SCORE_TARGET] = (size_t)(rows * flp_dtype_bytes(inputs->problem.target_dtype)),
                                              [FLP_SCORE_LOGP] = row_words,
                                              [FLP_SCORE_LSE] = row_words,
                                              [FLP_SCORE_ENTROPY] = row_words,
                                              [FLP_SCORE_ARGMAX] = row_words,
                                              [FLP_SCORE_WORKSPACE] = gpu->workspace_bytes };
    for (int i = 0; i < FLP_SCORE_BUFFERS; i++) {
        if (bytes[i] == 0)
            continue;
        flp_status status = flp_driver_check(gpu->driver, gpu->driver->memory_allocate(&gpu->buffer[i], bytes[i]), "cuMemAlloc");
        if (status != FLP_OK)
            return flp_status_prefix(status, "%zu bytes", bytes[i]);
    }
    flp_status status = upload(gpu, FLP_SCORE_WEIGHT, inputs->weight.data, inputs->weight.bytes);
    if (status == FLP_OK)
        status = upload(gpu, FLP_SCORE_BIAS, inputs->bias.data, inputs->bias.bytes);
    return status;
}

static void *device_pointer(const flp_score_gpu *gpu, int buffer)
{
    return (void *)(uintptr_t)gpu->buffer[buffer];
}

flp_status flp_score_gpu_execute(flp_score_gpu *gpu, const flp_score_inputs *inputs, flp_plan *plan, const flp_linear_logp_args *args)
{
    int64_t rows = args->rows;
    flp_linear_logp_args on_device = *args;
    on_device.hidden = device_pointer(gpu, FLP_SCORE_HIDDEN);
    on_device.weight = device_pointer(gpu, FLP_SCORE_WEIGHT);
    on_device.bias = args->bias ? device_pointer(gpu, FLP_SCORE_BIAS) : NULL;
    on_device.target = device_pointer(gpu, FLP_SCORE_TARGET);
    on_device.logp = device_pointer(gpu, FLP_SCORE_LOGP);
    on_device.lse = args->lse ? device_pointer(gpu, FLP_SCORE_LSE) : NULL;
    on_device.entropy = args->entropy ? device_pointer(gpu, FLP_SCORE_ENTROPY) : NULL;
    on_device.argmax = args->argmax ? device_pointer(gpu, FLP_SCORE_ARGMAX) : NULL;
    on_device.workspace = device_pointer(gpu, FLP_SCORE_WORKSPACE);
    on_device.workspace_bytes = gpu->workspace_bytes;
    on_device.stream = gpu->stream;

    flp_status status = upload(gpu, FLP_SCORE_HIDDEN, args->hidden, (size_t)(rows * hidden_row_bytes(inputs)));
    if (status == FLP_OK)
        status = upload(gpu, FLP_SCORE_TARGET, args->target, (size_t)(rows * flp_dtype_bytes(inputs->problem.target_dtype)));
    if (status == FLP_OK)
        status = flp_score_execute(inputs, plan, &on_device);
    if (status == FLP_OK)
        status = download(gpu, FLP_SCORE_LOGP, args->logp, rows);
    if (status == FLP_OK)
        status = download(gpu, FLP_SCORE_LSE, args->lse, rows);
    if (status == FLP_OK)
        status = download(gpu, FLP_SCORE_ENTROPY, args->entropy, rows);
    if (status == FLP_OK)
        status = download(gpu, FLP_SCORE_ARGMAX, args->argmax, rows);
    if (status != FLP_OK)
        return status;
    return flp_driver_check(gpu->driver, gpu->driver->stream_synchronize(gpu->stream), "cuStreamSynchronize");
}
