/* The generator's files inside the library: runtime/jit/embed.sh writes embedded.c from gen/ and templates/. */
#ifndef FLP_JIT_EMBEDDED_H
#define FLP_JIT_EMBEDDED_H
#include <stddef.h>

typedef struct {
    const char *name;  /* "gen/arch.lua", "templates/sm90a/tma.cuh" */
    const char *bytes; /* count of them, and a 0 byte behind the end */
    size_t count;
} flp_embedded_file;

extern const flp_embedded_file flp_embedded_files[]; /* in byte order of their names */
extern const size_t flp_embedded_count;
/* SHA-256 (hex) over, for each file in order, the line "<name> <count>" and the bytes. */
extern const char flp_embedded_digest[];
#endif
