/* Converts between a kernel's role and its word in the generator's modules in gen/select/. */
#include "jit/role.h"

#include <string.h>

#define WORD(constant, word) word,
static const char *const words[] = { FLP_ROLE_LIST(WORD) };
#undef WORD

_Static_assert(FLP_ROLES <= 32, "a flp_role_set is too small");

const char *flp_role_word(flp_role role)
{
    return words[role];
}

flp_role flp_role_find(const char *word)
{
    int role = 0;

    while (role < FLP_ROLES && strcmp(words[role], word) != 0)
        role++;
    return (flp_role)role;
}
