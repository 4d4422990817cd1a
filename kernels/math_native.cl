/* native_ and half_ functions (OpenCL C 3.0, 6.15.2, float only).
 *
 * half_ may be off by 8192 ulp, for sine, cosine and tangent up to 2^16 only, and native_ by what the
 * implementation likes. Where a full function is short enough it serves them, too. The others are
 * written to become vector code, without a call: native_ ones are off by some ulp for usual numbers.
 * A GPU has instructions for native_ (target.h).
 */
#include "math.h"
#include "target.h"

#pragma OPENCL FP_CONTRACT ON

#define ROUND 0x1.8p+23f /* the last bit of a sum with it is 1 */

/* Multiples of pi, n of them or n and a half, taken from x. Pi comes in four parts, of which three have
 * so few bits that their products with n are exact as far as the half_ functions go, to 2^16. What is
 * too large for that is no angle any more: 1 is taken for it. */
static float reduced(float x, float n)
{
    float r = x - n * 0x1.92p+1f;
    r = r - n * 0x1.fcp-11f;
    r = r + n * 0x1.58p-20f;
    r = r - n * 0x1.10b462p-29f;
    return __builtin_elementwise_abs(r) > 1.6f ? 1 : r;
}

/* The sine between -pi/2 and pi/2, off by 3e-8 relatively, with the other sign for an odd number of
 * multiples. */
static float short_sine(float r, uint multiples)
{
    float z = r * r;
    float p = 0x1.616d9cp-19f;
    p = p * z - 0x1.9fb400p-13f;
    p = p * z + 0x1.111046p-7f;
    p = p * z - 0x1.555554p-3f;
    return as_float(as_uint(r + r * (z * p)) ^ multiples << 31);
}

static float short_sin(float x)
{
    float rounded = x * 0x1.45f306p-2f + ROUND;
    return short_sine(reduced(x, rounded - ROUND), as_uint(rounded));
}

/* cos(x) = sin(x + pi/2) */
static float short_cos(float x)
{
    float rounded = (x * 0x1.45f306p-2f - 0.5f) + ROUND;
    return short_sine(reduced(x, (rounded - ROUND) + 0.5f), as_uint(rounded) + 1);
}

static float short_tan(float x)
{
    return short_sin(x) / short_cos(x);
}

/* As in math_exp.cl, but 0 for what is subnormal, so that 2^n is a number. */
static float short_exp2(float x)
{
    x = x > 129 ? 129 : x;
    x = x < -127 ? -127 : x;
    float rounded = x + ROUND;
    rounded = rounded > ROUND + 127 ? ROUND + 127 : rounded;
    float r = x - (rounded - ROUND);
    float p = 0x1.4413a4p-13f;
    p = p * r + 0x1.5f08b8p-10f;
    p = p * r + 0x1.3b2a52p-7f;
    p = p * r + 0x1.c6af6cp-5f;
    p = p * r + 0x1.ebfbe0p-3f;
    p = p * r + 0x1.62e430p-1f;
    return (1 + r * p) * as_float((as_uint(rounded) << 23) + 0x3f800000);
}

static float short_exp(float x)
{
    return short_exp2(x * 0x1.715476p+0f);
}

static float short_exp10(float x)
{
    return short_exp2(x * 0x1.a934f0p+1f);
}

/* Processors have an estimate of 12 to 14 bits, improved once. It knows no subnormals, and the
 * improvement no infinity. */
static float short_rsqrt(float x)
{
#pragma clang fp reciprocal(on)
    float estimate = 1 / __builtin_elementwise_sqrt(x);
    float magnitude = __builtin_elementwise_abs(x);
    estimate = x == INFINITY ? 0 : estimate;
    return magnitude < FLT_MIN ? INFINITY : estimate;
}

/* name: what is short for it. */
#define NATIVE_1(name, function)                                                                   \
    float REPLACEABLE CONST_FUNCTION __sp_target_native_##name##f(float x)                         \
    {                                                                                              \
        return function(x);                                                                        \
    }                                                                                              \
    float OVERLOAD native_##name(float x)                                                          \
    {                                                                                              \
        return __sp_target_native_##name##f(x);                                                    \
    }                                                                                              \
    VECTORS_1(native_##name, float, float)
NATIVE_1(cos, short_cos)
NATIVE_1(exp, short_exp)
NATIVE_1(exp10, short_exp10)
NATIVE_1(exp2, short_exp2)
NATIVE_1(log, log)
NATIVE_1(log10, log10)
NATIVE_1(log2, log2)
NATIVE_1(rsqrt, short_rsqrt)
NATIVE_1(sin, short_sin)
NATIVE_1(sqrt, sqrt)
NATIVE_1(tan, short_tan)

#define HALF_1(name, function)                                                                     \
    float OVERLOAD half_##name(float x)                                                            \
    {                                                                                              \
        return function(x);                                                                        \
    }                                                                                              \
    VECTORS_1(half_##name, float, float)
HALF_1(cos, short_cos)
HALF_1(exp, exp)
HALF_1(exp10, exp10)
HALF_1(exp2, exp2)
HALF_1(log, log)
HALF_1(log10, log10)
HALF_1(log2, log2)
HALF_1(rsqrt, rsqrt)
HALF_1(sin, short_sin)
HALF_1(sqrt, sqrt)
HALF_1(tan, short_tan)

#define QUOTIENTS(n, T)                                                                            \
    T##n OVERLOAD half_divide(T##n x, T##n y)                                                      \
    {                                                                                              \
        return x / y;                                                                              \
    }                                                                                              \
    T##n OVERLOAD half_recip(T##n x)                                                               \
    {                                                                                              \
        return (T##n)1 / x;                                                                        \
    }
ALL_WIDTHS(QUOTIENTS, float)

float REPLACEABLE CONST_FUNCTION __sp_target_native_dividef(float x, float y)
{
    return x / y;
}

float OVERLOAD native_divide(float x, float y)
{
    return __sp_target_native_dividef(x, y);
}

float REPLACEABLE CONST_FUNCTION __sp_target_native_recipf(float x)
{
    return 1 / x;
}

float OVERLOAD native_recip(float x)
{
    return __sp_target_native_recipf(x);
}

VECTORS_2(native_divide, float, float, float)
VECTORS_1(native_recip, float, float)

float OVERLOAD half_powr(float x, float y)
{
    return powr(x, y);
}

float REPLACEABLE CONST_FUNCTION __sp_target_native_powrf(float x, float y)
{
    return short_exp2(y * log2(x));
}

float OVERLOAD native_powr(float x, float y)
{
    return __sp_target_native_powrf(x, y);
}

VECTORS_2(half_powr, float, float, float)
VECTORS_2(native_powr, float, float, float)
