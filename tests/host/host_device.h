/* A device that is the host machine: the library plans, compiles, loads and launches as on a GPU, and kernels run here. */
#ifndef FLP_TESTS_HOST_DEVICE_H
#define FLP_TESTS_HOST_DEVICE_H
#include "device/gpu.h"

typedef struct {
    uint64_t seed; /* of the next launch; each launch takes another */
    int launches;
    int no_nvrtc;       /* 1: it is not installed; set behind flp_host_device_install */
    char failure[4096]; /* of the first launch that broke a rule since the start; "": none did */
} flp_host_device_state;

extern flp_host_device_state flp_host_device;

/* Replaces libcuda and NVRTC: one device of the compute capability (80 or 90), few multiprocessors, an empty memory. A kernel is compiled
 * for the host when NVRTC is asked to compile it. Device pointers are host pointers. */
void flp_host_device_install(int compute_capability);
#endif
