/* What an emitted kernel says of itself. Text form: lines "name value", in this order; gen/emit.lua writes it, the
 * cubin cache keeps it, and a list that is not this one is refused. */
#ifndef FLP_JIT_MANIFEST_H
#define FLP_JIT_MANIFEST_H
#include "fusedlogp.h"

#define FLP_VARIANT_BYTES 192

/* TEXT(name, bytes), NUMBER(name, least value), in the text's order. */
#define FLP_MANIFEST_FIELDS(TEXT, NUMBER)                                                                                                  \
    TEXT(variant, FLP_VARIANT_BYTES) /* canonical string */                                                                                \
    TEXT(kernel, FLP_VARIANT_BYTES)  /* the extern "C" name */                                                                             \
    TEXT(arch, 16)                   /* what NVRTC compiles for: "sm_90a" */                                                               \
    NUMBER(threads, 1)               /* of a block */                                                                                      \
    NUMBER(shared_bytes, 0)          /* dynamic shared memory */                                                                           \
    NUMBER(registers, 1)             /* the most a thread may hold (ptxas agrees: a test) */                                               \
    NUMBER(local_bytes, 0)           /* of a thread in local memory, where it looks at what few tiles need; what is beyond them spills */  \
    NUMBER(cluster, 1)               /* blocks of a cluster, along x; the kernel carries it as an attribute */                             \
    NUMBER(resident_blocks, 1)       /* blocks that a multiprocessor of the architecture holds at once */                                  \
    NUMBER(dependent_launch, 0)      /* 1: it waits itself for the kernel before it in the stream, and may be launched before that ends */ \
    NUMBER(block_rows, 0)            /* BM; 0 where the kernel has no tile */                                                              \
    NUMBER(block_columns, 0)         /* BV, likewise */                                                                                    \
    NUMBER(block_inner, 0)           /* BK: elements of the inner size that one stage holds */                                             \
    NUMBER(n_split, 0)               /* n_split: big splits, as many as a common GPU of the architecture has multiprocessors */            \
    NUMBER(a_box_rows, 0)            /* TMA boxes: of A (block_inner columns) and of B as it lies in memory; 0: no TMA */                  \
    NUMBER(b_box_columns, 0)                                                                                                               \
    NUMBER(b_box_rows, 0)                                                                                                                  \
    TEXT(numerics, 96) /* identity of its arithmetic */

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

/* FLP_INTERNAL: which line is missing or malformed. */
flp_status flp_manifest_parse(const char *text, flp_manifest *manifest);
#endif
