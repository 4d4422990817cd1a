/* Logarithms (OpenCL C 3.0, 6.15.2), written to become vector code.
 *
 * libmvec's logarithms are off by up to 4 ulp, and 3 are allowed; glibc's scalar ones are exact but
 * stop a loop from vectorising. These have no branch and no table.
 *
 * x = 2^k m with m in [sqrt(1/2), sqrt(2)), by arithmetic on the bits; a subnormal x is made normal
 * first. f = m - 1 is exact. Then
 *
 *     float:  log(1 + f) = f - f^2 / 2 + f^3 P(f)
 *
 *     double: log(1 + f) = f - s (f - s^2 R(s^2))  with s = f / (2 + f), as it is 2 atanh(s)
 *
 * P and R were fitted for the least largest relative error: 5.8e-9 and 1.2e-18. f stands apart
 * until the last addition, so that near 1 only that one rounds. k log(2) comes in two parts, the
 * first with so few bits that its product with k is exact.
 */
#include "math.h"
#include "target.h"

#pragma OPENCL FP_CONTRACT ON

static int float_exponent(uint bits)
{
    return ((int)bits - 0x3f3504f3) >> 23; /* sqrt(1/2) */
}

static float float_significand(uint bits, int exponent)
{
    return as_float((int)bits - (exponent << 23));
}

static int double_exponent(ulong bits)
{
    return (int)(((long)bits - 0x3fe6a09e667f3bcd) >> 52);
}

static double double_significand(ulong bits, int exponent)
{
    return as_double((long)bits - ((long)exponent << 52));
}

/* log(1 + f) - f */
static float OVERLOAD log1p_rest(float f)
{
    float p = -0x1.38b564p-4f;
    p = p * f + 0x1.055b5ap-3f;
    p = p * f - 0x1.0d8540p-3f;
    p = p * f + 0x1.22da20p-3f;
    p = p * f - 0x1.547246p-3f;
    p = p * f + 0x1.99a008p-3f;
    p = p * f - 0x1.000226p-2f;
    p = p * f + 0x1.555554p-2f;
    float square = f * f;
    return square * (f * p - 0.5f);
}

static double OVERLOAD log1p_rest(double f)
{
    double s = f / (2 + f);
    double z = s * s;
    double r = 0x1.2f063311f933ap-3;
    r = r * z + 0x1.39a1a72e6483cp-3;
    r = r * z + 0x1.74663f9f18706p-3;
    r = r * z + 0x1.c71c52061ce25p-3;
    r = r * z + 0x1.24924941f4d74p-2;
    r = r * z + 0x1.999999997fd7bp-2;
    r = r * z + 0x1.5555555555592p-1;
    return s * (z * r - f);
}

/* name: result from k, f and rest. The last lines give 0, negative numbers, infinity and NaN what
 * is theirs. */
#define LOGARITHM(attributes, name, T, U, smallest, up, places, combine)                           \
    T attributes name(T x)                                                                         \
    {                                                                                              \
        bool subnormal = x < smallest;                                                             \
        U bits = __builtin_astype(subnormal ? x * up : x, U);                                      \
        int exponent = T##_exponent(bits);                                                         \
        T f = T##_significand(bits, exponent) - 1;                                                 \
        T k = exponent - (subnormal ? places : 0);                                                 \
        T rest = log1p_rest(f);                                                                    \
        T result = combine;                                                                        \
        result = x < INFINITY ? result : x;                                                        \
        result = x == 0 ? -(T)INFINITY : result;                                                   \
        return x < 0 ? (T)NAN : result;                                                            \
    }
/* In float a target may have its own, which counts where precision does not (-cl-fast-relaxed-math). */
#define FLOAT_LOGARITHM(name, combine)                                                             \
    LOGARITHM(REPLACEABLE CONST_FUNCTION, __sp_target_##name##f, float, uint, FLT_MIN, 0x1p+24f,   \
              24, combine)                                                                         \
    float OVERLOAD name(float x)                                                                   \
    {                                                                                              \
        return __sp_target_##name##f(x);                                                           \
    }                                                                                              \
    VECTORS_1(name, float, float)
