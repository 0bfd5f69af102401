// What the walks of tile kernels deal out: neighbouring tiles of a row block.
// Config: none
struct Unit {
    int row_block = 0; // of block_rows * cluster rows
    int split = 0;     // of the vocabulary, which a unit's tiles make up; of products 0
    int first_tile = 0, tiles = 0;
};
