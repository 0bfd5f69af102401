/* A dynamic loader without libraries: libcuda, NVRTC, NVML and NCCL are the fakes of this folder, and only files below one directory are readable. */
#ifndef FLP_TESTS_FAKE_LIBRARY_H
#define FLP_TESTS_FAKE_LIBRARY_H

typedef struct {
    int driver, nvrtc;   /* 1: it is installed; driver 2: without the version in its name */
    int nvml, nccl;      /* 1: it is installed; at first neither is */
    const char *missing; /* a symbol that no library has, or NULL */
    const char *root;    /* the only directory whose files are readable; NULL: none */
    const char *origin;  /* the file from which symbols claim to come, or NULL */
    char opened[4096];   /* what was opened, one name a line */
} fake_library_state;

extern fake_library_state fake_library;

/* Resets all fakes to a machine with one H100-like device, whose context is current, and with an NVRTC 13.0 that is found by its bare name. The library then
 * forgets what it has loaded. */
void fake_library_install(void);
#endif
