/* sinpi, cospi and tanpi (OpenCL C 3.0, 6.15.2), written to become vector code.
 *
 * The reduction is exact: t = |x| modulo 2; with q the integer nearest to 2 t, r = t - q / 2 lies
 * in [-1/4, 1/4], and q, 0 to 4, says which of sine and cosine of pi r it is, with which sign.
 * Polynomials in r^2 give
 *
 *     sin(pi r) = pi r + r^3 S(r^2)    cos(pi r) = 1 + r^2 C(r^2)
 *
 * fitted for the least largest relative error (below 4e-9 in float, 4e-18 in double). Everything is
 * selection, no branch: q stays a floating-point number, so that infinities and NaN run through to
 * the NaN that they should give.
 *
 * Zeros (7.5.1): sinpi(n) has the sign of n; cospi(n + 1/2) is +0; tanpi(n) has the sign of n for
 * even n and the other for odd n; tanpi(n + 1/2) is +infinity for even n and -infinity for odd n.
 */
#include "math.h"

#pragma OPENCL FP_CONTRACT ON

static float OVERLOAD sine_of_pi(float r)
{
    float z = r * r;
    float p = -0x1.2dc848p-1f;
    p = p * z + 0x1.466004p+1f;
    p = p * z - 0x1.4abbbep+2f;
    return r * 0x1.921fb6p+1f + r * (z * p - 0x1.777a5cp-24f);
}

static float OVERLOAD cosine_of_pi(float r)
{
    float z = r * r;
    float p = 0x1.d9d57ap-3f;
    p = p * z - 0x1.55c5e0p+0f;
    p = p * z + 0x1.03c1dep+2f;
    p = p * z - 0x1.3bd3ccp+2f;
    return p * z + 1.0f;
}

static double OVERLOAD sine_of_pi(double r)
{
    double z = r * r;
    double p = 0x1.e3ff24086d595p-12;
    p = p * z - 0x1.e300988d91190p-8;
    p = p * z + 0x1.5078300c38bbbp-4;
    p = p * z - 0x1.32d2cce3240b9p-1;
    p = p * z + 0x1.466bc67758cb2p+1;
    p = p * z - 0x1.4abbce625be46p+2;
    return r * 0x1.921fb54442d18p+1 + r * (z * p + 0x1.1a62633145c07p-53);
}

static double OVERLOAD cosine_of_pi(double r)
{
    double z = r * r;
    double p = -0x1.b263c124d387cp-14;
    p = p * z + 0x1.f9cc40a6962ccp-10;
    p = p * z - 0x1.a6d1ec7e0542cp-6;
    p = p * z + 0x1.e1f5068367ac7p-3;
    p = p * z - 0x1.55d3c7e3c9280p+0;
    p = p * z + 0x1.03c1f081b5aaep+2;
    p = p * z - 0x1.3bd3cc9be45dep+2;
    return p * z + 1.0;
}

#define TRIGONOMETRIC(T)                                                                           \
    T OVERLOAD sinpi(T x)                                                                          \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x);                                                \
        T t = magnitude - 2 * __builtin_elementwise_floor(magnitude / 2);                          \
        T q = __builtin_elementwise_rint(2 * t);                                                   \
        T r = t - q / 2;                                                                           \
        bool odd = q == 1 || q == 3;                                                               \
        T value = odd ? cosine_of_pi(r) : sine_of_pi(r);                                           \
        value = q == 2 || q == 3 ? -value : value;                                                 \
        value = value == 0 ? 0 : value;                                                            \
        return __builtin_elementwise_copysign((T)1, x) < 0 ? -value : value;                       \
    }                                                                                              \
    T OVERLOAD cospi(T x)                                                                          \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x);                                                \
        T t = magnitude - 2 * __builtin_elementwise_floor(magnitude / 2);                          \
        T q = __builtin_elementwise_rint(2 * t);                                                   \
        T r = t - q / 2;                                                                           \
        bool odd = q == 1 || q == 3;                                                               \
        T value = odd ? sine_of_pi(r) : cosine_of_pi(r);                                           \
        value = q == 1 || q == 2 ? -value : value;                                                 \
        return value == 0 ? 0 : value;                                                             \
    }                                                                                              \
    T OVERLOAD tanpi(T x)                                                                          \
    {                                                                                              \
        T magnitude = __builtin_elementwise_abs(x);                                                \
        T t = magnitude - 2 * __builtin_elementwise_floor(magnitude / 2);                          \
        T q = __builtin_elementwise_rint(2 * t);                                                   \
        T r = t - q / 2;                                                                           \
        bool odd = q == 1 || q == 3;                                                               \
        T sine = sine_of_pi(r);                                                                    \
        T cosine = cosine_of_pi(r);                                                                \
        T value = odd ? -cosine / sine : sine / cosine;                                            \
        T at_zero = odd ? (T)INFINITY : 0;                                                         \
        at_zero = q == 2 || q == 3 ? -at_zero : at_zero;                                           \
        value = r == 0 ? at_zero : value;                                                          \
        return __builtin_elementwise_copysign((T)1, x) < 0 ? -value : value;                       \
    }
TRIGONOMETRIC(float)
TRIGONOMETRIC(double)

FLOAT_VECTORS_1(sinpi)
FLOAT_VECTORS_1(cospi)
FLOAT_VECTORS_1(tanpi)
