/* One case of linear_logp's backward in device memory. */
#include "device/gradient_on_device.h"

static const char *const names[] = {
    [FLP_GRADIENT_LSE] = "lse",        [FLP_GRADIENT_LOGP] = "logp",           [FLP_GRADIENT_ENTROPY] = "entropy",    [FLP_GRADIENT_G_LOGP] = "g_logp",
    [FLP_GRADIENT_G_LSE] = "g_lse",    [FLP_GRADIENT_G_ENTROPY] = "g_entropy", [FLP_GRADIENT_HIDDEN] = "grad_hidden", [FLP_GRADIENT_WEIGHT] = "grad_weight",
    [FLP_GRADIENT_BIAS] = "grad_bias",
};

static void upload_all(const flp_case_buffer *host, int count, flp_device_case_buffer *copies, void **addresses)
{
    for (int role = 0; role < count; role++) {
        assert_succeeds(flp_device_case_upload_buffer(&flp_device_test.gpu, &host[role], flp_device_test.quick, &copies[role]));
        addresses[role] = flp_gpu_pointer(copies[role].base);
    }
}

void flp_gradient_on_device_upload(const flp_gradient_case *c, const flp_gradient_case_data *data, flp_gradient_on_device *copy,
                                   flp_linear_logp_backward_args *args)
{
    void *forward[FLP_CASE_BUFFERS], *own[FLP_GRADIENT_BUFFERS];

    upload_all(data->forward.buffer, FLP_CASE_BUFFERS, copy->forward, forward);
    upload_all(data->own, FLP_GRADIENT_BUFFERS, copy->own, own);
    flp_gradient_case_args(c, data, forward, own, args);
}

void flp_gradient_on_device_fetch(const flp_gradient_case *c, const char *call, const flp_gradient_on_device *copy, flp_gradient_case_data *data)
{
    const flp_gpu *gpu = &flp_device_test.gpu;
    char message[512] = "";
    int intact = 1;

    assert_succeeds(flp_gpu_synchronize(gpu));
    for (int role = 0; role < FLP_CASE_BUFFERS; role++)
        assert_succeeds(flp_device_case_download_buffer(gpu, "an input of the forward", &data->forward.buffer[role], &copy->forward[role], 1, &intact, message,
                                                        sizeof(message)));
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++)
        assert_succeeds(flp_device_case_download_buffer(gpu, names[role], &data->own[role], &copy->own[role], role < FLP_GRADIENT_HIDDEN, &intact, message,
                                                        sizeof(message)));
    assert_succeeds(flp_device_case_download_buffer(gpu, "workspace", NULL, &copy->workspace, 0, &intact, message, sizeof(message)));
    if (!intact)
        fail_msg("%s, %s: %s", c->name, call, message);
}
