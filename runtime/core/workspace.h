/* One workspace for all launches of a call: its parts, each with a name, a size and a life, from which their places follow. */
#ifndef FLP_CORE_WORKSPACE_H
#define FLP_CORE_WORKSPACE_H
#include <stddef.h>
#include <stdint.h>

enum { FLP_WORKSPACE_ALIGNMENT = 256, FLP_WORKSPACE_PARTS = 40, FLP_WORKSPACE_LOOPS = 2 };

/* An array that some of a call's launches hand to others. It lives from the step whose launch is the first to write it to the step whose launch is
 * the last to read or write it, and keeps what it holds between. A kernel that writes before the one before it has ended (one that waits late)
 * writes nothing whose life begins with it. */
typedef struct {
    const char *name; /* NULL: there is no such part */
    int64_t bytes;    /* no less for more rows */
    int first, last;  /* steps */
    int is_wide;      /* 1: of many words a row; such parts lie behind the others, so that these do not stand in their way */
    int64_t offset;   /* a multiple of FLP_WORKSPACE_ALIGNMENT; -1: there is no such part */
} flp_workspace_part;

/* Steps that may be gone through several times, one behind the other. */
typedef struct {
    int first, last;
} flp_workspace_loop;

typedef struct {
    const char *const *steps;                     /* their names */
    flp_workspace_part part[FLP_WORKSPACE_PARTS]; /* an operator's parts, by its own enumeration */
    flp_workspace_loop loop[FLP_WORKSPACE_LOOPS]; /* the inner one first; { 0, 0 }: none */
    int64_t bytes;                                /* of all */
    char *memory;                                 /* of an execution */
} flp_workspace;

/* Fills in offsets and bytes. Parts whose lives have a step in common lie apart; what lives when a loop begins lives until it ends. Lives alone
 * decide which part lies behind which others, so that where none is larger, as for fewer rows, none lies further behind, and there are no more
 * bytes in all. */
void flp_workspace_lay_out(flp_workspace *workspace);

/* NULL: there is no such part. */
static inline void *flp_workspace_at(const flp_workspace *workspace, int part)
{
    return workspace->part[part].offset < 0 ? NULL : workspace->memory + workspace->part[part].offset;
}

/* For tests: is called before each launch, with the workspace of the execution and the step that begins. NULL: nobody is. */
typedef void flp_workspace_watch(const flp_workspace *workspace, int step);
extern flp_workspace_watch *flp_workspace_watcher;

static inline void flp_workspace_begin_step(const flp_workspace *workspace, int step)
{
    if (__builtin_expect(flp_workspace_watcher != NULL, 0))
        flp_workspace_watcher(workspace, step);
}
#endif
