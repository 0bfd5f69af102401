/* The manifest of an emitted kernel: what a launch needs to know of it. Its text form has a line "name value" for each field, in the order below;
 * gen/emit.lua writes it, the cubin cache stores it, and a text with other fields or another order is refused. */
#ifndef FLP_JIT_MANIFEST_H
#define FLP_JIT_MANIFEST_H
#include "fusedlogp.h"

#define FLP_VARIANT_BYTES 192

/* TEXT(name, bytes), NUMBER(name, least value), in the order of the text form. */
#define FLP_MANIFEST_FIELDS(TEXT, NUMBER)                                                                                                           \
    TEXT(variant, FLP_VARIANT_BYTES) /* canonical string */                                                                                         \
    TEXT(kernel, FLP_VARIANT_BYTES)  /* the extern "C" name */                                                                                      \
    TEXT(arch, 16)                   /* what NVRTC compiles for: "sm_90a" */                                                                        \
    NUMBER(threads, 1)               /* threads of a block */                                                                                       \
    NUMBER(shared_bytes, 0)          /* bytes of dynamic shared memory */                                                                           \
    NUMBER(registers, 1)             /* the most registers of a thread (a test compares ptxas's number) */                                          \
    NUMBER(local_bytes, 0)           /* bytes of local memory that a thread uses on purpose, for values that few tiles need; more are spills */     \
    NUMBER(cluster, 1)               /* blocks of a cluster, along x; also an attribute of the kernel */                                            \
    NUMBER(resident_blocks, 1)       /* blocks that a multiprocessor of the architecture holds at once */                                           \
    NUMBER(dependent_launch, 0)      /* 1: the kernel itself waits for the one before it in the stream, and may be launched before that one ends */ \
    NUMBER(block_rows, 0)            /* BM; 0 where the kernel has no tile */                                                                       \
    NUMBER(block_columns, 0)         /* BV; 0 where the kernel has no tile */                                                                       \
    NUMBER(block_inner, 0)           /* BK: elements of the inner dimension that a stage holds */                                                   \
    NUMBER(n_split, 0)               /* number of big splits of the vocabulary: the multiprocessors of a common GPU of the architecture */          \
    NUMBER(a_box_rows, 0)            /* rows of A's TMA boxes, which have block_inner columns; 0: no TMA */                                         \
    NUMBER(b_box_columns, 0)         /* columns and rows of B's TMA boxes, as B is stored in memory; 0: no TMA */                                   \
    NUMBER(b_box_rows, 0)                                                                                                                           \
    NUMBER(takes_slabs, 0) /* 1: a product whose A may lie in slabs (params/matrix_product.h) */                                                    \
    TEXT(numerics, 96)     /* numeric identity: what decides on the bits of the results */

typedef struct {
#define FLP_TEXT(name, bytes) char name[bytes];
#define FLP_NUMBER(name, least) int name;
    FLP_MANIFEST_FIELDS(FLP_TEXT, FLP_NUMBER)
#undef FLP_TEXT
#undef FLP_NUMBER
} flp_manifest;

/* 1: the kernel's first parameters are tensor maps. */
static inline int flp_manifest_takes_maps(const flp_manifest *manifest)
{
    return manifest->a_box_rows > 0;
}

/* Parses the text form. FLP_INTERNAL: a line is missing or malformed, and the message names it. */
flp_status flp_manifest_parse(const char *text, flp_manifest *manifest);
#endif
