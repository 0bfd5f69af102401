/* Numbers on which tile kernels and the C code that launches them must agree. */
#ifndef FLP_PARAMS_TILES_H
#define FLP_PARAMS_TILES_H
/* Rows of hidden's TMA box, at most a block's rows. With few rows the box is smaller, because TMA takes time to fill what lies outside the tensor. */
#define FLP_HIDDEN_BOX_ROWS(rows, block_rows) ((rows) < (block_rows) ? (int)(rows) : (block_rows))

enum {
    FLP_OUT_BOX_BYTES = 128, /* of a row of the TMA box with which a tile is stored */
    FLP_OUT_BOX_ROWS = 16,   /* of that box */
    FLP_ENGINE_BYTES = 16,   /* TMA stores a row in whole units of these bytes */
    FLP_KEPT_BLOCK = 64,     /* rows, and columns, of a block of dlogit that the gradient filter keeps or skips */
    /* The most rows that a cluster of a backward's tile kernel may have; plans refuse kernels with more. The rows' coefficients, and the packed rows, are
     * followed by zeros up to a multiple of it. */
    FLP_BACKWARD_ROW_BLOCK = 256
};
#endif
