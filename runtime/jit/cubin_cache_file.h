/* The format of a cached kernel. Numbers are little-endian, nothing is padded:
 *
 *     offset  0   8 bytes   "FLPK\r\n\x1a\n"
 *     offset  8   uint32    schema: FLP_CUBIN_CACHE_FILE_SCHEMA
 *     offset 12   uint32    number of sections: 5
 *     offset 16   5 uint64  bytes of: key text, variant, manifest text, cubin, PTX (0: none kept)
 *     offset 56             the sections, in this order
 *     the last 32 bytes     SHA-256 of everything before them
 *
 * The key text is what the file's name is the SHA-256 of. BYTES are decimal, and every value ends in a newline:
 *
 *     fusedlogp kernel SCHEMA
 *     source BYTES
 *     SHA-256 of the source, hexadecimal
 *     options BYTES
 *     the options, one a line
 *     arch BYTES
 *     the architecture
 *     nvrtc BYTES
 *     NVRTC's build */
#ifndef FLP_JIT_CUBIN_CACHE_FILE_H
#define FLP_JIT_CUBIN_CACHE_FILE_H
#include "base/text.h"
#include "jit/cubin_cache.h"

#define FLP_CUBIN_CACHE_FILE_SCHEMA 1

/* Appends the key text; build stands in for key->nvrtc_build. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_file_format_key(const flp_cubin_key *key, const char *build, flp_text *key_text);

/* Appends the whole file. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_file_encode(const flp_text *key_text, const flp_cubin *cubin, flp_text *file);

/* 1 and *cubin (to be freed) where bytes is an undamaged file, of this key where key_text is not NULL; else 0. */
int flp_cubin_cache_file_decode(const void *bytes, size_t count, const flp_text *key_text, flp_cubin *cubin);
#endif
