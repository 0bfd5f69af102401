/* Body of one microkernel, included once for each vector width and number of entries. No include guard.
 *
 * MICROKERNEL: the function's name. VECTOR: a vector type of floats. ENTRIES: accumulators are ENTRIES x 16 floats, which must
 * fit the registers beside one row of hidden. TARGET: its attributes. MULTIPLY_ADD(w, row, sum): sum + w row. The loops of constant length are unrolled for the
 * accumulators to become registers. */
#define VECTORS (FLP_LANES * (int)sizeof(float) / (int)sizeof(VECTOR))

TARGET static void MICROKERNEL(int64_t depth, const float *hidden, const float *weight, int64_t entry_stride, int64_t depth_stride, float *products,
                               int accumulate)
{
    VECTOR sum[ENTRIES][VECTORS] = { 0 };
    /* Three entries a pointer, which one address of x86 reaches: a pointer for each would not fit the registers. */
    const float *entry[(ENTRIES + 2) / 3];
#pragma GCC unroll 16
    for (int i = 0; i < (ENTRIES + 2) / 3; i++)
        entry[i] = weight + 3 * i * entry_stride;

    for (int64_t k = 0; k < depth; k++) {
        VECTOR row[VECTORS];
#pragma GCC unroll 16
        for (int j = 0; j < VECTORS; j++)
            row[j] = ((const VECTOR *)(hidden + k * FLP_LANES))[j];
#pragma GCC unroll 16
        for (int e = 0; e < ENTRIES; e++) {
            float w = entry[e / 3][e % 3 * entry_stride];
#pragma GCC unroll 16
            for (int j = 0; j < VECTORS; j++)
                sum[e][j] = MULTIPLY_ADD(w, row[j], sum[e][j]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < (ENTRIES + 2) / 3; i++)
            entry[i] += depth_stride;
    }

#pragma GCC unroll 16
    for (int e = 0; e < ENTRIES; e++) {
#pragma GCC unroll 16
        for (int j = 0; j < VECTORS; j++) {
            VECTOR *to = (VECTOR *)(products + e * FLP_LANES) + j;
            if (accumulate)
                sum[e][j] += *to;
            *to = sum[e][j];
        }
    }
}

#undef VECTORS
#undef MICROKERNEL
#undef VECTOR
#undef ENTRIES
#undef TARGET
#undef MULTIPLY_ADD
