/* Copies of a case's buffers on the device, and checks that bands and inputs are unchanged. */
#include "device/device_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { BAND_FILL = 0xb7, WORKSPACE_FILL = 0xff };

static flp_status allocate(flp_gpu *gpu, size_t bytes, int tight, flp_device_case_buffer *buffer)
{
    const size_t bands = FLP_DEVICE_CASE_BAND_BYTES * (tight ? 1 : 2);
    flp_status status;

    *buffer = (flp_device_case_buffer){ .bytes = bytes, .has_back_band = !tight };
    status = flp_gpu_allocate(gpu, bytes + bands, &buffer->band);
    buffer->base = buffer->band + FLP_DEVICE_CASE_BAND_BYTES;
    return status == FLP_OK ? flp_gpu_set(gpu, buffer->band, BAND_FILL, bytes + bands) : status;
}

/* A tight copy ends with the last element: the guard after it is not copied. */
static size_t copied_bytes(const flp_case_buffer *host, int tight)
{
    return tight ? host->offset + host->data_bytes : host->bytes;
}

flp_status flp_device_case_upload_buffer(flp_gpu *gpu, const flp_case_buffer *host, int tight, flp_device_case_buffer *buffer)
{
    flp_status status;

    *buffer = (flp_device_case_buffer){ 0 };
    if (!host->base)
        return FLP_OK;
    status = allocate(gpu, copied_bytes(host, tight), tight, buffer);
    return status == FLP_OK ? flp_gpu_upload(gpu, buffer->base, host->base, buffer->bytes) : status;
}

flp_status flp_device_case_upload(flp_gpu *gpu, const flp_case_data *data, int tight, flp_device_case *on_device)
{
    flp_status status = FLP_OK;

    *on_device = (flp_device_case){ 0 };
    for (int role = 0; role < FLP_CASE_BUFFERS && status == FLP_OK; role++)
        status = flp_device_case_upload_buffer(gpu, &data->buffer[role], tight, &on_device->buffer[role]);
    return status;
}

flp_status flp_device_case_make_workspace(flp_gpu *gpu, int64_t bytes, int tight, flp_device_case_buffer *workspace)
{
    flp_status status = allocate(gpu, (size_t)bytes, tight, workspace);

    return status == FLP_OK ? flp_gpu_set(gpu, workspace->base, WORKSPACE_FILL, (size_t)bytes) : status;
}

flp_status flp_device_case_add_workspace(flp_gpu *gpu, int64_t bytes, int tight, flp_device_case *on_device)
{
    return flp_device_case_make_workspace(gpu, bytes, tight, &on_device->workspace);
}

void flp_device_case_args(const flp_case *c, const flp_case_data *data, const flp_device_case *on_device, flp_linear_logp_args *args)
{
    void *bases[FLP_CASE_BUFFERS];

    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        bases[role] = flp_gpu_pointer(on_device->buffer[role].base);
    flp_case_args(c, data, bases, args);
}

void flp_device_case_use_workspace(const flp_device_case *on_device, flp_linear_logp_args *args)
{
    args->workspace = flp_gpu_pointer(on_device->workspace.base);
    args->workspace_bytes = on_device->workspace.bytes;
}

flp_status flp_device_case_poison(const flp_gpu *gpu, flp_case_data *data, const flp_device_case *on_device)
{
    flp_status status = FLP_OK;

    flp_case_poison_outputs(data);
    for (int role = FLP_CASE_LOGP; role < FLP_CASE_BUFFERS && status == FLP_OK; role++)
        if (data->buffer[role].base)
            status = flp_gpu_upload(gpu, on_device->buffer[role].base, data->buffer[role].base, on_device->buffer[role].bytes);
    return status;
}

/* at: the offset of the band's first byte from the buffer's. */
static flp_status check_band(const flp_gpu *gpu, const char *name, CUdeviceptr band, int64_t at, int *intact, char *message, size_t bytes)
{
    unsigned char content[FLP_DEVICE_CASE_BAND_BYTES];
    flp_status status = flp_gpu_download(gpu, content, band, sizeof(content));

    for (int i = 0; status == FLP_OK && *intact && i < FLP_DEVICE_CASE_BAND_BYTES; i++)
        if (content[i] != BAND_FILL) {
            *intact = 0;
            snprintf(message, bytes, "%s: byte %lld of the buffer, which lies outside it, was written", name, (long long)(at + i));
        }
    return status;
}

static flp_status check_bands(const flp_gpu *gpu, const char *name, const flp_device_case_buffer *buffer, int *intact, char *message, size_t bytes)
{
    flp_status status;

    if (!buffer->band)
        return FLP_OK;
    status = check_band(gpu, name, buffer->band, -FLP_DEVICE_CASE_BAND_BYTES, intact, message, bytes);
    if (status == FLP_OK && buffer->has_back_band)
        status = check_band(gpu, name, buffer->base + buffer->bytes, (int64_t)buffer->bytes, intact, message, bytes);
    return status;
}

static flp_status check_input(const flp_gpu *gpu, const char *name, const flp_case_buffer *host, const flp_device_case_buffer *buffer, int *intact,
                              char *message, size_t bytes)
{
    void *content = malloc(buffer->bytes);
    flp_status status =
        content ? flp_gpu_download(gpu, content, buffer->base, buffer->bytes) : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a copy of %s", name);

    if (status == FLP_OK && *intact && memcmp(content, host->base, buffer->bytes) != 0) {
        *intact = 0;
        snprintf(message, bytes, "%s, an input, was written", name);
    }
    free(content);
    return status;
}

flp_status flp_device_case_download_buffer(const flp_gpu *gpu, const char *name, const flp_case_buffer *host, const flp_device_case_buffer *buffer,
                                           int is_input, int *intact, char *message, size_t bytes)
{
    flp_status status = check_bands(gpu, name, buffer, intact, message, bytes);

    if (status != FLP_OK || !buffer->band || !host)
        return status;
    if (is_input)
        return check_input(gpu, name, host, buffer, intact, message, bytes);
    return flp_gpu_download(gpu, host->base, buffer->base, buffer->bytes);
}

flp_status flp_device_case_download(const flp_gpu *gpu, flp_case_data *data, const flp_device_case *on_device, int *intact, char *message, size_t message_bytes)
{
    flp_status status = FLP_OK;

    *intact = 1;
    for (int role = 0; role < FLP_CASE_BUFFERS && status == FLP_OK; role++)
        status = flp_device_case_download_buffer(gpu, flp_case_role_names[role], &data->buffer[role], &on_device->buffer[role], role < FLP_CASE_LOGP, intact,
                                                 message, message_bytes);
    return status == FLP_OK ? check_bands(gpu, "workspace", &on_device->workspace, intact, message, message_bytes) : status;
}
