/* The shapes of logits_logp's launches, and their scratch. */
#include "operators/logits/logits_logp_shape.h"

enum {
    UNITS_PER_BLOCK = 2, /* rows or parts that a resident block gets where rows are few: evens out the end */
    WARP = 32
};

static int64_t divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

static int64_t resident(const flp_manifest *kernel, int multiprocessors)
{
    return (int64_t)multiprocessors * kernel->resident_blocks;
}

/* The warps of a block that share a row: as many as it has segments, in powers of two. */
static int choose_team(const flp_manifest *kernel, int64_t segments)
{
    int log2 = 0;

    while ((1 << log2) < segments && (2 << log2) <= kernel->threads / WARP)
        log2++;
    return log2;
}

static int64_t count_segments(const flp_manifest *kernel, int64_t vocab)
{
    return divide_up(vocab, kernel->block_vocab);
}

static int64_t teams(const flp_manifest *kernel, int team_log2)
{
    return kernel->threads / WARP >> team_log2;
}

flp_logits_logp_shape flp_logits_logp_shape_rows(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab), blocks = resident(kernel, multiprocessors);
    const int team_log2 = choose_team(kernel, segments);
    int64_t parts = 1;

    if (rows < UNITS_PER_BLOCK * blocks && teams(kernel, team_log2) == 1)
        parts = smaller(divide_up(UNITS_PER_BLOCK * blocks, rows), segments);
    if (parts == 1 && segments > FLP_LOGITS_LOGP_SHARED_SEGMENTS)
        parts = 2;
    parts = divide_up(segments, divide_up(segments, parts)); /* none of them empty */
    return (flp_logits_logp_shape){ .segments = (int32_t)segments,
                                    .parts = (int32_t)parts,
                                    .team_log2 = team_log2,
                                    .blocks = (unsigned)smaller(divide_up(rows * parts, teams(kernel, team_log2)), blocks) };
}

flp_logits_logp_shape flp_logits_logp_shape_few(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);
    const int fits = segments <= FLP_LOGITS_LOGP_SHARED_SEGMENTS && rows <= clusters;

    return (flp_logits_logp_shape){ .segments = (int32_t)segments, .parts = 1, .blocks = fits ? (unsigned)(rows * kernel->cluster) : 0 };
}

flp_logits_logp_shape flp_logits_logp_shape_fused(const flp_manifest *kernel, int64_t clusters, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);
    const int team_log2 = choose_team(kernel, segments);
    const int64_t rows_of_unit = kernel->block_rows ? kernel->block_rows : teams(kernel, team_log2), units = divide_up(rows, rows_of_unit);
    const int fits = segments <= FLP_LOGITS_LOGP_SHARED_SEGMENTS;

    /* Fewer rows leave multiprocessors idle; they fit the L2, so that reading them twice costs little. */
    if (!fits || (2 * units < clusters && rows_of_unit == 1 && segments > kernel->threads / WARP))
        return (flp_logits_logp_shape){ .segments = (int32_t)segments, .parts = 1 };
    return (flp_logits_logp_shape){
        .segments = (int32_t)segments, .parts = 1, .team_log2 = team_log2, .blocks = (unsigned)(smaller(units, clusters) * kernel->cluster)
    };
}

flp_logits_logp_shape flp_logits_logp_shape_gradient(const flp_manifest *kernel, int multiprocessors, int64_t vocab, int64_t rows)
{
    const int64_t segments = count_segments(kernel, vocab);

    return (flp_logits_logp_shape){ .segments = (int32_t)segments,
                                    .parts = 1,
                                    .blocks = (unsigned)smaller(divide_up(rows * segments, kernel->threads / WARP), resident(kernel, multiprocessors)) };
}

void flp_logits_logp_lay_out(int64_t rows, int segments, int argmax, int entropy, int normaliser, flp_workspace *workspace)
{
    static const char *const steps[] = { "rows", "combine", "gradient" };
    const int64_t number = sizeof(float), sums = rows * segments;
    const struct {
        const char *name;
        int wanted;
        int64_t bytes;
        flp_logits_logp_step last;
    } parts[] = {
        [FLP_LOGITS_PART_PARTIAL] = { "partial", 1, sums * 2 * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_BEST] = { "best", argmax, sums * 2 * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_MOMENT] = { "moment", entropy, sums * number, FLP_LOGITS_STEP_COMBINE },
        [FLP_LOGITS_PART_NORMALISER] = { "normaliser", normaliser, rows * 4 * number, FLP_LOGITS_STEP_GRADIENT },
    };

    *workspace = (flp_workspace){ .steps = steps };
    for (size_t i = 0; rows > 0 && i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i].wanted)
            workspace->part[i] = (flp_workspace_part){ .name = parts[i].name, .bytes = parts[i].bytes, .first = FLP_LOGITS_STEP_ROWS, .last = parts[i].last };
    flp_workspace_lay_out(workspace);
}
