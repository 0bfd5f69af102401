/* Lays out a workspace by the lifetimes of its parts. */
#include "core/workspace.h"

flp_workspace_watch *flp_workspace_watcher;

/* A part that is alive when the loop begins, and read in it, is read again each time that the loop is repeated. */
static void live_through_loop(const flp_workspace_loop *loop, flp_workspace_part *part)
{
    if (part->first < loop->first && part->last >= loop->first && part->last < loop->last)
        part->last = loop->last;
}

static int steps_of(const flp_workspace_part *part)
{
    return part->last - part->first + 1;
}

static int comes_before(const flp_workspace_part *a, const flp_workspace_part *b)
{
    return a->is_wide != b->is_wide ? !a->is_wide : steps_of(a) > steps_of(b);
}

/* Sorts the parts: those that are not wide first, then by lifetime, the longest first, then by number. Returns how many there are. */
static int sort_by_life(const flp_workspace *workspace, int order[FLP_WORKSPACE_PARTS])
{
    int count = 0;

    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        int at = count;
        if (!workspace->part[i].name)
            continue;
        for (; at > 0 && comes_before(&workspace->part[i], &workspace->part[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = i;
        count++;
    }
    return count;
}

static int live_together(const flp_workspace_part *a, const flp_workspace_part *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t end_of(const flp_workspace_part *part)
{
    return part->offset + (part->bytes + FLP_WORKSPACE_ALIGNMENT - 1) / FLP_WORKSPACE_ALIGNMENT * FLP_WORKSPACE_ALIGNMENT;
}

/* The offset of a part: after all parts before it in the order that are ever alive together with it. */
static int64_t place(const flp_workspace *workspace, const int *before, int count, const flp_workspace_part *part)
{
    int64_t offset = 0;

    for (int i = 0; i < count; i++) {
        const flp_workspace_part *other = &workspace->part[before[i]];

        if (live_together(other, part) && end_of(other) > offset)
            offset = end_of(other);
    }
    return offset;
}

void flp_workspace_lay_out(flp_workspace *workspace)
{
    int order[FLP_WORKSPACE_PARTS], count;

    for (int i = 0; i < FLP_WORKSPACE_PARTS; i++) {
        workspace->part[i].offset = -1;
        for (int loop = 0; loop < FLP_WORKSPACE_LOOPS; loop++)
            live_through_loop(&workspace->loop[loop], &workspace->part[i]);
    }
    count = sort_by_life(workspace, order);
    workspace->bytes = 0;
    for (int i = 0; i < count; i++) {
        flp_workspace_part *part = &workspace->part[order[i]];

        part->offset = place(workspace, order, i, part);
        if (end_of(part) > workspace->bytes)
            workspace->bytes = end_of(part);
    }
}
