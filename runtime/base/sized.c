/* The library's version, and copies between its public structs and those of programs that were compiled against another version of the header. */
#include "base/sized.h"

#include <string.h>

#include "base/status.h"
#include "fusedlogp.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *flp_version(void)
{
    return VERSION_TEXT(FLP_VERSION_MAJOR, FLP_VERSION_MINOR, FLP_VERSION_PATCH);
}

/* Where one part of a struct (base/sized.h) begins and how long it is: in this library (own) and in the caller's header (given). Each part begins where the
 * one before it ends. */
typedef struct {
    size_t own_at, own_bytes, given_at, given_bytes;
} part;

static size_t smaller(size_t left, size_t right)
{
    return left < right ? left : right;
}

/* The number of bytes without the zeros at the end. */
static size_t used_bytes(const char *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == 0)
        count--;
    return count;
}

static flp_status find_parts(const flp_sized_struct *known, const flp_sizes *sizes, part *parts)
{
    size_t own = 0, given = 0;

    if (!sizes || sizes->bytes < sizeof(sizes->bytes))
        return flp_status_fail(FLP_BAD_ARGUMENT, "sizes: got %s, wanted those of the structs of the caller's header", sizes ? "none" : "NULL");
    for (int i = 0; i < known->parts; i++) {
        const size_t own_end = known->part[i].bytes, given_end = flp_sized_bytes(sizes, known->part[i].at);
        if (given_end <= given)
            return flp_status_fail(FLP_BAD_ARGUMENT, "sizes: got %zu bytes for %s, wanted more than %zu", given_end, known->argument, given);
        parts[i] = (part){ own, own_end - own, given, given_end - given };
        own = own_end;
        given = given_end;
    }
    return FLP_OK;
}

flp_status flp_sized_copy(const flp_sized_struct *known, const flp_sizes *sizes, const void *given, void *own)
{
    part parts[FLP_SIZED_PARTS];
    flp_status status = find_parts(known, sizes, parts);

    for (int i = 0; status == FLP_OK && given && i < known->parts; i++) {
        const part *p = &parts[i];
        const char *from = (const char *)given + p->given_at;
        const size_t both = smaller(p->own_bytes, p->given_bytes);
        if (used_bytes(from, p->given_bytes) > both)
            return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got a field that version %s does not know and that is not 0: byte %zu of %zu", known->argument,
                                   flp_version(), p->given_at + used_bytes(from, p->given_bytes), p->given_at + p->given_bytes);
        memset((char *)own + p->own_at, 0, p->own_bytes);
        memcpy((char *)own + p->own_at, from, both);
    }
    return status;
}

flp_status flp_sized_give(const flp_sized_struct *known, const flp_sizes *sizes, const void *own, int is_whole, void *given)
{
    part parts[FLP_SIZED_PARTS];
    flp_status status = find_parts(known, sizes, parts);

    for (int i = 0; status == FLP_OK && is_whole && i < known->parts; i++)
        if (used_bytes((const char *)own + parts[i].own_at, parts[i].own_bytes) > parts[i].given_bytes)
            status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: it has a field that the caller's header does not know: version %s wrote it", known->argument,
                                     flp_version());
    for (int i = 0; status == FLP_OK && i < known->parts; i++) {
        const part *p = &parts[i];
        memset((char *)given + p->given_at, 0, p->given_bytes);
        memcpy((char *)given + p->given_at, (const char *)own + p->own_at, smaller(p->own_bytes, p->given_bytes));
    }
    return status;
}
