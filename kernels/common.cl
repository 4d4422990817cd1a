/* Common functions (OpenCL C 3.0, 6.15.4).
 *
 * Results for NaN arguments of min, max and clamp are undefined, so each is one comparison and a
 * selection, the shape of the processor's own minimum and maximum.
 */
#include "gentype.h"

#define COMMON(n, T, ...)                                                                          \
    T##n OVERLOAD min(T##n x, T##n y)                                                              \
    {                                                                                              \
        return y < x ? y : x;                                                                      \
    }                                                                                              \
    T##n OVERLOAD max(T##n x, T##n y)                                                              \
    {                                                                                              \
        return x < y ? y : x;                                                                      \
    }                                                                                              \
    T##n OVERLOAD clamp(T##n x, T##n low, T##n high)                                               \
    {                                                                                              \
        return min(max(x, low), high);                                                             \
    }                                                                                              \
    T##n OVERLOAD mix(T##n x, T##n y, T##n a)                                                      \
    {                                                                                              \
        return x + (y - x) * a;                                                                    \
    }                                                                                              \
    T##n OVERLOAD step(T##n edge, T##n x)                                                          \
    {                                                                                              \
        return x < edge ? (T##n)0 : (T##n)1;                                                       \
    }                                                                                              \
    T##n OVERLOAD smoothstep(T##n edge0, T##n edge1, T##n x)                                       \
    {                                                                                              \
        T##n t = clamp((x - edge0) / (edge1 - edge0), (T##n)0, (T##n)1);                           \
        return t * t * ((T##n)3 - (T##n)2 * t);                                                    \
    }                                                                                              \
    T##n OVERLOAD sign(T##n x) /* keeps the sign of a zero; 0 for NaN */                           \
    {                                                                                              \
        T##n magnitude = x != (T##n)0 ? (T##n)1 : (T##n)0;                                         \
        return x == x ? __builtin_elementwise_copysign(magnitude, x) : (T##n)0;                    \
    }                                                                                              \
    T##n OVERLOAD degrees(T##n x)                                                                  \
    {                                                                                              \
        return x * (T##n)(T)(180 / M_PI);                                                          \
    }                                                                                              \
    T##n OVERLOAD radians(T##n x)                                                                  \
    {                                                                                              \
        return x * (T##n)(T)(M_PI / 180);                                                          \
    }
FLOAT_TYPES(COMMON)

#define WITH_SCALAR(n, T)                                                                          \
    T##n OVERLOAD min(T##n x, T y)                                                                 \
    {                                                                                              \
        return min(x, (T##n)y);                                                                    \
    }                                                                                              \
    T##n OVERLOAD max(T##n x, T y)                                                                 \
    {                                                                                              \
        return max(x, (T##n)y);                                                                    \
    }                                                                                              \
    T##n OVERLOAD clamp(T##n x, T low, T high)                                                     \
    {                                                                                              \
        return clamp(x, (T##n)low, (T##n)high);                                                    \
    }                                                                                              \
    T##n OVERLOAD mix(T##n x, T##n y, T a)                                                         \
    {                                                                                              \
        return mix(x, y, (T##n)a);                                                                 \
    }                                                                                              \
    T##n OVERLOAD step(T edge, T##n x)                                                             \
    {                                                                                              \
        return step((T##n)edge, x);                                                                \
    }                                                                                              \
    T##n OVERLOAD smoothstep(T edge0, T edge1, T##n x)                                             \
    {                                                                                              \
        return smoothstep((T##n)edge0, (T##n)edge1, x);                                            \
    }
VECTOR_WIDTHS(WITH_SCALAR, float)
VECTOR_WIDTHS(WITH_SCALAR, double)
