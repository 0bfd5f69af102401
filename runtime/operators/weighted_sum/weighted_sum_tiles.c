/* Cuts grad_w's columns into slabs and its rows into tiles. */
#include "operators/weighted_sum/weighted_sum_tiles.h"

enum {
    MULTIPROCESSORS = 132, /* of an H100 or H200: with one block each, all of them read */
    WAVES = 4,             /* that are tried before uneven ones are taken */
    BATCH = 8              /* rows of a lane in one batch of loads: a tile has one at least */
};

/* Vectors side by side: 512 bytes of a row are as good as more, and leave more lanes, so fewer tiles. */
static const int widths[] = { 32, 64, 128 };

/* Share of the multiprocessors' time that even waves of blocks would use. */
static const double even_enough = 0.94;

static int64_t divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

typedef struct {
    int64_t slabs, tiles;
} cut;

static double evenness(cut c)
{
    int64_t blocks = c.slabs * c.tiles;

    return (double)blocks / (double)(divide_up(blocks, MULTIPROCESSORS) * MULTIPROCESSORS);
}

/* Few waves first, then narrow slabs; the most even cut where none is even enough. */
static cut choose_cut(int64_t vectors)
{
    cut best = { .slabs = 0 };

    for (int waves = 1; waves <= WAVES; waves++)
        for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
            cut c = { .slabs = divide_up(vectors, widths[i]) };
            c.tiles = waves * MULTIPROCESSORS / c.slabs;
            if (c.tiles < 1)
                c.tiles = 1;
            if (evenness(c) >= even_enough)
                return c;
            if (best.slabs == 0 || evenness(c) > evenness(best))
                best = c;
        }
    return best;
}

/* tiles before they are evened out: grows with rows. */
static cut cut_for(int64_t rows, int64_t vectors, int threads, int64_t *slab)
{
    cut c = choose_cut(vectors);
    int64_t most;

    *slab = divide_up(vectors, c.slabs);
    c.slabs = divide_up(vectors, *slab);
    most = divide_up(rows, threads / *slab * BATCH);
    if (c.tiles > most)
        c.tiles = most < 1 ? 1 : most;
    return c;
}

flp_weighted_sum_tiles flp_weighted_sum_tiles_compute(int64_t rows, int64_t columns, int vector_columns, int threads)
{
    const int64_t vectors = divide_up(columns, vector_columns);
    int64_t slab;
    const cut c = cut_for(rows, vectors, threads, &slab);
    const int64_t tile_rows = divide_up(rows, c.tiles);
    flp_weighted_sum_tiles tiles = { .vectors = (int32_t)vectors,
                                     .slab = (int32_t)slab,
                                     .slabs = (int32_t)c.slabs,
                                     .lanes = (int32_t)(threads / slab),
                                     .tiles = rows == 0 ? 1 : (int32_t)divide_up(rows, tile_rows),
                                     .tile_rows = tile_rows };

    tiles.partial_floats = tiles.tiles == 1 ? 0 : tiles.tiles * vectors * vector_columns;
    return tiles;
}

int64_t flp_weighted_sum_tiles_floats(int64_t rows, int64_t columns, int vector_columns, int threads)
{
    const int64_t vectors = divide_up(columns, vector_columns);
    int64_t slab;
    const cut c = cut_for(rows, vectors, threads, &slab);

    return c.tiles == 1 ? 0 : c.tiles * vectors * vector_columns;
}
