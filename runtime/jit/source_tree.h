/* The files of gen/ and templates/: those that runtime/jit/embed.sh embeds in the library, or a snapshot of the files below a directory. */
#ifndef FLP_JIT_SOURCE_TREE_H
#define FLP_JIT_SOURCE_TREE_H
#include <stddef.h>

#include "fusedlogp.h"

typedef struct {
    const char *name;  /* "gen/arch.lua", "templates/sm90a/tma.cuh" */
    const char *bytes; /* [count], and a 0 byte after the end */
    size_t count;
} flp_embedded_file;

extern const flp_embedded_file flp_embedded_files[]; /* in byte order of their names */
extern const size_t flp_embedded_count;
/* SHA-256 (hex) over, for each file in order, the line "<name> <count>" and the bytes. */
extern const char flp_embedded_digest[];

typedef struct {
    const flp_embedded_file *files; /* in byte order of their names */
    size_t count;
    char digest[65];          /* of these files, computed as flp_embedded_digest is */
    flp_embedded_file *owned; /* what was read from disk; NULL for the embedded files */
} flp_source_tree;

/* Loads the files. directory: has gen/ (*.lua) and templates/ (*.cuh, *.h), all of which are read now; NULL: the embedded files.
 * FLP_IO_FAILED names the file; FLP_OUT_OF_MEMORY. */
flp_status flp_source_tree_load(const char *directory, flp_source_tree *tree);
void flp_source_tree_free(flp_source_tree *tree);

/* The file of this name; NULL where there is none. */
const flp_embedded_file *flp_source_tree_find(const flp_source_tree *tree, const char *name);
#endif
