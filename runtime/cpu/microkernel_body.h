/* Body of one microkernel, included once for each vector width and number of sets and entries. No include guard.
 *
 * MICROKERNEL: the function's name. VECTOR: a vector type of floats. SETS, ENTRIES: accumulators are SETS x ENTRIES x 16 floats, which must
 * fit the registers beside a row of hidden for each set. TARGET: its attributes. MULTIPLY_ADD(w, row, sum): sum + w row. The loops of constant length are
 * unrolled for the accumulators to become registers. */
#define VECTORS (FLP_LANES * (int)sizeof(float) / (int)sizeof(VECTOR))

TARGET static void MICROKERNEL(const flp_microkernel_operands *operands)
{
    VECTOR sum[SETS][ENTRIES][VECTORS] = { 0 };
    const int64_t depth = operands->depth, entry_stride = operands->entry_stride;
    const float *hidden = operands->hidden;
    /* Three entries a pointer, which one address of x86 reaches: a pointer for each would not fit the registers. */
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
