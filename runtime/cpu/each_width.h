/* Includes the file EACH_WIDTH once for vectors of 4 floats and, on x86-64, once for vectors of 16. WIDTH is then the number of floats, TARGET the attributes
 * of functions that use such vectors. No include guard. */
#define WIDTH 4
#define TARGET
#include EACH_WIDTH
#undef WIDTH
#undef TARGET

#ifdef FLP_WIDE_TARGET
#define WIDTH 16
#define TARGET FLP_WIDE_TARGET
#include EACH_WIDTH
#undef WIDTH
#undef TARGET
#endif
#undef EACH_WIDTH
