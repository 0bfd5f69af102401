/* NVRTC by dlopen: where it is, which build it is (without loading it), and compiling one source. */
#ifndef FLP_CUDA_NVRTC_H
#define FLP_CUDA_NVRTC_H
#include <stddef.h>
#include "fusedlogp.h"

typedef struct {
    char path[4096]; /* the file, or the bare name that the loader resolved */
    char build[96];  /* ELF build id (hex) of the file, read without loading it; else its versioned name and size */
} flp_nvrtc_facts;

/* Looks through the directories of FUSEDLOGP_NVRTC_PATH and LD_LIBRARY_PATH, $CUDA_HOME/lib64 (and $CUDA_PATH), the usual system directories,
 * /usr/local/cuda/lib64, the directory FUSEDLOGP_NVRTC_DIR configured at build time, the Python wheels' nvidia/.../lib beside a virtual environment
 * ($VIRTUAL_ENV) or below the user's site-packages; last asks the loader itself. Does not load it where a file is found. Cached for the process
 * once found. (cuda/nvrtc_find.c)
 * FLP_NO_NVRTC: lists where it looked. */
flp_status flp_nvrtc_find(flp_nvrtc_facts *facts);

/* MAJOR, MINOR of the loaded NVRTC; loads it. */
flp_status flp_nvrtc_version(int *major, int *minor);

typedef struct {
    char *cubin;
    size_t cubin_bytes; /* malloc'ed */
    char *ptx;          /* malloc'ed, 0-terminated */
    char *log;          /* malloc'ed, 0-terminated, with ptxas -v's report */
} flp_nvrtc_output;

/* source: one self-contained translation unit; name: what errors call it; arch: e.g. "sm_90a"; options: NULL-terminated list, to which
 * the architecture and, where this NVRTC knows it, -minimal are added.
 * May be called from several threads at once; each then compiles beside the others.
 * FLP_COMPILE_FAILED: the message holds the log's first lines and the options; output->log is the whole log also then.
 * FLP_NO_NVRTC, FLP_OUT_OF_MEMORY. Free output with flp_nvrtc_output_free in every case. */
flp_status flp_nvrtc_compile(const char *source, const char *name, const char *arch, const char *const *options, flp_nvrtc_output *output);
void flp_nvrtc_output_free(flp_nvrtc_output *output);
#endif
