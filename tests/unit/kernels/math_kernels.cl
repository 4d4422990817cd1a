/* The OpenCL C side of test_math.c: each builtin over arrays. */
#include "arrays.h"
#include "math_functions.h"

#define UNARY(name, ...)                                                                           \
    FUNCTION_1(name, float, float)                                                                 \
    FUNCTION_1(name, double, double)
#define BINARY(name, ...)                                                                          \
    FUNCTION_2(name, float, float, float)                                                          \
    FUNCTION_2(name, double, double, double)
#define BINARY_INT(name, ...)                                                                      \
    FUNCTION_2(name, float, float, int)                                                            \
    FUNCTION_2(name, double, double, int)

UNARY_FUNCTIONS(UNARY)
EXACT_UNARY_FUNCTIONS(UNARY)
BINARY_FUNCTIONS(BINARY)
EXACT_BINARY_FUNCTIONS(BINARY)
BINARY_INT_FUNCTIONS(BINARY_INT)
BINARY_INT(ldexp)
FUNCTION_1(ilogb, int, float)
FUNCTION_1(ilogb, int, double)
FUNCTION_1(nan, float, uint)
FUNCTION_1(nan, double, ulong)

#define HALF(name)                                                                                 \
    FUNCTION_1(half_##name, float, float)                                                          \
    FUNCTION_1(native_##name, float, float)
HALF_FUNCTIONS(HALF)
FUNCTION_2(half_powr, float, float, float)
FUNCTION_2(half_divide, float, float, float)

FUNCTION_3(fma, float, float, float, float)
FUNCTION_3(fma, double, double, double, double)

/* Two results: through a pointer to generic memory in vectors, to global memory in scalars. */
#define POINTER_VECTOR(n, name, T, P)                                                              \
    void name##_##T##n(__global const T *x, __global P *p, __global T *r, ulong count)             \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++) {                                                    \
            P##n second;                                                                           \
            vstore##n(name(vload##n(i, x), &second), i, r);                                        \
            vstore##n(second, i, p);                                                               \
        }                                                                                          \
    }
#define POINTER(name, T, P)                                                                        \
    void name##_##T(__global const T *x, __global P *p, __global T *r, ulong count)                \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i], p + i);                                                              \
    }                                                                                              \
    WIDTHS(POINTER_VECTOR, name, T, P)
POINTER(fract, float, float)
POINTER(fract, double, double)
POINTER(modf, float, float)
POINTER(modf, double, double)
POINTER(sincos, float, float)
POINTER(sincos, double, double)
POINTER(frexp, float, int)
POINTER(frexp, double, int)
POINTER(lgamma_r, float, int)
POINTER(lgamma_r, double, int)

#define REMQUO_VECTOR(n, T)                                                                        \
    void remquo_##T##n(__global const T *x, __global const T *y, __global int *q, __global T *r,   \
                       ulong count)                                                                \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++) {                                                    \
            int##n quotient;                                                                       \
            vstore##n(remquo(vload##n(i, x), vload##n(i, y), &quotient), i, r);                    \
            vstore##n(quotient, i, q);                                                             \
        }                                                                                          \
    }
#define REMQUO(T)                                                                                  \
    void remquo_##T(__global const T *x, __global const T *y, __global int *q, __global T *r,      \
                    ulong count)                                                                   \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = remquo(x[i], y[i], q + i);                                                      \
    }                                                                                              \
    WIDTHS(REMQUO_VECTOR, T)
REMQUO(float)
REMQUO(double)
