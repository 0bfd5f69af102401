/* A fake NVRTC, which compiles nothing: its cubin is "FAKE-CUBIN ARCH\n" and the source, its PTX "FAKE-PTX ARCH\n" and the source. A source with
 * #error is rejected. */
#ifndef FLP_TESTS_FAKE_NVRTC_H
#define FLP_TESTS_FAKE_NVRTC_H
#include <stdatomic.h>

typedef struct {
    int major, minor;
    int result;                       /* what nvrtcCompileProgram returns; 0: it follows from the source */
    int newest_arch;                  /* 90: it knows sm_90 and no other; 0: the usual ones */
    int create_result;                /* what nvrtcCreateProgram returns */
    atomic_int compiles;              /* calls of nvrtcCompileProgram */
    atomic_int at_once, most_at_once; /* compilations that ran side by side */
    atomic_int live_programs;
    int milliseconds;   /* how long a compilation takes */
    atomic_int *shared; /* NULL, or counts the compilations of all processes that share this memory */
    char options[1024]; /* of the last compilation, each followed by a newline */
} fake_nvrtc_state;

extern fake_nvrtc_state fake_nvrtc;

void fake_nvrtc_reset(void);
void *fake_nvrtc_symbol(const char *name);

/* Writes a file that looks like a shared object of this machine with the build id (hex digits, at most 40; "": none). */
void fake_nvrtc_write_library(const char *path, const char *build_id);
#endif
