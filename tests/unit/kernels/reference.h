/* What the math builtins should give, in long double, where C has no such function or OpenCL asks
 * for other special values. */
#ifndef SP_TESTS_KERNELS_REFERENCE_H
#define SP_TESTS_KERNELS_REFERENCE_H

#include <limits.h>
#include <math.h>
#include <stdint.h>

#define LONG_PI 3.14159265358979323846264338327950288L

/* Exact for what a float or a double can hold: a remainder, then less than an eighth of a turn. */
static inline long double reference_sinpi(long double x)
{
    if (!isfinite(x))
        return NAN;
    long double turn = fmodl(fabsl(x), 2);
    long double sign = signbit(x) ? -1 : 1;
    if (turn >= 1) {
        turn -= 1;
        sign = -sign;
    }
    if (turn == 0)
        return copysignl(0, x);
    if (turn > 0.5L)
        turn = 1 - turn;
    return sign * (turn > 0.25L ? cosl(LONG_PI * (0.5L - turn)) : sinl(LONG_PI * turn));
}

static inline long double reference_cospi(long double x)
{
    if (!isfinite(x))
        return NAN;
    long double turn = fmodl(fabsl(x), 2);
    if (turn > 1)
        turn = 2 - turn;
    if (turn == 0.5L)
        return 0;
    long double sign = 1;
    if (turn > 0.5L) {
        turn = 1 - turn;
        sign = -1;
    }
    return sign * (turn > 0.25L ? sinl(LONG_PI * (0.5L - turn)) : cosl(LONG_PI * turn));
}

static inline long double reference_tanpi(long double x)
{
    if (!isfinite(x))
        return NAN;
    long double turn = fmodl(fabsl(x), 2);
    long double sign = signbit(x) ? -1 : 1;
    if (turn == 0)
        return sign * 0.0L;
    if (turn == 1)
        return sign * -0.0L;
    if (turn == 0.5L)
        return sign * INFINITY;
    if (turn == 1.5L)
        return -sign * INFINITY;
    return sign * reference_sinpi(turn) / reference_cospi(turn);
}

static inline long double reference_acospi(long double x)
{
    return acosl(x) / LONG_PI;
}
static inline long double reference_asinpi(long double x)
{
    return asinl(x) / LONG_PI;
}
static inline long double reference_atanpi(long double x)
{
    return atanl(x) / LONG_PI;
}
static inline long double reference_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}
static inline long double reference_atan2pi(long double y, long double x)
{
    return atan2l(y, x) / LONG_PI;
}

static inline long double reference_powr(long double x, long double y)
{
    if (isnan(x) || isnan(y) || x < 0)
        return NAN;
    if (x == 1 && isinf(y))
        return NAN;
    if (y == 0 && (x == 0 || isinf(x)))
        return NAN;
    return powl(fabsl(x), y);
}

static inline long double reference_pown(long double x, int n)
{
    return powl(x, n);
}

static inline long double reference_rootn(long double x, int n)
{
    if (n == 0 || (x < 0 && n % 2 == 0))
        return NAN;
    if (x == 0) {
        long double result = n < 0 ? INFINITY : 0;
        return n % 2 ? copysignl(result, x) : result;
    }
    return copysignl(powl(fabsl(x), 1.0L / n), n % 2 ? x : 1);
}

/* Those of C under the same naming. */
#define LIKE_C_1(name)                                                                             \
    static inline long double reference_##name(long double x)                                      \
    {                                                                                              \
        return name##l(x);                                                                         \
    }
#define LIKE_C_2(name)                                                                             \
    static inline long double reference_##name(long double x, long double y)                       \
    {                                                                                              \
        return name##l(x, y);                                                                      \
    }
LIKE_C_1(acos)
LIKE_C_1(acosh)
LIKE_C_1(asin)
LIKE_C_1(asinh)
LIKE_C_1(atan)
LIKE_C_1(atanh)
LIKE_C_1(cbrt)
LIKE_C_1(cos)
LIKE_C_1(cosh)
LIKE_C_1(erf)
LIKE_C_1(erfc)
LIKE_C_1(exp)
LIKE_C_1(exp10)
LIKE_C_1(exp2)
LIKE_C_1(expm1)
LIKE_C_1(log)
LIKE_C_1(log10)
LIKE_C_1(log1p)
LIKE_C_1(log2)
LIKE_C_1(sin)
LIKE_C_1(sinh)
LIKE_C_1(tan)
LIKE_C_1(tanh)
LIKE_C_1(tgamma)
LIKE_C_2(atan2)
LIKE_C_2(hypot)
LIKE_C_2(pow)

/* The exact functions, in the type itself. A signalling NaN counts as a NaN like any other here,
 * other than in C. */
#define EXTREME(T, name, better)                                                                   \
    static inline T exact_##name##_##T(T x, T y)                                                   \
    {                                                                                              \
        return isnan(y) ? x : isnan(x) ? y : x better y ? x : y;                                   \
    }
EXTREME(float, fmax, >)
EXTREME(double, fmax, >)
EXTREME(float, fmin, <)
EXTREME(double, fmin, <)

#define MAGNITUDE(T, name, better, otherwise)                                                      \
    static inline T exact_##name##_##T(T x, T y)                                                   \
    {                                                                                              \
        T ax = (T)fabs((double)x), ay = (T)fabs((double)y);                                        \
        return ax better ay ? x : ay better ax ? y : otherwise(x, y);                              \
    }
MAGNITUDE(float, maxmag, >, exact_fmax_float)
MAGNITUDE(double, maxmag, >, exact_fmax_double)
MAGNITUDE(float, minmag, <, exact_fmin_float)
MAGNITUDE(double, minmag, <, exact_fmin_double)

#define EXACT_LIKE_C_1(name)                                                                       \
    static inline float exact_##name##_float(float x)                                              \
    {                                                                                              \
        return name##f(x);                                                                         \
    }                                                                                              \
    static inline double exact_##name##_double(double x)                                           \
    {                                                                                              \
        return name(x);                                                                            \
    }
#define EXACT_LIKE_C_2(name)                                                                       \
    static inline float exact_##name##_float(float x, float y)                                     \
    {                                                                                              \
        return name##f(x, y);                                                                      \
    }                                                                                              \
    static inline double exact_##name##_double(double x, double y)                                 \
    {                                                                                              \
        return name(x, y);                                                                         \
    }
EXACT_LIKE_C_1(ceil)
EXACT_LIKE_C_1(fabs)
EXACT_LIKE_C_1(floor)
EXACT_LIKE_C_1(logb)
EXACT_LIKE_C_1(rint)
EXACT_LIKE_C_1(round)
EXACT_LIKE_C_1(sqrt)
EXACT_LIKE_C_1(trunc)
EXACT_LIKE_C_2(copysign)
EXACT_LIKE_C_2(fdim)
EXACT_LIKE_C_2(fmod)
EXACT_LIKE_C_2(nextafter)
EXACT_LIKE_C_2(remainder)

#endif