#define DOUBLE_LOGARITHM(name, combine)                                                            \
    LOGARITHM(OVERLOAD, name, double, ulong, DBL_MIN, 0x1p+54, 54, combine)                        \
    VECTORS_1(name, double, double)

#define LN2_HIGH_FLOAT 0x1.62e4p-1f
#define LN2_LOW_FLOAT 0x1.7f7d1cp-20f
#define LN2_HIGH_DOUBLE 0x1.62e42fefap-1
#define LN2_LOW_DOUBLE 0x1.cf79abc9e3b3ap-40
#define LOG10_2_HIGH_FLOAT 0x1.344p-2f
#define LOG10_2_LOW_FLOAT 0x1.3509f8p-18f
#define LOG10_2_HIGH_DOUBLE 0x1.34413509fp-2
#define LOG10_2_LOW_DOUBLE 0x1.e7fbcc47c4acdp-40

FLOAT_LOGARITHM(log, (k * LN2_HIGH_FLOAT) + (f + (rest + k * LN2_LOW_FLOAT)))
DOUBLE_LOGARITHM(log, (k * LN2_HIGH_DOUBLE) + (f + (rest + k * LN2_LOW_DOUBLE)))

/* The factor 1 / log(2) is split as well: what it lacks in one float or double is added back. */
FLOAT_LOGARITHM(log2, k + (f * 0x1.715476p+0f + (rest * 0x1.715476p+0f + f * 0x1.4ae0cp-26f)))
DOUBLE_LOGARITHM(log2, k + (f * 0x1.71547652b82fep+0 +
                            (rest * 0x1.71547652b82fep+0 + f * 0x1.777d0ffda0d24p-56)))

FLOAT_LOGARITHM(log10, (k * LOG10_2_HIGH_FLOAT) +
                           (f * 0x1.bcb7b2p-2f + (rest * 0x1.bcb7b2p-2f +
                                                  (k * LOG10_2_LOW_FLOAT - f * 0x1.5b235ep-27f))))
DOUBLE_LOGARITHM(log10, (k * LOG10_2_HIGH_DOUBLE) +
                            (f * 0x1.bcb7b1526e50ep-2 +
                             (rest * 0x1.bcb7b1526e50ep-2 +
                              (k * LOG10_2_LOW_DOUBLE + f * 0x1.95355baaafad3p-57))))

/* log(1 + x): what the sum u = 1 + x loses is added to f, brought to the same power of two, or to 0
 * where that is too small to count. */
#define LOGARITHM_OF_MORE(T, U, bias, places, high, low)                                           \
    T OVERLOAD log1p(T x)                                                                          \
    {                                                                                              \
        T u = 1 + x;                                                                               \
        T lost = u < 2 ? x - (u - 1) : 1 - (u - x);                                                \
        U bits = __builtin_astype(u, U);                                                           \
        int exponent = T##_exponent(bits);                                                         \
        U shown = bias - (exponent < bias ? exponent : bias);                                      \
        T power = __builtin_astype(shown << places, T);                                            \
        T f = (T##_significand(bits, exponent) - 1) + lost * power;                                \
        T k = exponent;                                                                            \
        T result = k * high + (f + (log1p_rest(f) + k * low));                                     \
        result = x < INFINITY ? result : x;                                                        \
        result = x == -1 ? -(T)INFINITY : result;                                                  \
        result = x == 0 ? x : result;                                                              \
        return x < -1 ? (T)NAN : result;                                                           \
    }                                                                                              \
    VECTORS_1(log1p, T, T)

LOGARITHM_OF_MORE(float, uint, 127, 23, LN2_HIGH_FLOAT, LN2_LOW_FLOAT)
LOGARITHM_OF_MORE(double, ulong, 1023, 52, LN2_HIGH_DOUBLE, LN2_LOW_DOUBLE)
