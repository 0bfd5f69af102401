/* A loader without libraries: libcuda, NVRTC and NVML are the fakes beside this file, files are those below one directory. */
#ifndef FLP_TESTS_FAKE_LIBRARY_H
#define FLP_TESTS_FAKE_LIBRARY_H

typedef struct {
    int driver, nvrtc;   /* 1: it is installed; driver 2: without the version in its name */
    int nvml, nccl;      /* likewise; none to begin with */
    const char *missing; /* a symbol that neither has, or NULL */
    const char *root;    /* the only directory whose files are readable; NULL: none */
    const char *origin;  /* where a symbol says that it comes from, or NULL */
    char opened[4096];   /* what was opened, one name a line */
} fake_library_state;

extern fake_library_state fake_library;

/* Resets all fakes to a machine with one H100-like device, its context current, and NVRTC 13.0 by its bare name; the library then
 * forgets what it loaded. */
void fake_library_install(void);
#endif
