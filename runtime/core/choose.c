/* Decides the path of a plan: sm_90a, then portable, then CPU. */
#include "core/choose.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/log.h"
#include "base/status.h"

static const char *const names[] = {
    [FLP_BACKEND_AUTO] = "auto", [FLP_BACKEND_SM90A] = "sm_90a", [FLP_BACKEND_PORTABLE] = "portable", [FLP_BACKEND_CPU] = "cpu"
};

const char *flp_backend_name(flp_backend backend)
{
    return (unsigned)backend <= FLP_BACKEND_CPU ? names[backend] : "unknown backend";
}

__attribute__((format(printf, 2, 3))) static flp_status choose_cpu(flp_choice *choice, const char *format, ...)
{
    va_list arguments;

    choice->path = FLP_BACKEND_CPU;
    va_start(arguments, format);
    flp_locale_print(choice->reason, sizeof(choice->reason), format, arguments);
    va_end(arguments);
    return FLP_OK;
}

flp_status flp_choose_refuse(flp_status status, flp_backend asked)
{
    if (status == FLP_WRONG_CONTEXT)
        return flp_status_prefix(status, "backend %s: a GPU is there, make its CUDA context current or ask for the CPU", names[asked]);
    return flp_status_prefix(status, "backend %s", names[asked]);
}

static flp_status select_kernels(flp_context *context, flp_backend backend, const flp_choice_wanted *wanted, const flp_device *device, flp_choice *choice)
{
    const flp_wanted_kernels kernels = { wanted->problem, device->facts.compute_capability, names[backend], wanted->tuning };

    return flp_generator_select(flp_kernel_store_generator(context->store), &kernels, &choice->selection);
}

/* Selects kernels. If they take tensor maps (TMA descriptors) that the driver cannot encode, portable kernels, which take none, are selected instead. missing:
 * receives the reason for that, or "". */
static flp_status select_for_driver(flp_context *context, const flp_choice_wanted *wanted, const flp_device *device, flp_choice *choice, char *missing,
                                    size_t bytes)
{
    const flp_driver *driver;
    flp_status status = select_kernels(context, wanted->backend, wanted, device, choice);

    *missing = 0;
    if (status == FLP_OK)
        status = flp_driver_get(&driver);
    if (status != FLP_OK || driver->tensor_map_encode_tiled || !choice->selection.tensor_maps)
        return status;
    if (wanted->backend != FLP_BACKEND_AUTO)
        return flp_status_fail(FLP_NO_VARIANT, "the CUDA driver has no cuTensorMapEncodeTiled");
    snprintf(missing, bytes, "not %s: the CUDA driver has no cuTensorMapEncodeTiled", choice->selection.path);
    return select_kernels(context, FLP_BACKEND_PORTABLE, wanted, device, choice);
}

static flp_status take_selection(flp_choice *choice, const char *missing)
{
    const flp_selection *selection = &choice->selection;

    if (strcmp(selection->path, names[FLP_BACKEND_SM90A]) == 0)
        choice->path = FLP_BACKEND_SM90A;
    else if (strcmp(selection->path, names[FLP_BACKEND_PORTABLE]) == 0)
        choice->path = FLP_BACKEND_PORTABLE;
    else
        return flp_status_fail(FLP_INTERNAL, "the generator chose the path \"%s\"", selection->path);
    snprintf(choice->reason, sizeof(choice->reason), "%s", *missing ? missing : selection->reason[0] ? selection->reason : "first choice");
    return FLP_OK;
}

flp_status flp_choose_ptx(flp_context *context, const flp_choice_wanted *wanted, const flp_device *device, const char *why, flp_choice *choice)
{
    flp_status status;

    if (wanted->backend != FLP_BACKEND_AUTO && wanted->backend != FLP_BACKEND_PORTABLE)
        return flp_status_fail(FLP_NO_VARIANT, "PTX is for the portable path");
    status = flp_generator_select(flp_kernel_store_generator(context->store),
                                  &(flp_wanted_kernels){ wanted->problem, device->facts.compute_capability, "ptx", "" }, &choice->selection);
    if (status != FLP_OK)
        return status;
    choice->path = FLP_BACKEND_PORTABLE;
    snprintf(choice->reason, sizeof(choice->reason), "%s: %s", choice->selection.reason, why);
    return FLP_OK;
}

static flp_status choose_on_device(flp_context *context, const flp_choice_wanted *wanted, const flp_device *device, flp_choice *choice)
{
    char missing[80], why[FLP_STATUS_MESSAGE_BYTES];
    flp_status status = select_for_driver(context, wanted, device, choice, missing, sizeof(missing));

    if (status == FLP_OK)
        return take_selection(choice, missing);
    flp_status_keep_message(why);
    if (status == FLP_NO_VARIANT && flp_choose_ptx(context, wanted, device, why, choice) == FLP_OK)
        return FLP_OK;
    flp_status_restore_message(why);
    if (status != FLP_NO_VARIANT || wanted->backend != FLP_BACKEND_AUTO || wanted->stays_on_gpu)
        return flp_choose_refuse(status, wanted->backend);
    choose_cpu(choice, "%s%s%s", missing, *missing ? "; " : "", flp_error_message());
    flp_log_warning("%s runs on the CPU beside %s: %s", wanted->problem, device->facts.name, choice->reason);
    return FLP_OK;
}

flp_status flp_choose_path(flp_context *context, const flp_choice_wanted *wanted, flp_device *device, flp_choice *choice)
{
    const flp_backend asked = wanted->backend;
    flp_status status;

    *choice = (flp_choice){ 0 };
    *device = (flp_device){ 0 };
    if (asked == FLP_BACKEND_CPU)
        return choose_cpu(choice, "asked for");
    if (context->flags & FLP_CONTEXT_NO_GPU) {
        if (asked == FLP_BACKEND_AUTO)
            return choose_cpu(choice, "the context has FLP_CONTEXT_NO_GPU");
        return flp_choose_refuse(flp_status_fail(FLP_NO_VARIANT, "the context has FLP_CONTEXT_NO_GPU"), asked);
    }
    status = flp_device_current(device);
    if (status == FLP_NO_DRIVER && asked == FLP_BACKEND_AUTO)
        return choose_cpu(choice, "%s", flp_error_message());
    if (status != FLP_OK)
        return flp_choose_refuse(status, asked);
    return choose_on_device(context, wanted, device, choice);
}
