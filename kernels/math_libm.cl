/* Math functions that are glibc's (OpenCL C 3.0, 6.15.2).
 *
 * For these the errors of glibc (its manual, "Errors in Math Functions") stay within the limits of
 * the full profile (OpenCL C 3.0, 7.4), and OpenCL asks for the special values of C99 (7.5). The
 * exception is the cube root in double, where glibc may be off by 4 ulp and 2 are allowed: one
 * Newton step makes it nearly exact.
 *
 * The functions "pi" of an inverse divide by pi afterwards: one more rounding, and one for the
 * constant, within the 5 and 6 ulp that are allowed.
 */
#include "math.h"

#define LIBM_1(name)                                                                               \
    float OVERLOAD name(float x)                                                                   \
    {                                                                                              \
        return __sp_libm_##name##f(x);                                                             \
    }                                                                                              \
    double OVERLOAD name(double x)                                                                 \
    {                                                                                              \
        return __sp_libm_##name(x);                                                                \
    }                                                                                              \
    FLOAT_VECTORS_1(name)
#define LIBM_2(name)                                                                               \
    float OVERLOAD name(float x, float y)                                                          \
    {                                                                                              \
        return __sp_libm_##name##f(x, y);                                                          \
    }                                                                                              \
    double OVERLOAD name(double x, double y)                                                       \
    {                                                                                              \
        return __sp_libm_##name(x, y);                                                             \
    }                                                                                              \
    FLOAT_VECTORS_2(name)

LIBM_1(acos)
LIBM_1(acosh)
LIBM_1(asin)
LIBM_1(asinh)
LIBM_1(atan)
LIBM_1(atanh)
LIBM_1(cos)
LIBM_1(cosh)
LIBM_1(erf)
LIBM_1(erfc)
LIBM_1(lgamma)
LIBM_1(sin)
LIBM_1(sinh)
LIBM_1(tan)
LIBM_1(tanh)
LIBM_1(tgamma)
LIBM_2(atan2)
LIBM_2(fmod)
LIBM_2(hypot)
LIBM_2(pow)
LIBM_2(remainder)

#define DIVIDED_BY_PI(name, libm_name)                                                             \
    float OVERLOAD name(float x)                                                                   \
    {                                                                                              \
        return __sp_libm_##libm_name##f(x) * (float)M_1_PI;                                        \
    }                                                                                              \
    double OVERLOAD name(double x)                                                                 \
    {                                                                                              \
        return __sp_libm_##libm_name(x) * M_1_PI;                                                  \
    }                                                                                              \
    FLOAT_VECTORS_1(name)

DIVIDED_BY_PI(acospi, acos)
DIVIDED_BY_PI(asinpi, asin)
DIVIDED_BY_PI(atanpi, atan)

float OVERLOAD atan2pi(float y, float x)
{
    return __sp_libm_atan2f(y, x) * (float)M_1_PI;
}

double OVERLOAD atan2pi(double y, double x)
{
    return __sp_libm_atan2(y, x) * M_1_PI;
}

FLOAT_VECTORS_2(atan2pi)

float OVERLOAD cbrt(float x)
{
    return __sp_libm_cbrtf(x);
}

/* root - (root^3 - x) / (3 root^2). The difference must be more exact than a double: the square is
 * kept in two parts, and a small x is made larger, lest the difference be less than any double. */
double OVERLOAD cbrt(double x)
{
    bool small = __builtin_elementwise_abs(x) < 0x1p-800;
    double larger = small ? x * 0x1p+300 : x;
    double root = __sp_libm_cbrt(larger);
    double square = root * root;
    double square_rest = __builtin_fma(root, root, -square);
    double excess = __builtin_fma(square, root, -larger) + square_rest * root;
    double corrected = root - excess / (3 * square);
    /* 0 and infinity need no correction, and give NaN in it. */
    corrected = corrected == corrected ? corrected : root;
    return small ? corrected * 0x1p-100 : corrected;
}

FLOAT_VECTORS_1(cbrt)
