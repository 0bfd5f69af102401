/* SHA-256 of a block of bytes: its 32 bytes, or hexadecimal text for names and keys. */
#ifndef FLP_BASE_DIGEST_H
#define FLP_BASE_DIGEST_H
#include <stddef.h>
#include <stdint.h>

enum { FLP_DIGEST_BYTES = 32, FLP_DIGEST_TEXT_BYTES = 65 };

void flp_digest_compute(const void *bytes, size_t count, uint8_t digest[FLP_DIGEST_BYTES]);

/* text: 64 lower-case hexadecimal digits and a 0 byte. */
void flp_digest_format(const void *bytes, size_t count, char text[FLP_DIGEST_TEXT_BYTES]);
#endif
