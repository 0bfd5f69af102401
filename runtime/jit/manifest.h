/* What an emitted kernel says of itself. Text form: lines "name value", in this order; gen/emit.lua writes it and the
 * cubin cache keeps it. KEEP IN STEP: manifest fields. */
#ifndef FLP_JIT_MANIFEST_H
#define FLP_JIT_MANIFEST_H
#include "fusedlogp.h"

#define FLP_VARIANT_BYTES 192

typedef struct {
    char variant[FLP_VARIANT_BYTES]; /* canonical string */
    char kernel[FLP_VARIANT_BYTES];  /* the extern "C" name */
    char arch[16];                   /* what NVRTC compiles for: "sm_90a" */
    int threads;                     /* of a block */
    int shared_bytes;                /* dynamic shared memory */
    int registers;                   /* the most a thread may hold (ptxas agrees: a test) */
    int cluster;                     /* blocks of a cluster, along x; the kernel carries it as an attribute */
    int resident_blocks;             /* blocks that a multiprocessor of the architecture holds at once */
    int overlaps;                    /* 1: it waits itself for the kernel before it in the stream, and may be launched before that ends */
    int block_rows, block_vocab;     /* BM, BV; 0 where the kernel has no tile */
    int block_hidden;                /* BK: elements of D that one stage holds */
    int round_splits;                   /* n_split: big splits, as many as a common GPU of the architecture has multiprocessors */
    int hidden_box_rows;             /* TMA boxes: of hidden (block_hidden columns) and of weight as it lies in memory; 0: no TMA */
    int weight_box_columns, weight_box_rows;
    char numerics[96];               /* identity of its arithmetic */
} flp_manifest;

/* 1: the kernel's first parameters are tensor maps. */
static inline int flp_manifest_takes_maps(const flp_manifest *manifest)
{
    return manifest->hidden_box_rows > 0;
}

/* FLP_INTERNAL: which line is missing or malformed. */
flp_status flp_manifest_parse(const char *text, flp_manifest *manifest);
#endif
