/* NVRTC by dlopen: finds it, identifies its build without loading it, and compiles one source. */
#ifndef FLP_CUDA_NVRTC_H
#define FLP_CUDA_NVRTC_H
#include <stddef.h>
#include "fusedlogp.h"

typedef struct {
    char path[4096]; /* of the file, or the bare name that the loader resolved */
    char build[96];  /* the file's ELF build id in hexadecimal, read without loading it; without a build id the file's versioned name and size */
} flp_nvrtc_facts;

/* The oldest NVRTC that has all that is used, and what a message says where there is none that can be used. */
enum { FLP_NVRTC_LEAST_MAJOR = 12 };
#define FLP_NVRTC_ADVICE "install NVRTC 12.0 or newer (pip install nvidia-cuda-nvrtc), or set FUSEDLOGP_NVRTC_PATH to its directory"

/* Finds NVRTC (cuda/nvrtc_find.c). It is looked for, in this order, in the directories of FUSEDLOGP_NVRTC_PATH and LD_LIBRARY_PATH, in $CUDA_HOME/lib64 and
 * $CUDA_PATH/lib64, in the usual system directories, in /usr/local/cuda/lib64, in the directory FUSEDLOGP_NVRTC_DIR configured at build time, in the
 * Python wheels' nvidia/.../lib below the virtual environment ($VIRTUAL_ENV), in conda's environment ($CONDA_PREFIX/lib) and in the wheels below that, below
 * the user's site-packages and below /usr/local/lib; last the loader is asked, which loads it. A file is passed over where it is no library of this machine,
 * or where its name, after symbolic links are resolved, says a version below 12. Where a file is found before the loader is asked, it is not loaded. What was
 * found is kept for the process. FLP_NO_NVRTC: the message lists the places, and the files that were passed over. */
flp_status flp_nvrtc_find(flp_nvrtc_facts *facts);

/* The version of NVRTC, which this loads. FLP_NO_NVRTC; both are then 0. */
flp_status flp_nvrtc_version(int *major, int *minor);

typedef struct {
    char *cubin;
    size_t cubin_bytes; /* malloc'ed */
    char *ptx;          /* malloc'ed, 0-terminated */
    char *log;          /* malloc'ed, 0-terminated, with ptxas -v's report */
} flp_nvrtc_output;

/* Compiles source, one self-contained translation unit. name: the source's name in errors; arch: e.g. "sm_90a"; options: NULL-terminated list, to which
 * the architecture and, where this NVRTC knows it, -minimal are added.
 * May be called from several threads at once, which then compile in parallel.
 * FLP_COMPILE_FAILED: the message holds the options and the log's first lines, and output->log is the whole log.
 * FLP_NO_NVRTC, FLP_OUT_OF_MEMORY. Free output with flp_nvrtc_output_free in every case. */
flp_status flp_nvrtc_compile(const char *source, const char *name, const char *arch, const char *const *options, flp_nvrtc_output *output);
void flp_nvrtc_output_free(flp_nvrtc_output *output);
#endif
