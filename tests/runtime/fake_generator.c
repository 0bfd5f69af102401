/* A generator without Lua, for the tests of the kernel store. Variants are "fake:NAME:ARCH"; NAME `illegal` is refused, `broken` does
 * not compile, `large` wants 100000 bytes of shared memory, `nameless` has no such kernel in its cubin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "jit/generator.h"

struct flp_generator {
    int unused;
};

flp_status flp_generator_create(flp_generator **generator)
{
    *generator = calloc(1, sizeof(**generator));
    return *generator ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "fake generator: no memory");
}

void flp_generator_destroy(flp_generator *generator)
{
    free(generator);
}

flp_status flp_generator_emit(flp_generator *generator, const char *variant, flp_emitted *emitted)
{
    char name[32], arch[16];
    flp_text source = { 0 }, manifest = { 0 };

    (void)generator;
    *emitted = (flp_emitted){ 0 };
    if (sscanf(variant, "fake:%31[^:]:%15s", name, arch) != 2)
        return flp_status_fail(FLP_BAD_ARGUMENT, "variant: got \"%s\", wanted fake:NAME:ARCH", variant);
    if (strcmp(name, "illegal") == 0)
        return flp_status_fail(FLP_NO_VARIANT, "%s: it is illegal", variant);
    flp_text_append(&source, "// %s\n%sextern \"C\" __global__ void kernel_%s() {}\n", variant, strcmp(name, "broken") ? "" : "#error\n",
                    strcmp(name, "nameless") ? name : "other");
    flp_text_append(
        &manifest,
        "variant %s\nkernel kernel_%s\narch %s\nthreads 128\nshared_bytes %d\nregisters 32\nlocal_bytes 0\ncluster 1\nresident_blocks 1\ndependent_launch 0\nblock_rows 64\n"
        "block_columns 128\nblock_inner 64\nn_split 8\na_box_rows 0\nb_box_columns 0\nb_box_rows 0\ntakes_slabs 0\n"
        "numerics fake\n",
        variant, name, arch, strcmp(name, "large") ? 1024 : 100000);
    emitted->source = source.data;
    emitted->source_bytes = source.length;
    emitted->manifest_text = manifest.data;
    return flp_manifest_parse(manifest.data, &emitted->manifest);
}

void flp_emitted_free(flp_emitted *emitted)
{
    free(emitted->source);
    free(emitted->manifest_text);
    *emitted = (flp_emitted){ 0 };
}
