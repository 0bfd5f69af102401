/* A CUDA driver without a device: it counts calls, fails on demand, and keeps device memory in host memory. */
#ifndef FLP_TESTS_FAKE_DRIVER_H
#define FLP_TESTS_FAKE_DRIVER_H
#include <stdatomic.h>
#include <stdint.h>
#include "cuda/cuda_abi.h"

/* FAKE_init, FAKE_launch, ...: one for each field of flp_driver. */
enum {
#define FAKE_INDEX(field, symbol, parameters) FAKE_##field,
    FLP_DRIVER_FUNCTIONS(FAKE_INDEX) FLP_DRIVER_OPTIONAL_FUNCTIONS(FAKE_INDEX)
#undef FAKE_INDEX
        FAKE_FUNCTIONS
};

typedef struct {
    const char *kernel; /* name of the function */
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    void **parameters;    /* valid during on_launch only */
    int dependent_launch; /* launched with programmatic stream serialization */
} fake_launch;

typedef struct {
    unsigned long long stream, behind; /* ids: of the stream that waits, and of the stream whose work it waits for */
} fake_wait;

/* What was put on a stream: a launch, a record of an event, a wait for one, or an NCCL collective. */
typedef enum { FAKE_LAUNCHED, FAKE_RECORDED, FAKE_WAITED, FAKE_EXCHANGED } fake_work_kind;
typedef struct {
    fake_work_kind kind;
    CUstream stream;
    CUevent event;      /* recorded, or waited for */
    const char *kernel; /* launched */
} fake_work;

enum { FAKE_CONTEXTS = 4, FAKE_LAUNCHES = 64, FAKE_WORKS = 64 };

typedef struct {
    int version, devices;
    int major, minor, multiprocessors, shared_bytes, l2_bytes;
    int clock_khz, memory_clock_khz, memory_bits;
    const char *name; /* of every device; NULL: "Fake GPU" and its number */
    size_t memory_bytes;
    _Atomic(CUcontext) current;    /* of every thread */
    int clusters;                  /* what cuOccupancyMaxActiveClusters says; 0: a number that follows from multiprocessors */
    unsigned long long stream_age; /* part of each stream's id: adding 1 turns every handle into that of a new stream */
    fake_wait wait;                /* the last one */
    atomic_int live_events;        /* created and not destroyed */
    int keeps_works;               /* 1: `work` records what is put on streams; only for tests with one thread */
    int works;                     /* how many there were since this was set to 0; the first FAKE_WORKS are recorded */
    fake_work work[FAKE_WORKS];
    int capture;                              /* what cuStreamIsCapturing says */
    atomic_int calls[FAKE_FUNCTIONS];         /* FAKE_...: how often it was called */
    CUresult failure[FAKE_FUNCTIONS];         /* the result that it returns instead of doing its work, */
    atomic_int failures[FAKE_FUNCTIONS];      /* for so many more calls; negative: for all */
    _Atomic(int64_t) live_bytes, live_blocks; /* device memory that is not freed */
    atomic_int live_modules;                  /* loaded and not unloaded */
    atomic_int ptx_modules;                   /* images that were PTX */
    void (*on_init)(void);                    /* NULL, or called by cuInit */
    int (*local_bytes)(const char *image);    /* the local memory of a thread in the image's kernels; NULL: 0 */
    int launches;                             /* since the reset; the first FAKE_LAUNCHES are kept */
    fake_launch launch[FAKE_LAUNCHES];
    void (*on_launch)(const fake_launch *launch); /* NULL, or called in the launch */
    void (*on_call)(int function); /* NULL, or called when a function begins, with its FAKE_...: does what other threads or the device do meanwhile */
    struct {                       /* arguments of the last cuTensorMapEncodeTiled and of the one before */
        int dtype, swizzle, interleave, l2_promotion, fill;
        unsigned rank;
        void *address;
        uint64_t dimensions[2], stride_bytes;
        uint32_t box[2], element_strides[2];
    } map, map_before;
} fake_driver_state;

extern fake_driver_state fake_driver;

void fake_driver_reset(void);
void *fake_driver_symbol(const char *name);

/* The next `times` calls of function (FAKE_...) return result; times -1: all. */
void fake_driver_fail(int function, CUresult result, int times);

/* The contexts 0 .. FAKE_CONTEXTS - 1, all of device 0, with ids 1000, 1001, ... */
CUcontext fake_driver_context(int number);
void fake_driver_destroy_context(int number);

/* Records work, if keeps_works. */
void fake_driver_put(fake_work work);
/* Of the first `works` that were recorded, a set (a bit each) of those that must be done before work that is put on `stream` after them: because they are on
 * this stream, or by way of events. */
uint64_t fake_driver_behind(int works, CUstream stream);
/* The index in `work` of the last launch of a kernel whose name contains this; -1: there is none. */
int fake_driver_last_work(const char *kernel);

/* The stream's id, as cuStreamGetId gives it. (During a capture cuStreamGetId fails with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.) */
unsigned long long fake_driver_stream_id(CUstream stream);

/* The shared memory that cuFuncSetAttribute allowed the function; 0: it was not called. */
int fake_driver_function_shared_bytes(CUfunction function);
#endif
