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
    const char *problem; /* its canonical string, with the operator's hint */
    const char *tuning;  /* of the kernels; "": none */
    flp_backend backend; /* the one that is asked for */
    int stays_on_gpu;    /* the operator's */
} flp_choice_wanted;

/* sm_90a, then portable, then CPU, unless a backend is asked for. On a GPU path *device is the one of the CUDA context that is current here.
 * A device without a current CUDA context is FLP_WRONG_CONTEXT and never the CPU path.
 * FLP_NO_VARIANT: the backend cannot answer it; FLP_NO_DRIVER: ... because no driver is there; FLP_FORKED. */
flp_status flp_choose_path(flp_context *context, const flp_choice_wanted *wanted, flp_device *device, flp_choice *choice);

/* For a GPU that is newer than the library, or than its NVRTC: portable kernels of an older one, whose PTX the driver compiles. why: what stands
 * against its own, for the reason. FLP_NO_VARIANT: the GPU is not newer, another path was asked for, or the problem has no such kernels. */
flp_status flp_choose_ptx(flp_context *context, const flp_choice_wanted *wanted, const flp_device *device, const char *why, flp_choice *choice);
#endif
