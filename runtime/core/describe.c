/* A plan in words, for flp_plan_describe. */
#include "core/describe.h"

#include <inttypes.h>

void flp_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest)
{
    flp_text_append(text, "%s kernel: %s\n", role, manifest->variant);
    flp_text_append(text, "%s threads: %d\n", role, manifest->threads);
    flp_text_append(text, "%s shared bytes: %d\n", role, manifest->shared_bytes);
    flp_text_append(text, "%s registers: at most %d\n", role, manifest->registers);
}

void flp_describe_device(const flp_plan *plan, flp_text *text)
{
    const flp_device_facts *facts = &plan->device.facts;

    if (flp_plan_on_gpu(plan))
        flp_text_append(text, "%s, compute capability %d.%d, %d multiprocessors", facts->name, facts->compute_capability / 10, facts->compute_capability % 10,
                        facts->multiprocessors);
    else
        flp_text_append(text, "CPU, %d threads", flp_thread_pool_threads(plan->context->pool));
}

static void append_workspace(const flp_plan *plan, flp_text *text)
{
    const int64_t rows = flp_plan_rows(plan);
    flp_workspace workspace;

    flp_text_append(text, "workspace bytes: %" PRId64 "\n", plan->workspace_bytes);
    flp_plan_lay_out(plan, flp_plan_most_rows(plan, rows), &workspace);
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        const flp_workspace_part *part = &workspace.part[i];

        if (part->name)
            flp_text_append(text, "workspace part: %s, %" PRId64 " bytes at %" PRId64 ", from %s to %s\n", part->name, part->bytes, part->offset,
                            workspace.steps[part->first], workspace.steps[part->last]);
    }
}

char *flp_describe_plan(const flp_plan *plan, const char *problem)
{
    flp_text text = { 0 };

    flp_text_append(&text, "problem: %s\npath: %s\nreason: %s\ndevice: ", problem, flp_backend_name(plan->choice.path), plan->choice.reason);
    flp_describe_device(plan, &text);
    flp_text_append(&text, "\n");
    if (flp_plan_on_gpu(plan))
        plan->op->describe(plan, &text);
    append_workspace(plan, &text);
    flp_text_append(&text, "numerics: %s\n", plan->numerics);
    if (text.failed)
        flp_text_free(&text);
    return text.data;
}
