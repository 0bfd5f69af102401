/* Random numbers, and rounding to the dtypes by arithmetic of our own. */
#include "random/numbers.h"

#include <float.h>
#include <math.h>

#include "fusedlogp.h"

flp_random_numbers flp_random_numbers_from(uint64_t seed, uint64_t index)
{
    flp_random_numbers numbers = { seed * 0x9e3779b97f4a7c15u ^ index * 0xd1342543de82ef95u };

    flp_random_numbers_next(&numbers);
    numbers.state ^= index << 32 | index >> 32;
    return numbers;
}

/* splitmix64 */
uint64_t flp_random_numbers_next(flp_random_numbers *numbers)
{
    uint64_t x = numbers->state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

int64_t flp_random_numbers_below(flp_random_numbers *numbers, int64_t count)
{
    return (int64_t)(flp_random_numbers_next(numbers) % (uint64_t)count);
}

int flp_random_numbers_chance(flp_random_numbers *numbers, int percent)
{
    return flp_random_numbers_below(numbers, 100) < percent;
}

double flp_random_numbers_uniform(flp_random_numbers *numbers)
{
    return ldexp((double)(flp_random_numbers_next(numbers) >> 11), -53);
}

double flp_random_numbers_normal(flp_random_numbers *numbers)
{
    double sum = -2;

    for (int i = 0; i < 4; i++)
        sum += flp_random_numbers_uniform(numbers);
    return sum * sqrt(3);
}

double flp_random_unit_of(int dtype, double value)
{
    const int digits = dtype == FLP_F32 ? 24 : dtype == FLP_BF16 ? 8 : 11, least = dtype == FLP_F16 ? -24 : dtype == FLP_BF16 ? -133 : -149;
    int exponent;

    frexp(value, &exponent);
    return ldexp(1, exponent - digits > least ? exponent - digits : least);
}

double flp_random_round(int dtype, double value)
{
    const double largest = dtype == FLP_F32 ? FLT_MAX : dtype == FLP_BF16 ? 0x1.fep127 : 65504;

    if (!isfinite(value) || value == 0)
        return value;
    const double unit = flp_random_unit_of(dtype, value), rounded = nearbyint(value / unit) * unit;
    return fabs(rounded) > largest ? copysign(INFINITY, value) : rounded;
}
