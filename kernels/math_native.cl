/* native_ and half_ functions (OpenCL C 3.0, 6.15.2, float only).
 *
 * half_ may be off by 8192 ulp, and native_ by what the implementation likes. On a CPU the full
 * functions are vector code in most kernels, and quick; so these are the same, save where a shorter
 * formula is at hand. A GPU has instructions for native_ (target.h).
 */
#include "math.h"
#include "target.h"

#define NATIVE_1(name)                                                                             \
    float REPLACEABLE CONST_FUNCTION __sp_target_native_##name##f(float x)                         \
    {                                                                                              \
        return name(x);                                                                            \
    }                                                                                              \
    float OVERLOAD native_##name(float x)                                                          \
    {                                                                                              \
        return __sp_target_native_##name##f(x);                                                    \
    }                                                                                              \
    VECTORS_1(native_##name, float, float)
NATIVE_1(cos)
NATIVE_1(exp)
NATIVE_1(exp10)
NATIVE_1(exp2)
NATIVE_1(log)
NATIVE_1(log10)
NATIVE_1(log2)
NATIVE_1(rsqrt)
NATIVE_1(sin)
NATIVE_1(sqrt)
NATIVE_1(tan)

#define HALF_1(name)                                                                               \
    float OVERLOAD half_##name(float x)                                                            \
    {                                                                                              \
        return name(x);                                                                            \
    }                                                                                              \
    VECTORS_1(half_##name, float, float)
HALF_1(cos)
HALF_1(exp)
HALF_1(exp10)
HALF_1(exp2)
HALF_1(log)
HALF_1(log10)
HALF_1(log2)
HALF_1(rsqrt)
HALF_1(sin)
HALF_1(sqrt)
HALF_1(tan)

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
    return exp2(y * log2(x));
}

float OVERLOAD native_powr(float x, float y)
{
    return __sp_target_native_powrf(x, y);
}

VECTORS_2(half_powr, float, float, float)
VECTORS_2(native_powr, float, float, float)
