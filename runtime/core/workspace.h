/* The workspace that all launches of a call share. It consists of parts, each with a name, a size and a lifetime. Their places follow from the lifetimes: parts
 * that are never alive together may have the same memory. */
#ifndef FLP_CORE_WORKSPACE_H
#define FLP_CORE_WORKSPACE_H
#include <stddef.h>
#include <stdint.h>

enum { FLP_WORKSPACE_ALIGNMENT = 256, FLP_WORKSPACE_PARTS = 40, FLP_WORKSPACE_LOOPS = 2 };

/* An array that some of a call's launches write and others read. It is alive, and keeps its contents, from the step whose launch writes it first to the step
 * whose launch reads or writes it last. A kernel that writes before the kernel before it has ended (one that waits late, with programmatic dependent launch)
 * must not write a part whose lifetime begins at its own step. */
typedef struct {
    const char *name; /* NULL: there is no such part */
    int64_t bytes;    /* never less for more rows */
    int first, last;  /* steps */
    int is_wide;      /* 1: it has many words a row. Wide parts come after all others, which would get in their way otherwise */
    int64_t offset;   /* in the workspace, a multiple of FLP_WORKSPACE_ALIGNMENT; -1: there is no such part */
} flp_workspace_part;

/* Consecutive steps that a call may go through several times. */
typedef struct {
    int first, last;
} flp_workspace_loop;

typedef struct {
    const char *const *steps;                     /* their names */
    flp_workspace_part part[FLP_WORKSPACE_PARTS]; /* an operator's parts, by its own enumeration */
    flp_workspace_loop loop[FLP_WORKSPACE_LOOPS]; /* the inner one first; { 0, 0 }: none */
    int64_t bytes;                                /* of all parts together */
    char *memory;                                 /* in an execution: the workspace's address */
} flp_workspace;

/* Fills in the offsets and the total bytes. Parts whose lifetimes have a step in common do not overlap. A part that is alive when a loop begins, and is used in
 * it, stays alive until the loop ends. Which part is placed after which others depends on lifetimes and is_wide, never on sizes. Therefore, if no part gets
 * larger, as for fewer rows, no offset and no total gets larger. */
void flp_workspace_lay_out(flp_workspace *workspace);

/* NULL: there is no such part. */
static inline void *flp_workspace_at(const flp_workspace *workspace, int part)
{
    return workspace->part[part].offset < 0 ? NULL : workspace->memory + workspace->part[part].offset;
}

/* For tests: a function that is called before each launch, with the workspace of the execution and the step that begins. NULL: none. */
typedef void flp_workspace_watch(const flp_workspace *workspace, int step);
extern flp_workspace_watch *flp_workspace_watcher;

static inline void flp_workspace_begin_step(const flp_workspace *workspace, int step)
{
    if (__builtin_expect(flp_workspace_watcher != NULL, 0))
        flp_workspace_watcher(workspace, step);
}
#endif
