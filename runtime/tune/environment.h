/* The machine that a tuning was measured on. Where it is another one, what was measured is near at best. */
#ifndef FLP_TUNE_ENVIRONMENT_H
#define FLP_TUNE_ENVIRONMENT_H
#include <stdint.h>

#include "cuda/device.h"
#include "fusedlogp.h"

enum { FLP_ENVIRONMENT_NAME_BYTES = 128 };

/* What is not known is 0 or "unknown". */
typedef struct {
    char device[FLP_ENVIRONMENT_NAME_BYTES]; /* the driver's name of it */
    int64_t multiprocessors, l2_bytes, power_limit_w;
    char mig[FLP_ENVIRONMENT_NAME_BYTES];    /* the profile, "1g.10gb", of a part of a GPU; "none" */
    char driver[FLP_ENVIRONMENT_NAME_BYTES]; /* its branch: "580" */
    char nvrtc[FLP_ENVIRONMENT_NAME_BYTES];  /* its build, as flp_nvrtc_find has it; "none" */
} flp_environment;

/* Describes a device and the libraries that this process finds; takes milliseconds. Never fails: this thread's error message stays. */
void flp_environment_describe(const flp_device *device, flp_environment *environment);

/* 1 where they are the same machine to a tuning. */
int flp_environment_same(const flp_environment *one, const flp_environment *other);

/* 1 where they are the same but for the driver and NVRTC, which change what the model may carry over from shape to shape little. */
int flp_environment_same_gpu(const flp_environment *one, const flp_environment *other);

/* What of a machine is another one here, in words: "its driver is 570, here 580"; the first that is; "": nothing is. */
enum { FLP_ENVIRONMENT_DIFFERENCE_BYTES = 128 };
void flp_environment_difference(const flp_environment *there, const flp_environment *here, char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES]);

/* What runs this process so that its times are not the machine's, in words: a debugger that traces it, or what compute-sanitizer, Nsight or another tool has
 * put into it; "": nothing that is known. */
enum { FLP_ENVIRONMENT_TOOL_BYTES = 192 };
void flp_environment_tool(char text[FLP_ENVIRONMENT_TOOL_BYTES]);
#endif
