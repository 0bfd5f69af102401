/* Formats the key text of a cached kernel, and encodes and decodes its file. */
#include "jit/cubin_cache_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/status.h"

enum { KEY_TEXT, VARIANT, MANIFEST, CUBIN, PTX, SECTIONS };
enum { MAGIC_BYTES = 8, HEADER_BYTES = 16 + 8 * SECTIONS };

static const char magic[MAGIC_BYTES + 1] = "FLPK\r\n\x1a\n";

static flp_status out_of_memory(void)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "cached kernel: no memory");
}

static void append_value(flp_text *text, const char *name, size_t bytes, const char *value)
{
    flp_text_append(text, "%s %zu\n%s\n", name, bytes, value);
}

flp_status flp_cubin_cache_file_format_key(const flp_cubin_key *key, const char *build, flp_text *key_text)
{
    char digest[FLP_DIGEST_TEXT_BYTES];

    if (!key->source_digest)
        flp_digest_format(key->source, key->source_bytes, digest);
    flp_text_append(key_text, "fusedlogp kernel %d\n", FLP_CUBIN_CACHE_FILE_SCHEMA);
    append_value(key_text, "source", key->source_bytes, key->source_digest ? key->source_digest : digest);
    append_value(key_text, "options", strlen(key->options), key->options);
    append_value(key_text, "arch", strlen(key->arch), key->arch);
    append_value(key_text, "nvrtc", strlen(build), build);
    return key_text->failed ? out_of_memory() : FLP_OK;
}

static void append_number(flp_text *file, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(number >> (8 * i));
        flp_text_append_bytes(file, &byte, 1);
    }
}

static uint64_t read_number(const uint8_t *at, int bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

flp_status flp_cubin_cache_file_encode(const flp_text *key_text, const flp_cubin *cubin, flp_text *file)
{
    const struct {
        const char *bytes;
        size_t count;
    } sections[SECTIONS] = {
        [KEY_TEXT] = { key_text->data, key_text->length },
        [VARIANT] = { cubin->variant, strlen(cubin->variant) },
        [MANIFEST] = { cubin->manifest_text, strlen(cubin->manifest_text) },
        [CUBIN] = { cubin->cubin, cubin->cubin_bytes },
        [PTX] = { cubin->ptx, cubin->ptx ? strlen(cubin->ptx) : 0 },
    };
    uint8_t digest[FLP_DIGEST_BYTES];

    flp_text_append_bytes(file, magic, MAGIC_BYTES);
    append_number(file, FLP_CUBIN_CACHE_FILE_SCHEMA, 4);
    append_number(file, SECTIONS, 4);
    for (int i = 0; i < SECTIONS; i++)
        append_number(file, sections[i].count, 8);
    for (int i = 0; i < SECTIONS; i++)
        flp_text_append_bytes(file, sections[i].bytes, sections[i].count);
    if (file->failed)
        return out_of_memory();
    flp_digest_compute(file->data, file->length, digest);
    flp_text_append_bytes(file, digest, sizeof(digest));
    return file->failed ? out_of_memory() : FLP_OK;
}

/* 1: magic, digest and schema are right. With the digest checked, the sections can be read as they were written. */
static int is_whole(const uint8_t *bytes, size_t count)
{
    uint8_t digest[FLP_DIGEST_BYTES];

    if (count < HEADER_BYTES + FLP_DIGEST_BYTES || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return 0;
    flp_digest_compute(bytes, count - FLP_DIGEST_BYTES, digest);
    return memcmp(bytes + count - FLP_DIGEST_BYTES, digest, FLP_DIGEST_BYTES) == 0 && read_number(bytes + 8, 4) == FLP_CUBIN_CACHE_FILE_SCHEMA &&
           read_number(bytes + 12, 4) == SECTIONS;
}

static char *copy_section(const uint8_t *at, size_t count)
{
    char *copy = malloc(count + 1);

    if (copy) {
        memcpy(copy, at, count);
        copy[count] = 0;
    }
    return copy;
}

int flp_cubin_cache_file_decode(const void *bytes, size_t count, const flp_text *key_text, flp_cubin *cubin)
{
    const uint8_t *start = bytes, *at[SECTIONS], *next = start + HEADER_BYTES;
    size_t sizes[SECTIONS];

    *cubin = (flp_cubin){ 0 };
    if (!is_whole(bytes, count))
        return 0;
    for (int i = 0; i < SECTIONS; i++) {
        uint64_t size = read_number(start + 16 + 8 * i, 8);

        if (size > count - FLP_DIGEST_BYTES - (size_t)(next - start))
            return 0;
        at[i] = next;
        sizes[i] = (size_t)size;
        next += size;
    }
    if (next != start + count - FLP_DIGEST_BYTES || !sizes[CUBIN])
        return 0;
    if (key_text && (key_text->length != sizes[KEY_TEXT] || memcmp(key_text->data, at[KEY_TEXT], sizes[KEY_TEXT]) != 0))
        return 0;
    cubin->variant = copy_section(at[VARIANT], sizes[VARIANT]);
    cubin->manifest_text = copy_section(at[MANIFEST], sizes[MANIFEST]);
    cubin->cubin = copy_section(at[CUBIN], sizes[CUBIN]);
    cubin->cubin_bytes = sizes[CUBIN];
    cubin->ptx = sizes[PTX] ? copy_section(at[PTX], sizes[PTX]) : NULL;
    if (cubin->variant && cubin->manifest_text && cubin->cubin && (cubin->ptx || !sizes[PTX]))
        return 1;
    flp_cubin_free(cubin);
    return 0;
}

void flp_cubin_free(flp_cubin *cubin)
{
    free(cubin->variant);
    free(cubin->manifest_text);
    free(cubin->cubin);
    free(cubin->ptx);
    *cubin = (flp_cubin){ 0 };
}
