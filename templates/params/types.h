/* The numbers that parameters are made of. A header of this folder is read by C and stands in the source of each kernel that takes its parameters,
 * which has no other headers: it includes nothing but its neighbours. */
#ifndef FLP_PARAMS_TYPES_H
#define FLP_PARAMS_TYPES_H
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

/* Both compilers count a struct's bytes, padding and all. */
#ifdef __cplusplus
#define FLP_PARAMS_BYTES(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")
#else
#define FLP_PARAMS_BYTES(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
typedef struct {
    _Alignas(8) float x; /* as CUDA aligns it */
    float y;
} float2;
#endif

/* A temperature's bounds: between them masks of the lowest numbers still are beside an infinite one, and scales are neither 0 nor infinite. */
#define FLP_LEAST_TEMPERATURE 0x1p-64
#define FLP_MOST_TEMPERATURE 0x1p64

FLP_PARAMS_BYTES(i32, 4);
FLP_PARAMS_BYTES(i64, 8);
FLP_PARAMS_BYTES(float2, 8);
FLP_PARAMS_BYTES(void *, 8);
#endif
