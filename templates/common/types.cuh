// Element types and short integer names; nothing of CUDA's headers is needed.
// Config: none
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct bf16 { u16 bits; };
struct f16 { u16 bits; };

struct alignas(64) TensorMap { u64 opaque[16]; };

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u), not_a_number = __builtin_bit_cast(float, 0x7fffffffu);
constexpr float ln_2 = 0.6931471805599453f;

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
