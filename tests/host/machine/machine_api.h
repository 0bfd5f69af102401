/* What a test asks of the host machine, which runs kernels that were emitted for an architecture NAME@host. C and C++. */
#ifndef FLP_TESTS_HOST_MACHINE_API_H
#define FLP_TESTS_HOST_MACHINE_API_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    void (*body)(void **parameters);               /* one thread's work */
    const unsigned *parameter_bytes;               /* ends with 0 */
    int threads, shared_bytes, registers, cluster; /* the manifest's */
} flp_host_kernel;

typedef struct {
    const flp_host_kernel *kernel;
    unsigned grid[3];     /* blocks; x is a multiple of the cluster */
    void **parameters;    /* pointers to the parameters, as cuLaunchKernel takes them */
    int dependent_launch; /* the kernel may start before the previous one ends: it waits itself */
    uint64_t seed;        /* of the interleaving */
} flp_host_launch;

/* Runs the kernel to its end. 1, or 0 and the rule that it broke with where and by whom. */
int flp_host_machine_launch(const flp_host_launch *launch, char *message, size_t bytes);

/* Every place of a griddepcontrol.wait that an overlapping kernel has come to since the program began is numbered from 0. calls: how often; describe: the
 * kernel and the line. One of them can be without effect, as if it were not there; -1: all have theirs. Not while a kernel runs. */
int flp_host_machine_wait_count(void);
uint64_t flp_host_machine_wait_calls(int place);
void flp_host_machine_wait_describe(int place, char *text, size_t bytes);
void flp_host_machine_wait_ignore(int place);

/* Device memory: a kernel may touch what was added and not removed, to the byte. */
void flp_host_machine_add_memory(void *start, size_t bytes);
void flp_host_machine_remove_memory(void *start);

/* A part of device memory that launches hand each other, and whether it is one now. */
typedef struct {
    const char *name, *first, *last; /* the steps that it lives from and to */
    size_t offset, bytes;
    int lives;
} flp_host_workspace_part;

/* From now on the `bytes` from `start` on, of one allocation, may be touched in the parts that live, and nowhere else. step: what begins. */
void flp_host_machine_set_parts(void *start, size_t bytes, const flp_host_workspace_part *parts, int count, const char *step);

/* What cuTensorMapEncodeTiled is given, for two dimensions; swizzle: its enumeration, 0 none, 1 32, 2 64, 3 128 bytes. */
typedef struct {
    void *address;
    int element_bytes;
    uint64_t columns, rows, row_bytes;
    unsigned box_columns, box_rows;
    int swizzle;
} flp_host_tensor;

/* Writes the 128 bytes of a tensor map. NULL, or the rule of cuTensorMapEncodeTiled that the tensor breaks. */
const char *flp_host_tensor_map_encode(const flp_host_tensor *tensor, void *map);

#ifdef __cplusplus
}
#endif
#endif
