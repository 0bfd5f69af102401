/* Which path answers a problem, and why. */
#ifndef FLP_CORE_CHOOSE_H
#define FLP_CORE_CHOOSE_H
#include "core/context.h"

typedef struct {
    flp_backend path;        /* FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU */
    char reason[1024];       /* why this path; never empty */
    flp_selection selection; /* GPU paths: the variants */
} flp_choice;

typedef struct {
    const char *problem; /* its canonical string and the operator's hint */
    const char *tuning;  /* of the kernels; "": none */
    flp_backend backend; /* the requested one */
    int stays_on_gpu;    /* as flp_operator's */
} flp_choice_wanted;

/* Chooses the requested backend, or else the first of sm_90a, portable and CPU that has kernels for the problem. On a GPU path *device is the device of the
 * current CUDA context. If there is a GPU but no current CUDA context, that is FLP_WRONG_CONTEXT, and never the CPU path.
 * FLP_NO_VARIANT: the backend has no kernels for the problem. FLP_NO_DRIVER: a GPU backend is requested, and there is no driver. FLP_FORKED. */
flp_status flp_choose_path(flp_context *context, const flp_choice_wanted *wanted, flp_device *device, flp_choice *choice);

/* Puts the requested backend, and for FLP_WRONG_CONTEXT what to do, in front of the message of this status. Returns the status. */
flp_status flp_choose_refuse(flp_status status, flp_backend asked);

/* For a GPU that is newer than the library, or than NVRTC: chooses portable kernels of an older GPU as PTX, which the driver compiles. why: the reason why
 * there are no kernels of the GPU's own, which choice->reason repeats. FLP_NO_VARIANT: the GPU is not newer, another path was requested, or the problem has no
 * such kernels. */
flp_status flp_choose_ptx(flp_context *context, const flp_choice_wanted *wanted, const flp_device *device, const char *why, flp_choice *choice);
#endif
