/* native_ and half_ functions (OpenCL C 3.0, 6.15.2, float only).
 *
 * half_ may be off by 8192 ulp, and native_ by what the implementation likes. The full functions
 * are vector code in most kernels, and quick; so these are the same, save where a shorter formula
 * is at hand.
 */
#include "math.h"

#define SAME_1(name)                                                                               \
    float OVERLOAD half_##name(float x)                                                            \
    {                                                                                              \
        return name(x);                                                                            \
    }                                                                                              \
    float OVERLOAD native_##name(float x)                                                          \
    {                                                                                              \
        return name(x);                                                                            \
    }                                                                                              \
    VECTORS_1(half_##name, float, float)                                                           \
    VECTORS_1(native_##name, float, float)
SAME_1(cos)
SAME_1(exp)
SAME_1(exp10)
SAME_1(exp2)
SAME_1(log)
SAME_1(log10)
SAME_1(log2)
SAME_1(rsqrt)
SAME_1(sin)
SAME_1(sqrt)
SAME_1(tan)

#define QUOTIENTS(n, T)                                                                            \
    T##n OVERLOAD half_divide(T##n x, T##n y)                                                      \
    {                                                                                              \
        return x / y;                                                                              \
    }                                                                                              \
    T##n OVERLOAD native_divide(T##n x, T##n y)                                                    \
    {                                                                                              \
        return x / y;                                                                              \
    }                                                                                              \
    T##n OVERLOAD half_recip(T##n x)                                                               \
    {                                                                                              \
        return (T##n)1 / x;                                                                        \
    }                                                                                              \
    T##n OVERLOAD native_recip(T##n x)                                                             \
    {                                                                                              \
        return (T##n)1 / x;                                                                        \
    }
ALL_WIDTHS(QUOTIENTS, float)

float OVERLOAD half_powr(float x, float y)
{
    return powr(x, y);
}

float OVERLOAD native_powr(float x, float y)
{
    return exp2(y * log2(x));
}

VECTORS_2(half_powr, float, float, float)
VECTORS_2(native_powr, float, float, float)
