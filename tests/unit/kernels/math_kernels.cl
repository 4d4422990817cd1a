/* The OpenCL C side of test_math.c: each builtin over arrays, as a scalar and in every vector width.
 * The vector form of width n is name_Tn; counts are multiples of 48, which all widths divide. */
#include "math_functions.h"

#define WIDTHS(M, ...)                                                                             \
    M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)

#define UNARY_VECTOR(n, name, R, T)                                                                \
    void name##_##T##n(__global const T *x, __global R *r, ulong count)                            \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(name(vload##n(i, x)), i, r);                                                 \
    }
#define UNARY_TYPE(name, R, T)                                                                     \
    void name##_##T(__global const T *x, __global R *r, ulong count)                               \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i]);                                                                     \
    }                                                                                              \
    WIDTHS(UNARY_VECTOR, name, R, T)
#define UNARY(name, ...)                                                                           \
    UNARY_TYPE(name, float, float)                                                                 \
    UNARY_TYPE(name, double, double)

#define BINARY_VECTOR(n, name, T, U)                                                               \
    void name##_##T##n(__global const T *x, __global const U *y, __global T *r, ulong count)       \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(name(vload##n(i, x), vload##n(i, y)), i, r);                                 \
    }
#define BINARY_TYPE(name, T, U)                                                                    \
    void name##_##T(__global const T *x, __global const U *y, __global T *r, ulong count)          \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i], y[i]);                                                               \
    }                                                                                              \
    WIDTHS(BINARY_VECTOR, name, T, U)
#define BINARY(name, ...)                                                                          \
    BINARY_TYPE(name, float, float)                                                                \
    BINARY_TYPE(name, double, double)
#define BINARY_INT(name, ...)                                                                      \
    BINARY_TYPE(name, float, int)                                                                  \
    BINARY_TYPE(name, double, int)

UNARY_FUNCTIONS(UNARY)
EXACT_UNARY_FUNCTIONS(UNARY)
BINARY_FUNCTIONS(BINARY)
EXACT_BINARY_FUNCTIONS(BINARY)
BINARY_INT_FUNCTIONS(BINARY_INT)
BINARY_INT(ldexp)
UNARY_TYPE(ilogb, int, float)
UNARY_TYPE(ilogb, int, double)
UNARY_TYPE(nan, float, uint)
UNARY_TYPE(nan, double, ulong)

#define HALF(name)                                                                                 \
    UNARY_TYPE(half_##name, float, float)                                                          \
    UNARY_TYPE(native_##name, float, float)
HALF_FUNCTIONS(HALF)
BINARY_TYPE(half_powr, float, float)
BINARY_TYPE(half_divide, float, float)

#define FMA_VECTOR(n, T)                                                                           \
    void fma_##T##n(__global const T *x, __global const T *y, __global const T *z, __global T *r,  \
                    ulong count)                                                                   \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(fma(vload##n(i, x), vload##n(i, y), vload##n(i, z)), i, r);                  \
    }
#define FMA(T)                                                                                     \
    void fma_##T(__global const T *x, __global const T *y, __global const T *z, __global T *r,     \
                 ulong count)                                                                      \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = fma(x[i], y[i], z[i]);                                                          \
    }                                                                                              \
    WIDTHS(FMA_VECTOR, T)
FMA(float)
FMA(double)

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
