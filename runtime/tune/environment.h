/* The machine that a tuning was measured on. On another machine, its record is "nearby" at best. */
#ifndef FLP_TUNE_ENVIRONMENT_H
#define FLP_TUNE_ENVIRONMENT_H
#include <stdint.h>

#include "cuda/device.h"
#include "fusedlogp.h"

enum { FLP_ENVIRONMENT_NAME_BYTES = 128 };

/* What is not known is 0 or "unknown". */
typedef struct {
    char device[FLP_ENVIRONMENT_NAME_BYTES]; /* its name, as the driver gives it */
    int64_t multiprocessors, l2_bytes, power_limit_w;
    char mig[FLP_ENVIRONMENT_NAME_BYTES];    /* the profile of a MIG instance: "1g.10gb"; "none": it is a whole GPU */
    char driver[FLP_ENVIRONMENT_NAME_BYTES]; /* its branch: "580" */
    char nvrtc[FLP_ENVIRONMENT_NAME_BYTES];  /* its build, as flp_nvrtc_find has it; "none" */
} flp_environment;

/* Describes a device and the libraries that this process finds; takes milliseconds. Never fails: this thread's error message stays. */
void flp_environment_describe(const flp_device *device, flp_environment *environment);

/* 1: all fields are equal, so that for a tuning the two are the same machine. */
int flp_environment_same(const flp_environment *one, const flp_environment *other);

/* 1: all fields are equal except for the driver and NVRTC, which hardly matter for what the model carries over from one shape to another. */
int flp_environment_same_gpu(const flp_environment *one, const flp_environment *other);

/* The first difference between a machine and this one, in words: "its driver is 570, here 580"; "": there is none. */
enum { FLP_ENVIRONMENT_DIFFERENCE_BYTES = 128 };
void flp_environment_difference(const flp_environment *there, const flp_environment *here, char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES]);

/* The tool that distorts the times of this process, in words: a debugger that traces it, or a library that compute-sanitizer, Nsight or another tool has loaded
 * into it; "": no known tool. */
enum { FLP_ENVIRONMENT_TOOL_BYTES = 192 };
void flp_environment_tool(char text[FLP_ENVIRONMENT_TOOL_BYTES]);
#endif
