/* A plan in words, for flp_plan_describe. */
#include <inttypes.h>

#include "base/text.h"
#include "plan/plan.h"

static void append_kernel(flp_text *text, const char *role, const flp_manifest *manifest)
{
    flp_text_append(text, "%s kernel: %s\n", role, manifest->variant);
    flp_text_append(text, "%s threads: %d\n", role, manifest->threads);
    flp_text_append(text, "%s shared bytes: %d\n", role, manifest->shared_bytes);
    flp_text_append(text, "%s registers: at most %d\n", role, manifest->registers);
}

static void append_gpu(flp_text *text, const flp_plan *plan)
{
    const flp_device_facts *facts = &plan->device.facts;
    const flp_manifest *tile = &plan->tile->manifest;
    const flp_split *split = &plan->split;
    flp_launch launch = flp_plan_launch(plan, plan->problem.rows);

    flp_text_append(text, "device: %s, compute capability %d.%d, %d multiprocessors\n", facts->name, facts->compute_capability / 10,
                    facts->compute_capability % 10, facts->multiprocessors);
    append_kernel(text, "tile", tile);
    flp_text_append(text, "tile block: %d rows x %d vocabulary entries, %d of the hidden size a stage\n", tile->block_rows,
                    tile->block_vocab, tile->block_hidden);
    flp_text_append(text, "tile cluster: %d\n", tile->cluster);
    flp_text_append(text, "tile blocks: %u\n", launch.tile_blocks);
    flp_text_append(text, "tile group: %d row blocks\n", launch.group);
    append_kernel(text, "combine", &plan->combine->manifest);
    flp_text_append(text, "combine blocks: %u\n", launch.combine_blocks);
    flp_text_append(text, "split: %d tiles in %d splits: %d of %d, %d of 1\n", split->tiles, split->splits, split->big,
                    split->big_tiles, split->splits - split->big);
}

char *flp_plan_write_description(const flp_plan *plan, const char *problem)
{
    flp_text text = { 0 };

    flp_text_append(&text, "problem: %s\n", problem);
    flp_text_append(&text, "path: %s\n", flp_choose_name(plan->choice.path));
    flp_text_append(&text, "reason: %s\n", plan->choice.reason);
    if (flp_plan_on_gpu(plan))
        append_gpu(&text, plan);
    else
        flp_text_append(&text, "device: CPU, %d threads\n", flp_thread_pool_threads(plan->context->pool));
    flp_text_append(&text, "workspace bytes: %" PRId64 "\n", flp_plan_workspace_bytes(plan, plan->problem.rows));
    flp_text_append(&text, "numerics: %s\n", plan->numerics);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}
