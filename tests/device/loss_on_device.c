/* Copies of a loss case in device memory: the buffers of the three structures of which its data consist, by the same loop. */
#include "device/loss_on_device.h"

static void upload_all(const flp_case_buffer *host, int count, flp_device_case_buffer *to)
{
    for (int role = 0; role < count; role++)
        assert_succeeds(flp_device_case_upload_buffer(&flp_device_test.gpu, &host[role], flp_device_test.quick, &to[role]));
}

static void addresses_of(const flp_device_case_buffer *buffers, int count, void **addresses)
{
    for (int role = 0; role < count; role++)
        addresses[role] = flp_gpu_pointer(buffers[role].base);
}

void flp_loss_on_device_upload(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data, flp_loss_on_device *copy, flp_cross_entropy_case_call *call)
{
    void *forward[FLP_CASE_BUFFERS], *gradient[FLP_GRADIENT_BUFFERS], *own[FLP_CROSS_ENTROPY_BUFFERS];

    flp_cross_entropy_case_restore_outputs(data);
    upload_all(data->gradient.forward.buffer, FLP_CASE_BUFFERS, copy->forward);
    upload_all(data->gradient.own, FLP_GRADIENT_BUFFERS, copy->gradient);
    upload_all(data->own, FLP_CROSS_ENTROPY_BUFFERS, copy->own);
    addresses_of(copy->forward, FLP_CASE_BUFFERS, forward);
    addresses_of(copy->gradient, FLP_GRADIENT_BUFFERS, gradient);
    addresses_of(copy->own, FLP_CROSS_ENTROPY_BUFFERS, own);
    flp_cross_entropy_case_args(c, data, forward, gradient, own, call);
}

/* The first `outputs_from` buffers are inputs. */
static void download(const char *name, const flp_case_buffer *host, const flp_device_case_buffer *from, int count, int outputs_from, int *intact, char *message,
                     size_t bytes)
{
    for (int role = 0; role < count; role++)
        assert_succeeds(flp_device_case_download_buffer(&flp_device_test.gpu, name, &host[role], &from[role], role < outputs_from, intact, message, bytes));
}

void flp_loss_on_device_fetch(const flp_cross_entropy_case *c, const char *path, const flp_loss_on_device *copy, flp_cross_entropy_case_data *data)
{
    char message[512] = "";
    int intact = 1;

    assert_succeeds(flp_gpu_synchronize(&flp_device_test.gpu));
    download("an input", data->gradient.forward.buffer, copy->forward, FLP_CASE_BUFFERS, FLP_CASE_BUFFERS, &intact, message, sizeof(message));
    download("a gradient", data->gradient.own, copy->gradient, FLP_GRADIENT_BUFFERS, FLP_GRADIENT_HIDDEN, &intact, message, sizeof(message));
    download("the loss' buffers", data->own, copy->own, FLP_CROSS_ENTROPY_BUFFERS, FLP_CROSS_ENTROPY_LOSS, &intact, message, sizeof(message));
    if (copy->workspace.base)
        assert_succeeds(flp_device_case_download_buffer(&flp_device_test.gpu, "workspace", NULL, &copy->workspace, 0, &intact, message, sizeof(message)));
    if (!intact)
        fail_msg("%s, %s: %s", c->gradient.name, path, message);
}

double flp_loss_on_device_roundoff(const flp_cross_entropy_case *c)
{
    const flp_dtype dtype = c->problem.backward.forward.dtype;

    return dtype == FLP_BF16 ? 0x1p-8 : dtype == FLP_F16 ? 0x1p-11 : 0;
}
