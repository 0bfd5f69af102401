/* Body of one microkernel, included once for each vector width and number of sets and entries. No include guard.
 *
 * MICROKERNEL: the function's name. VECTOR: a vector type of floats. SETS, ENTRIES: sets of rows and vocabulary entries of a call; the SETS x ENTRIES x 16
 * accumulators must fit in the registers together with 16 floats of hidden for each set. TARGET: the function's attributes.
 * MULTIPLY_ADD(w, row, sum): sum + w row.
 * The loops of constant length are unrolled, so that the accumulators become registers. */
#define VECTORS (FLP_LANES * (int)sizeof(float) / (int)sizeof(VECTOR))

TARGET static void MICROKERNEL(const flp_microkernel_operands *operands)
{
    VECTOR sum[SETS][ENTRIES][VECTORS] = { 0 };
    const int64_t depth = operands->depth, entry_stride = operands->entry_stride;
    const float *hidden = operands->hidden;
    /* One pointer for three entries, which x86 addresses reach as base + 0, 1 or 2 x stride: a pointer for each entry would not fit in the registers. */
    const float *entry[(ENTRIES + 2) / 3];
#pragma GCC unroll 16
    for (int i = 0; i < (ENTRIES + 2) / 3; i++)
        entry[i] = operands->weight + 3 * i * entry_stride;

    for (int64_t k = 0; k < depth; k++) {
        VECTOR row[SETS][VECTORS];
#pragma GCC unroll 16
        for (int i = 0; i < SETS * VECTORS; i++)
            row[i / VECTORS][i % VECTORS] = ((const VECTOR *)(hidden + i / VECTORS * operands->hidden_stride + k * FLP_LANES))[i % VECTORS];
#pragma GCC unroll 16
        for (int e = 0; e < ENTRIES; e++) {
            float w = entry[e / 3][e % 3 * entry_stride];
#pragma GCC unroll 16
            for (int i = 0; i < SETS * VECTORS; i++)
                sum[i / VECTORS][e][i % VECTORS] = MULTIPLY_ADD(w, row[i / VECTORS][i % VECTORS], sum[i / VECTORS][e][i % VECTORS]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < (ENTRIES + 2) / 3; i++)
            entry[i] += operands->depth_stride;
    }

#pragma GCC unroll 16
    for (int set = 0; set < SETS; set++) {
#pragma GCC unroll 64
        for (int i = 0; i < ENTRIES * VECTORS; i++) {
            VECTOR *to = (VECTOR *)(operands->products + set * operands->products_stride) + i;
            if (operands->accumulate)
                sum[set][i / VECTORS][i % VECTORS] += *to;
            *to = sum[set][i / VECTORS][i % VECTORS];
        }
    }
}

#undef VECTORS
#undef MICROKERNEL
#undef VECTOR
#undef SETS
#undef ENTRIES
#undef TARGET
#undef MULTIPLY_ADD
