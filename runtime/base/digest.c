/* SHA-256 of a block of bytes. */
#include "base/digest.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>

_Static_assert(FLP_DIGEST_BYTES == SHA256_DIGEST_SIZE, "a SHA-256 has 32 bytes");

void flp_digest_compute(const void *bytes, size_t count, uint8_t digest[FLP_DIGEST_BYTES])
{
    struct sha256_ctx state;

    sha256_init(&state);
    sha256_update(&state, count, bytes);
    sha256_digest(&state, FLP_DIGEST_BYTES, digest);
}

void flp_digest_format(const void *bytes, size_t count, char text[FLP_DIGEST_TEXT_BYTES])
{
    uint8_t digest[FLP_DIGEST_BYTES];

    flp_digest_compute(bytes, count, digest);
    base16_encode_update(text, FLP_DIGEST_BYTES, digest);
    text[FLP_DIGEST_TEXT_BYTES - 1] = 0;
}
