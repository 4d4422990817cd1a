/* Math functions whose result is exact or correctly rounded (OpenCL C 3.0, 6.15.2): rounding to
 * integers, sign and exponent, minimum and maximum, fma, square root; and mad and rsqrt, which are
 * made of them.
 *
 * All of this is a few instructions without a branch, on the value or on its bits, in every width
 * at once where possible. glibc's versions would be calls that stop a loop from becoming vector
 * code.
 */
#include "math.h"
#include "target.h"

#define ELEMENTWISE_1(n, T, name, builtin)                                                         \
    T##n OVERLOAD name(T##n x)                                                                     \
    {                                                                                              \
        return builtin(x);                                                                         \
    }
#define ELEMENTWISE_2(n, T, name, builtin)                                                         \
    T##n OVERLOAD name(T##n x, T##n y)                                                             \
    {                                                                                              \
        return builtin(x, y);                                                                      \
    }

FLOAT_TYPES(ELEMENTWISE_1, ceil, __builtin_elementwise_ceil)
FLOAT_TYPES(ELEMENTWISE_1, fabs, __builtin_elementwise_abs)
FLOAT_TYPES(ELEMENTWISE_1, floor, __builtin_elementwise_floor)
FLOAT_TYPES(ELEMENTWISE_1, rint, __builtin_elementwise_rint)
FLOAT_TYPES(ELEMENTWISE_1, round, __builtin_elementwise_round)
ALL_WIDTHS(ELEMENTWISE_1, double, sqrt, __builtin_elementwise_sqrt)
FLOAT_TYPES(ELEMENTWISE_1, trunc, __builtin_elementwise_trunc)
FLOAT_TYPES(ELEMENTWISE_2, copysign, __builtin_elementwise_copysign)
/* On floating point the elementwise minimum and maximum return the number where the other is a NaN.
 */
FLOAT_TYPES(ELEMENTWISE_2, fmax, __builtin_elementwise_max)
FLOAT_TYPES(ELEMENTWISE_2, fmin, __builtin_elementwise_min)

