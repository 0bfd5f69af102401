/* A small call of each operator on the device, for tests of execution rather than of numbers: its plan, arguments, outputs and their bits. */
#ifndef FLP_TESTS_DEVICE_OPERATION_H
#define FLP_TESTS_DEVICE_OPERATION_H
#include "device/device_test.h"

enum { FLP_OPERATION_ROWS = 300, FLP_OPERATION_HIDDEN = 256, FLP_OPERATION_VOCAB = 5003, FLP_OPERATION_OUTPUTS = 5 };

/* The inputs, which all operations of a test share. Some targets are ignored, none is bad. */
typedef struct {
    CUdeviceptr hidden, weight, logits, target, lse, g;
    int64_t targets[FLP_OPERATION_ROWS];
} flp_operation_inputs;

typedef struct flp_operation flp_operation;

typedef struct {
    const char *name;
    int has_targets;
    flp_status (*create)(flp_operation *operation);
    flp_status (*execute)(flp_operation *operation); /* by the plan, in the workspace */
    flp_status (*call)(flp_operation *operation);    /* without a plan or a workspace */
    flp_status (*prepare)(flp_operation *operation);
} flp_operation_kind;

extern const flp_operation_kind flp_operation_kinds[];
int flp_operation_kind_count(void);

struct flp_operation {
    const flp_operation_kind *kind;
    const flp_operation_inputs *inputs;
    flp_context *context;
    flp_plan *plan;
    CUstream stream;
    int64_t rows;
    CUdeviceptr workspace;
    size_t workspace_bytes;
    CUdeviceptr output[FLP_OPERATION_OUTPUTS];
    size_t output_bytes[FLP_OPERATION_OUTPUTS]; /* 0: there are no more */
};

void flp_operation_make_inputs(flp_operation_inputs *inputs);

/* Makes an operation with a plan, a workspace and outputs of its own, on stream. */
void flp_operation_open(const flp_operation_kind *kind, const flp_operation_inputs *inputs, CUstream stream, flp_operation *operation);
void flp_operation_close(flp_operation *operation);

/* Fills the outputs with 0xff, on the device. */
void flp_operation_poison(const flp_operation *operation);
/* Waits for the device. Returns the outputs' bytes, one output after the other, malloc'ed. */
unsigned char *flp_operation_fetch(const flp_operation *operation, size_t *bytes);
/* Fails the test unless the outputs are these bytes. */
void flp_operation_expect(const flp_operation *operation, const unsigned char *wanted, const char *what);
#endif
