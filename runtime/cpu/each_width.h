/* Includes the file EACH_WIDTH for vectors of 4 floats and, where this processor may have them, of 16, with WIDTH and TARGET defined. No include guard. */
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
