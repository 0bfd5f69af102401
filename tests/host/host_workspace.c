/* The lifetimes of a workspace's parts, from the steps of the executions. */
#include "host/host_workspace.h"

#include <string.h>

#include "host/machine/machine_api.h"

enum { WORKSPACES = 16 };

/* A workspace that has been used: its layout, the last step, and which parts were alive in that. */
typedef struct {
    flp_workspace layout;
    int step;
    char lives[FLP_WORKSPACE_PARTS];
} workspace_state;

static workspace_state states[WORKSPACES];
static int next_state;

void flp_host_workspace_forget(void)
{
    memset(states, 0, sizeof(states));
    next_state = 0;
}

static int is_same_part(const flp_workspace_part *a, const flp_workspace_part *b)
{
    return a->name == b->name && a->bytes == b->bytes && a->offset == b->offset && a->first == b->first && a->last == b->last;
}

static int is_laid_out_alike(const flp_workspace *a, const flp_workspace *b)
{
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++)
        if (!is_same_part(&a->part[i], &b->part[i]))
            return 0;
    return a->bytes == b->bytes;
}

static void fill_with_garbage(const flp_workspace *workspace, int part)
{
    memset(flp_workspace_at(workspace, part), 0xff, (size_t)workspace->part[part].bytes);
}

/* The state of a workspace. If its memory is new or had another layout before, no part is alive. */
static workspace_state *find_state(const flp_workspace *workspace, int step)
{
    workspace_state *found = NULL;

    for (int i = 0; i < WORKSPACES && !found; i++)
        if (states[i].layout.memory == workspace->memory)
            found = &states[i];
    if (!found)
        found = &states[next_state++ % WORKSPACES];
    if (found->layout.memory == workspace->memory && is_laid_out_alike(&found->layout, workspace))
        return found;
    *found = (workspace_state){ .layout = *workspace, .step = step - 1 };
    memset(workspace->memory, 0xff, (size_t)workspace->bytes);
    return found;
}

/* Whether a part that was alive stays alive in this step. If the step is not after the last one, a loop or a call begins again: a part stays alive only if its
 * lifetime began before this step, and others begin anew. */
static int goes_on(const workspace_state *state, const flp_workspace_part *part, int index, int step)
{
    return state->lives[index] && part->first <= step && step <= part->last && (step > state->step || part->first < step);
}

static int begins(const workspace_state *state, const flp_workspace_part *part, int step)
{
    const int before = step > state->step ? state->step : step - 1;

    return before < part->first && part->first <= step && step <= part->last;
}

static int describe_parts(const workspace_state *state, const flp_workspace *workspace, flp_host_workspace_part *parts)
{
    int count = 0;

    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        const flp_workspace_part *part = &workspace->part[i];

        if (part->name)
            parts[count++] = (flp_host_workspace_part){ part->name,           workspace->steps[part->first], workspace->steps[part->last],
                                                        (size_t)part->offset, (size_t)part->bytes,           state->lives[i] };
    }
    return count;
}

void flp_host_workspace_watch(const flp_workspace *workspace, int step)
{
    flp_host_workspace_part parts[FLP_WORKSPACE_PARTS];
    char begun[FLP_WORKSPACE_PARTS] = { 0 };
    workspace_state *state;

    if (!workspace->memory || workspace->bytes == 0)
        return;
    state = find_state(workspace, step);
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        const flp_workspace_part *part = &workspace->part[i];
        const int went_on = part->name && goes_on(state, part, i, step);

        begun[i] = part->name && !went_on && begins(state, part, step);
        if (state->lives[i] && !went_on)
            fill_with_garbage(workspace, i);
        state->lives[i] = (char)(went_on || begun[i]);
    }
    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++)
        if (begun[i])
            fill_with_garbage(workspace, i);
    state->step = step;
    flp_host_machine_set_parts(workspace->memory, (size_t)workspace->bytes, parts, describe_parts(state, workspace, parts), workspace->steps[step]);
}
