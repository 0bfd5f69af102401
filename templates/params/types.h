/* Number types of kernel parameters. A header in this folder is included by C and copied into the emitted source of each kernel that takes its structs. Emitted
 * sources have no other headers, so a header here includes only others of this folder. */
#ifndef FLP_PARAMS_TYPES_H
#define FLP_PARAMS_TYPES_H
typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

/* Holds both compilers to the same size of a struct, padding included. */
#ifdef __cplusplus
#define FLP_PARAMS_BYTES(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")
#else
#define FLP_PARAMS_BYTES(type, bytes) _Static_assert(sizeof(type) == (bytes), #type " has another size")
typedef struct {
    _Alignas(8) float x; /* as CUDA aligns it */
    float y;
} float2;
#endif

/* Bounds of a temperature. Between them logits masked with the lowest finite numbers keep their effect, and scales are neither 0 nor infinite. */
#define FLP_LEAST_TEMPERATURE 0x1p-64
#define FLP_MOST_TEMPERATURE 0x1p64

FLP_PARAMS_BYTES(i32, 4);
FLP_PARAMS_BYTES(i64, 8);
FLP_PARAMS_BYTES(float2, 8);
FLP_PARAMS_BYTES(void *, 8);
#endif
