/* Compares a number with what it must be, and keeps the largest errors for the bounds' own sake. */
#include "random/judge.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fusedlogp.h"
#include "random/numbers.h"

enum { NOTES = 96 };

static struct {
    char name[64];
    double part;
} notes[NOTES];

static void note(const char *name, double part)
{
    int i = 0;

    while (i < NOTES - 1 && notes[i].name[0] && strcmp(notes[i].name, name) != 0)
        i++;
    snprintf(notes[i].name, sizeof(notes[i].name), "%s", name);
    if (part > notes[i].part)
        notes[i].part = part;
}

void flp_random_show_largest_errors(void)
{
    for (int i = 0; i < NOTES && notes[i].name[0]; i++)
        printf("# %s: largest error %.3f of what is allowed\n", notes[i].name, notes[i].part);
}

static double largest_of(int dtype)
{
    return dtype == FLP_F16 ? 65504 : dtype == FLP_BF16 ? 0x1.fep127 : FLT_MAX;
}

int flp_random_is_right(const char *name, int dtype, double got, double want, double bound)
{
    const double largest = largest_of(dtype), limit = largest + flp_random_unit_of(dtype, largest) / 2;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isnan(bound))
        return 0;
    if (isinf(want))
        return got == want;
    if (isinf(got) || (dtype == FLP_F32 && fabs(got) >= FLT_MAX * (1 - 0x1p-12)))
        return fabs(want) + bound >= (dtype == FLP_F32 ? FLT_MAX * (1 - 0x1p-12) : limit) && ((got < 0) == (want < 0) || fabs(want) <= bound);
    bound += flp_random_unit_of(dtype, fabs(want) + bound) / 2;
    note(name, fabs(got - want) / bound);
    return fabs(got - want) <= bound;
}
