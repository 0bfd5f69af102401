/* Finds the generator's files by name, embedded or read from a directory, and computes their digest. */
#include "jit/source_tree.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *left, const void *right)
{
    return strcmp(((const flp_embedded_file *)left)->name, ((const flp_embedded_file *)right)->name);
}

static int ends_with(const char *name, const char *end)
{
    size_t name_length = strlen(name), end_length = strlen(end);
    return name_length >= end_length && strcmp(name + name_length - end_length, end) == 0;
}

static flp_status add_file(flp_source_tree *tree, const char *path, const char *name)
{
    flp_embedded_file *grown = realloc(tree->owned, (tree->count + 1) * sizeof *grown);
    if (!grown)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory to read it", path);
    tree->files = tree->owned = grown;
    char *bytes;
    size_t count;
    flp_status status = flp_file_read(AT_FDCWD, path, &bytes, &count);
    if (status != FLP_OK)
        return status;
    char *kept_name = flp_text_duplicate(name);
    if (!kept_name) {
        free(bytes);
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory to read it", path);
    }
    grown[tree->count++] = (flp_embedded_file){ kept_name, bytes, count };
    return FLP_OK;
}

static flp_status read_directory(const char *directory, const char *folder, const char *suffix, flp_source_tree *tree)
{
    flp_text root = { 0 };
    flp_text_append(&root, "%s/%s", directory, folder);
    if (root.failed)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s: no memory to read it", directory);
    char *const roots[] = { root.data, NULL };
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    flp_status status = FLP_OK;
    if (!walk)
        status = flp_status_fail(FLP_IO_FAILED, "%s: %s", root.data, strerror(errno));
    FTSENT *entry;
    while (status == FLP_OK && walk && (entry = fts_read(walk))) {
        if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS)
            status = flp_status_fail(FLP_IO_FAILED, "%s: %s", entry->fts_path, strerror(entry->fts_errno));
        else if (entry->fts_info == FTS_F && ends_with(entry->fts_name, suffix))
            status = add_file(tree, entry->fts_path, entry->fts_path + strlen(directory) + 1);
    }
    if (walk)
        fts_close(walk);
    flp_text_free(&root);
    return status;
}

/* Computes the same digest as embed.sh; a test compares the two. */
static void compute_digest(flp_source_tree *tree)
{
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (size_t i = 0; i < tree->count; i++) {
        const flp_embedded_file *file = &tree->files[i];
        char count[32];
        snprintf(count, sizeof count, " %zu\n", file->count);
        sha256_update(&hash, strlen(file->name), (const uint8_t *)file->name);
        sha256_update(&hash, strlen(count), (const uint8_t *)count);
        sha256_update(&hash, file->count, (const uint8_t *)file->bytes);
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(&hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(tree->digest + 2 * i, 3, "%02x", digest[i]);
}

flp_status flp_source_tree_load(const char *directory, flp_source_tree *tree)
{
    *tree = (flp_source_tree){ 0 };
    if (!directory) {
        tree->files = flp_embedded_files;
        tree->count = flp_embedded_count;
        snprintf(tree->digest, sizeof tree->digest, "%s", flp_embedded_digest);
        return FLP_OK;
    }
    flp_status status = read_directory(directory, "gen", ".lua", tree);
    if (status == FLP_OK)
        status = read_directory(directory, "templates", ".cuh", tree);
    if (status == FLP_OK)
        status = read_directory(directory, "templates", ".h", tree);
    if (status != FLP_OK) {
        flp_source_tree_free(tree);
        return status;
    }
    if (tree->count)
        qsort(tree->owned, tree->count, sizeof *tree->owned, by_name);
    compute_digest(tree);
    return FLP_OK;
}

void flp_source_tree_free(flp_source_tree *tree)
{
    if (tree->owned) {
        for (size_t i = 0; i < tree->count; i++) {
            free((char *)tree->owned[i].name);
            free((char *)tree->owned[i].bytes);
        }
        free(tree->owned);
    }
    *tree = (flp_source_tree){ 0 };
}

const flp_embedded_file *flp_source_tree_find(const flp_source_tree *tree, const char *name)
{
    const flp_embedded_file wanted = { name, NULL, 0 };
    return tree->count ? bsearch(&wanted, tree->files, tree->count, sizeof wanted, by_name) : NULL;
}
