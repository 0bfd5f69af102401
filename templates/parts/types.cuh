// Element types, constants and index arithmetic, without CUDA's headers.
// Config: none
struct bf16 {
    u16 bits;
};
struct f16 {
    u16 bits;
};

struct alignas(64) TensorMap {
    u64 opaque[16];
};

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u), not_a_number = __builtin_bit_cast(float, 0x7fffffffu);
constexpr float ln_2 = 0.6931471805599453f, log2_e = 1.4426950408889634f;

__host__ __device__ constexpr int ceil_div(int a, int b) { return (int)(((u32)a + (u32)b - 1) / (u32)b); }

// Column indices of the vocabulary go up to 2^31 - 1. Those of its last tile may exceed that and wrap around, so columns are compared by their distances or
// as u32.
__host__ __device__ constexpr int column_at(int first, int offset) { return (int)((u32)first + (u32)offset); }
__host__ __device__ constexpr int columns_left(int from, int end) { return (int)((u32)end - (u32)from); }
__host__ __device__ constexpr bool is_before(int column, int end) { return (u32)column < (u32)end; }
static_assert(ceil_div(0, 256) == 0 && ceil_div(2147483647, 256) == 8388608, "sizes up to 2^31 - 1");
static_assert(columns_left(column_at(2147483392, 254), 2147483647) == 1 && columns_left(column_at(2147483392, 300), 2147483647) == -45, "wrapped");
static_assert(is_before(column_at(2147483392, 254), 2147483647) && !is_before(column_at(2147483392, 300), 2147483647), "wrapped");

// A number that only the device knows, but at most `most`; without `count` it is `most`.
__device__ __forceinline__ int counted(const int *count, int most) { return count ? min(*count, most) : most; }
