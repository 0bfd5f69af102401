/* A case of tests/cases.h on the GPU: each buffer is between two guard bands, and outputs and the workspace are poisoned. */
#ifndef FLP_TESTS_DEVICE_DEVICE_CASE_H
#define FLP_TESTS_DEVICE_DEVICE_CASE_H
#include "cases.h"
#include "device/gpu.h"

enum { FLP_DEVICE_CASE_BAND_BYTES = 4096 };

typedef struct {
    CUdeviceptr band, base; /* the front band, and the buffer after it; 0 if the case has no such buffer */
    size_t bytes;           /* of the buffer, without the bands */
    int has_back_band;
} flp_device_case_buffer;

typedef struct {
    flp_device_case_buffer buffer[FLP_CASE_BUFFERS], workspace;
} flp_device_case;

/* Copies one buffer of a case, guards included; nothing if the host has none. tight: see flp_device_case_upload. */
flp_status flp_device_case_upload_buffer(flp_gpu *gpu, const flp_case_buffer *host, int tight, flp_device_case_buffer *buffer);

/* Copies an output back to host, and checks the bands and, of an input, the whole buffer: *intact = 0 and a message if one was written. host NULL: a workspace,
 * of which only the bands are checked. */
flp_status flp_device_case_download_buffer(const flp_gpu *gpu, const char *name, const flp_case_buffer *host, const flp_device_case_buffer *buffer,
                                           int is_input, int *intact, char *message, size_t bytes);

/* Makes a workspace of so many bytes, all 0xff, between bands. */
flp_status flp_device_case_make_workspace(flp_gpu *gpu, int64_t bytes, int tight, flp_device_case_buffer *workspace);

/* Copies the case's buffers, guards included. tight: a buffer's allocation ends with its last element and has no band after it, so that a sanitizer sees an
 * access to the first byte past its end. flp_gpu_free_all frees the memory. */
flp_status flp_device_case_upload(flp_gpu *gpu, const flp_case_data *data, int tight, flp_device_case *on_device);

/* Gives the case a workspace of exactly so many bytes, all 0xff, between bands. */
flp_status flp_device_case_add_workspace(flp_gpu *gpu, int64_t bytes, int tight, flp_device_case *on_device);

/* Fills in device pointers; no workspace. */
void flp_device_case_args(const flp_case *c, const flp_case_data *data, const flp_device_case *on_device, flp_linear_logp_args *args);
void flp_device_case_use_workspace(const flp_device_case *on_device, flp_linear_logp_args *args);

/* Poisons the outputs again, on the device. */
flp_status flp_device_case_poison(const flp_gpu *gpu, flp_case_data *data, const flp_device_case *on_device);

/* Copies the outputs back to data. *intact = 0 and a message if a band or an input was written. */
flp_status flp_device_case_download(const flp_gpu *gpu, flp_case_data *data, const flp_device_case *on_device, int *intact, char *message,
                                    size_t message_bytes);
#endif
