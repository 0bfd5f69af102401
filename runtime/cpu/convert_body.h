/* Rounds fp32 to bf16, WIDTH elements at a time, and returns how many elements it converted; the caller converts the rest, fewer than WIDTH.
 * Included once for each vector width (cpu/each_width.h). No include guard. */
TARGET static size_t FLP_OF_WIDTH(round_bf16)(const float *from, unsigned char *to, size_t count)
{
    typedef uint16_t halves __attribute__((vector_size(WIDTH * sizeof(uint16_t))));
    size_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) {
        FLP_UINTS bits;
        memcpy(&bits, from + i, sizeof bits);
        FLP_UINTS is_nan = (FLP_UINTS)((bits & 0x7fffffff) > 0x7f800000);
        FLP_UINTS rounded = (is_nan & (bits >> 16 | 0x40)) | (~is_nan & ((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
        halves low = __builtin_convertvector(rounded, halves);
        memcpy(to + i * sizeof(uint16_t), &low, sizeof low);
    }
    return i;
}
