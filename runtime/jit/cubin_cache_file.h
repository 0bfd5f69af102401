/* The file format of a cached kernel. Numbers are little-endian, and there is no padding:
 *
 *     offset  0   8 bytes   "FLPK\r\n\x1a\n"
 *     offset  8   uint32    schema: FLP_CUBIN_CACHE_FILE_SCHEMA
 *     offset 12   uint32    number of sections: 5
 *     offset 16   5 uint64  bytes of: key text, variant, manifest text, cubin, PTX (0: none kept)
 *     offset 56             the sections, in this order
 *     the last 32 bytes     SHA-256 of everything before them
 *
 * The file's name is the SHA-256 of the key text. In the key text BYTES is the length of the value that follows, in decimal, and every value ends in a newline:
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

/* Appends the key text of key, with `build` in place of key->nvrtc_build. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_file_format_key(const flp_cubin_key *key, const char *build, flp_text *key_text);

/* Appends the whole file of a kernel. FLP_OUT_OF_MEMORY. */
flp_status flp_cubin_cache_file_encode(const flp_text *key_text, const flp_cubin *cubin, flp_text *file);

/* Decodes a file. Returns 1 with *cubin, which the caller frees by flp_cubin_free, where the file is undamaged and has this key (any key where key_text is
 * NULL); else 0. */
int flp_cubin_cache_file_decode(const void *bytes, size_t count, const flp_text *key_text, flp_cubin *cubin);
#endif
