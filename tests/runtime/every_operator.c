/* Looks for the names of the library's operators among those of rows. */
#include "every_operator.h"

#include <string.h>

#include "assertions.h"
#include "cli/operators.h"

static int is_of(const char *row, const char *operator)
{
    const size_t length = strlen(operator);

    return strncmp(row, operator, length) == 0 && strchr(" :", row[length]) != NULL;
}

void assert_rows_for_every_operator(int count, const char *(*name)(int row))
{
    int operators = 0;

    for (; flp_operators[operators]; operators++) {
        const char *operator= flp_operators[operators]->op->name;
        int found = 0;

        for (int row = 0; row < count && !found; row++)
            found = is_of(name(row), operator);
        if (!found)
            fail_msg("no row is of %s", operator);
    }
    assert_true(operators > 0);
}