#define WITH_SCALAR(n, T)                                                                          \
    T##n OVERLOAD fmax(T##n x, T y)                                                                \
    {                                                                                              \
        return __builtin_elementwise_max(x, (T##n)y);                                              \
    }                                                                                              \
    T##n OVERLOAD fmin(T##n x, T y)                                                                \
    {                                                                                              \
        return __builtin_elementwise_min(x, (T##n)y);                                              \
    }
VECTOR_WIDTHS(WITH_SCALAR, float)
VECTOR_WIDTHS(WITH_SCALAR, double)

/* Half an ulp for each of two roundings: 1 ulp at most, plus a little; 2 are allowed. */
#define RSQRT(n, T, ...)                                                                           \
    T##n OVERLOAD rsqrt(T##n x)                                                                    \
    {                                                                                              \
        return (T##n)1 / __builtin_elementwise_sqrt(x);                                            \
    }
ALL_WIDTHS(RSQRT, double)

/* A GPU has instructions for the roots of a float. */
float REPLACEABLE CONST_FUNCTION __sp_target_sqrtf(float x)
{
    return __builtin_elementwise_sqrt(x);
}

float REPLACEABLE CONST_FUNCTION __sp_target_rsqrtf(float x)
{
    return 1 / __builtin_elementwise_sqrt(x);
}

float OVERLOAD sqrt(float x)
{
    return __sp_target_sqrtf(x);
}

float OVERLOAD rsqrt(float x)
{
    return __sp_target_rsqrtf(x);
}

VECTORS_1(sqrt, float, float)
VECTORS_1(rsqrt, float, float)

#define FMA(n, T, ...)                                                                             \
    T##n OVERLOAD fma(T##n x, T##n y, T##n z)                                                      \
    {                                                                                              \
        return __builtin_elementwise_fma(x, y, z);                                                 \
    }
FLOAT_TYPES(FMA)

/* Fused where the processor can, else two operations. */
#pragma OPENCL FP_CONTRACT ON
#define MAD(n, T, ...)                                                                             \
    T##n OVERLOAD mad(T##n x, T##n y, T##n z)                                                      \
    {                                                                                              \
        return x * y + z;                                                                          \
    }
FLOAT_TYPES(MAD)
#pragma OPENCL FP_CONTRACT OFF

#define MAGNITUDES(n, T, ...)                                                                      \
    T##n OVERLOAD fdim(T##n x, T##n y)                                                             \
    {                                                                                              \
        T##n difference = x - y;                                                                   \
        return x <= y ? (T##n)0 : difference; /* a NaN is not <=, and makes a NaN */               \
    }                                                                                              \
    T##n OVERLOAD maxmag(T##n x, T##n y)                                                           \
    {                                                                                              \
        T##n ax = __builtin_elementwise_abs(x);                                                    \
        T##n ay = __builtin_elementwise_abs(y);                                                    \
        T##n otherwise = __builtin_elementwise_max(x, y);                                          \
        return ax > ay ? x : ay > ax ? y : otherwise;                                              \
    }                                                                                              \
    T##n OVERLOAD minmag(T##n x, T##n y)                                                           \
    {                                                                                              \
        T##n ax = __builtin_elementwise_abs(x);                                                    \
        T##n ay = __builtin_elementwise_abs(y);                                                    \
        T##n otherwise = __builtin_elementwise_min(x, y);                                          \
        return ax < ay ? x : ay < ax ? y : otherwise;                                              \
    }
FLOAT_TYPES(MAGNITUDES)

/* A quiet NaN whatever the payload. */
#define NAN_FROM(n, T, U, quiet)                                                                   \
    T##n OVERLOAD nan(U##n code)                                                                   \
    {                                                                                              \
        U##n bits = code | (U##n)quiet;                                                            \
        return __builtin_astype(bits, T##n);                                                       \
    }
ALL_WIDTHS(NAN_FROM, float, uint, 0x7fc00000u)
ALL_WIDTHS(NAN_FROM, double, ulong, 0x7ff8000000000000ul)

/* Sign and magnitude, turned into one ordered line of integers, has neighbours one apart; the two
 * zeros are the same place on it, and the step that ends there keeps the sign. */
#define NEXTAFTER(n, T, I, sign)                                                                   \
    T##n OVERLOAD nextafter(T##n x, T##n y)                                                        \
    {                                                                                              \
        I##n bits = __builtin_astype(x, I##n);                                                     \
        I##n place = bits < (I##n)0 ? (I##n)sign - bits : bits;                                    \
        place += x < y ? (I##n)1 : (I##n) - 1;                                                     \
        I##n next = place < (I##n)0 ? (I##n)sign - place : place;                                  \
        T##n result = __builtin_astype(next, T##n);                                                \
        result = result == (T##n)0 ? __builtin_elementwise_copysign(result, x) : result;           \
        result = x == y ? y : result;                                                              \
        return ((x != x) | (y != y)) ? x + y : result;                                             \
    }
ALL_WIDTHS(NEXTAFTER, float, int, INT_MIN)
ALL_WIDTHS(NEXTAFTER, double, long, LONG_MIN)

/* The exponent of a number other than 0, infinity and NaN; a subnormal one is made normal first. */
static int OVERLOAD exponent_of(float x)
{
    float magnitude = __builtin_elementwise_abs(x);
    bool subnormal = magnitude < FLT_MIN;
    float normal = subnormal ? magnitude * 0x1p+24f : magnitude;
    return (as_int(normal) >> 23) - (subnormal ? 127 + 24 : 127);
}

static int OVERLOAD exponent_of(double x)
{
    double magnitude = __builtin_elementwise_abs(x);
    bool subnormal = magnitude < DBL_MIN;
    double normal = subnormal ? magnitude * 0x1p+54 : magnitude;
    return (int)(as_long(normal) >> 52) - (subnormal ? 1023 + 54 : 1023);
}

#define EXPONENT(T)                                                                                \
    int OVERLOAD ilogb(T x)                                                                        \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x);                                                \
        int result = magnitude < INFINITY ? exponent_of(x) : INT_MAX;                              \
        result = magnitude == 0 ? FP_ILOGB0 : result;                                              \
        return x == x ? result : FP_ILOGBNAN;                                                      \
    }                                                                                              \
    T OVERLOAD logb(T x)                                                                           \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x);                                                \
        T result = magnitude == 0 ? -(T)INFINITY : (T)exponent_of(x);                              \
        return magnitude < INFINITY ? result : magnitude; /* infinity or NaN */                    \
    }                                                                                              \
    VECTORS_1(ilogb, int, T)                                                                       \
    VECTORS_1(logb, T, T)
EXPONENT(float)
EXPONENT(double)

/* 2^n for n in the range of normal exponents. */
static float float_power_of_two(int n)
{
    return as_float((n + 127) << 23);
}

static double double_power_of_two(int n)
{
    return as_double((long)(n + 1023) << 52);
}

/* x 2^n in three steps. Only the last may round: a step down stops short of the subnormal numbers
 * by all the bits of a significand, so that what rounds before the last step is too small to count.
 * Two steps bring any meaningful n into range. */
#define LDEXP(T, most, least, step_down)                                                           \
    static int ldexp_step_##T(int n)                                                               \
    {                                                                                              \
        return n > most ? most : n < least ? step_down : 0;                                        \
    }                                                                                              \
    T OVERLOAD ldexp(T x, int n)                                                                   \
    {                                                                                              \
        int step = ldexp_step_##T(n);                                                              \
        x *= T##_power_of_two(step);                                                               \
        n -= step;                                                                                 \
        step = ldexp_step_##T(n);                                                                  \
        x *= T##_power_of_two(step);                                                               \
        n -= step;                                                                                 \
        n = n > most ? most : n < least ? least : n;                                               \
        return x * T##_power_of_two(n);                                                            \
    }                                                                                              \
    VECTORS_2(ldexp, T, T, int)
LDEXP(float, 127, -126, -102)
LDEXP(double, 1023, -1022, -969)

#define LDEXP_SCALAR(n, T)                                                                         \
    T##n OVERLOAD ldexp(T##n x, int y)                                                             \
    {                                                                                              \
        return ldexp(x, (int##n)y);                                                                \
    }
VECTOR_WIDTHS(LDEXP_SCALAR, float)
VECTOR_WIDTHS(LDEXP_SCALAR, double)
