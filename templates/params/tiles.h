/* What the launches of tile kernels and these agree on. */
#ifndef FLP_PARAMS_TILES_H
#define FLP_PARAMS_TILES_H
/* Rows of hidden's box, at most those of a block: filling what lies outside the tensor costs the copy engine time. */
#define FLP_HIDDEN_BOX_ROWS(rows, block_rows) ((rows) < (block_rows) ? (int)(rows) : (block_rows))

enum {
    FLP_OUT_BOX_BYTES = 128,
    FLP_OUT_BOX_ROWS = 16, /* what the copy engine writes of a tile at a time: bytes of a row, and rows */
    FLP_ENGINE_BYTES = 16, /* of a row: it writes all of these or none */
    FLP_KEPT_BLOCK = 64    /* rows, and columns, of what the gradient filter keeps or passes over */
};
#endif
