/* Online statistics of logits: maximum, argmax and sum of powers of two. */
#include "cpu/row_statistics.h"
#include <math.h>
#include <stddef.h>
#include <string.h>

/* The number of terms that are summed in fp32 before their sum is added to a double. Where equal small terms are added to one large term, all additions round
 * in the same direction, so that a sum of n terms may be off by n - 1 times half a unit in the last place. Together with the error of 2^x, the error has to
 * stay below 24 such half units. */
enum { TERMS_IN_FLOAT = 16 };

void flp_row_statistics_clear(flp_row_statistics *statistics)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        statistics->sum[lane] = 0;
        statistics->moment[lane] = 0;
        statistics->origin.lane[lane] = -INFINITY;
        statistics->largest.lane[lane] = -INFINITY;
        statistics->largest_index.lane[lane] = 0;
    }
}

#define EACH_WIDTH "cpu/row_statistics_body.h"
#include "cpu/each_width.h"
#include "cpu/target_share.h"

/* ---- targets ---- */

/* The rows' targets among the entries of a call: a pointer to the target's logit, or NULL where the target is not among them; and that logit plus its bias. */
typedef struct {
    float *at[FLP_LANES], logit[FLP_LANES];
} found_targets;

static found_targets find_targets(const flp_row_targets *targets, const float *bias, float *logits, int count, int32_t first)
{
    found_targets found = { .at = { NULL } };
    for (int lane = 0; targets != NULL && lane < FLP_LANES; lane++) {
        int64_t v = (int64_t)targets->index[lane] - first;
        if (targets->index[lane] < 0 || v < 0 || v >= count)
            continue;
        found.at[lane] = logits + v * FLP_LANES + lane;
        found.logit[lane] = *found.at[lane] + bias[v];
    }
    return found;
}

static void leave_out(const found_targets *found)
{
    for (int lane = 0; lane < FLP_LANES; lane++)
        if (found->at[lane] != NULL)
            *found->at[lane] = -INFINITY;
}

/* Called when the sums are complete: from here on the targets count as entries again, and may be the largest. */
static void put_back(const found_targets *found, float softcap, flp_row_targets *targets, flp_row_statistics *part)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        float logit = found->logit[lane];
        int32_t *best = &part->largest_index.lane[lane];
        if (found->at[lane] == NULL)
            continue;
        *found->at[lane] = targets->z[lane] = soften_4(flp_float4_splat(logit), softcap)[0];
        if (logit > part->largest.lane[lane] || (logit > -INFINITY && logit == part->largest.lane[lane] && targets->index[lane] < *best)) {
            part->largest.lane[lane] = logit;
            *best = targets->index[lane];
        }
    }
}

/* The origin is the largest z of the entries except the target. With a softcap it is finite even where these are all -inf, since softcap(-inf) is finite. It is
 * -inf where the target is the only entry. */
static void find_origin(flp_row_statistics *part, const found_targets *found, float softcap, int count)
{
    for (int i = 0; i < FLP_LANE_VECTORS; i++)
        part->origin.vector[i] = soften_4(part->largest.vector[i], softcap);
    for (int lane = 0; lane < FLP_LANES; lane++)
        if (count == 1 && found->at[lane] != NULL)
            part->origin.lane[lane] = -INFINITY;
}

void flp_row_statistics_add_by(int width, flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias, float *logits, int count,
                               int32_t first, flp_row_targets *targets)
{
    found_targets found = find_targets(targets, bias, logits, count, first);
    flp_row_statistics part;
    flp_row_statistics_clear(&part);
    leave_out(&found);
    FLP_BY_WIDTH(width, add_bias)(&part, bias, transform->softcap, logits, count, first);
    leave_out(&found);
    find_origin(&part, &found, transform->softcap, count);
    FLP_BY_WIDTH(width, add_powers)(&part, transform, logits, count);
    put_back(&found, transform->softcap, targets, &part);
    flp_row_statistics_merge(statistics, &part, transform);
}

/* ---- merging ---- */

/* Converts the sums of one part of a row from the origin `from` to the origin `to`. Where `from` is -inf the sums are 0 or NaN, with any origin. */
static void move_origin(double *sum, double *moment, float from, float to, double scale)
{
    if (from != to && from != -INFINITY)
        flp_sums_move(sum, moment, ((double)from - to) * scale);
}

void flp_row_statistics_merge(flp_row_statistics *statistics, const flp_row_statistics *later, const flp_row_transform *transform)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        float old = statistics->origin.lane[lane], new = later->origin.lane[lane], origin = old > new ? old : new;
        double sum = later->sum[lane], moment = later->moment[lane], scale = transform->scale.lane[lane];
        move_origin(&statistics->sum[lane], &statistics->moment[lane], old, origin, scale);
        move_origin(&sum, &moment, new, origin, scale);
        statistics->sum[lane] += sum;
        statistics->moment[lane] += moment;
        statistics->origin.lane[lane] = origin;
        if (later->largest.lane[lane] > statistics->largest.lane[lane]) {
            statistics->largest.lane[lane] = later->largest.lane[lane];
            statistics->largest_index.lane[lane] = later->largest_index.lane[lane];
        }
    }
}
