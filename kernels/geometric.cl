/* Geometric functions (OpenCL C 3.0, 6.15.5).
 *
 * length, distance and normalize must not lose a result to a square that overflows or underflows.
 * The vector is first brought near 1 by a power of two, chosen without a branch from three: exact,
 * and cheap enough to be always done. The fast_ forms are the plain formulas.
 */
#include "gentype.h"

#define SQRT(x) __builtin_elementwise_sqrt(x)
#define ABS(x) __builtin_elementwise_abs(x)
#define MAX(x, y) __builtin_elementwise_max(x, y)

#define DOT(T)                                                                                     \
    T OVERLOAD dot(T x, T y)                                                                       \
    {                                                                                              \
        return x * y;                                                                              \
    }                                                                                              \
    T OVERLOAD dot(T##2 x, T##2 y)                                                                 \
    {                                                                                              \
        T##2 p = x * y;                                                                            \
        return p.x + p.y;                                                                          \
    }                                                                                              \
    T OVERLOAD dot(T##3 x, T##3 y)                                                                 \
    {                                                                                              \
        T##3 p = x * y;                                                                            \
        return p.x + p.y + p.z;                                                                    \
    }                                                                                              \
    T OVERLOAD dot(T##4 x, T##4 y)                                                                 \
    {                                                                                              \
        T##4 p = x * y;                                                                            \
        return (p.x + p.y) + (p.z + p.w);                                                          \
    }
DOT(float)
DOT(double)

#define CROSS(T)                                                                                   \
    T##3 OVERLOAD cross(T##3 x, T##3 y)                                                            \
    {                                                                                              \
        return x.yzx * y.zxy - x.zxy * y.yzx;                                                      \
    }                                                                                              \
    T##4 OVERLOAD cross(T##4 x, T##4 y)                                                            \
    {                                                                                              \
        return (T##4)(cross(x.xyz, y.xyz), 0);                                                     \
    }
CROSS(float)
CROSS(double)

/* The largest magnitude among the elements. */
#define LARGEST(T)                                                                                 \
    static T OVERLOAD largest(T##2 x)                                                              \
    {                                                                                              \
        return MAX(ABS(x.x), ABS(x.y));                                                            \
    }                                                                                              \
    static T OVERLOAD largest(T##3 x)                                                              \
    {                                                                                              \
        return MAX(largest(x.xy), ABS(x.z));                                                       \
    }                                                                                              \
    static T OVERLOAD largest(T##4 x)                                                              \
    {                                                                                              \
        return MAX(largest(x.xy), largest(x.zw));                                                  \
    }
LARGEST(float)
LARGEST(double)

/* A factor that takes a magnitude to where it can be squared and four squares summed, and where
 * what underflows then is too small to matter. */
static float OVERLOAD scale_near_one(float magnitude)
{
    return magnitude > 0x1p+61f ? 0x1p-70f : magnitude < 0x1p-48f ? 0x1p+90f : 1.0f;
}

static double OVERLOAD scale_near_one(double magnitude)
{
    return magnitude > 0x1p+509 ? 0x1p-530 : magnitude < 0x1p-450 ? 0x1p+640 : 1.0;
}

#define LENGTH(n, T)                                                                               \
    T OVERLOAD length(T##n x)                                                                      \
    {                                                                                              \
        T scale = scale_near_one(largest(x));                                                      \
        T##n near = x * (T##n)scale;                                                               \
        return SQRT(dot(near, near)) / scale;                                                      \
    }                                                                                              \
    T OVERLOAD distance(T##n x, T##n y)                                                            \
    {                                                                                              \
        return length(x - y);                                                                      \
    }
/* An infinite element makes every finite one 0 beside it: treat infinities as 1, the rest as 0. The
 * zero vector stays what it is, and a NaN makes all NaN. A scale below 1 takes the bits of a small
 * element that stands beside a large one: it is for the length only, and a quarter, which keeps the
 * largest length finite, for what is divided. */
#define NORMALIZE(n, T)                                                                            \
    T##n OVERLOAD normalize(T##n x)                                                                \
    {                                                                                              \
        T magnitude = largest(x);                                                                  \
        if (magnitude == INFINITY) {                                                               \
            T##n infinite = ABS(x) == (T##n)INFINITY ? (T##n)1 : (T##n)0;                          \
            x = x == x ? __builtin_elementwise_copysign(infinite, x) : x;                          \
        }                                                                                          \
        T scale = scale_near_one(magnitude == INFINITY ? 1 : magnitude);                           \
        T kept = scale < 1 ? (T)0.25 : scale;                                                      \
        T##n near = x * (T##n)scale;                                                               \
        T##n result = x * (T##n)kept / (T##n)(SQRT(dot(near, near)) * (kept / scale));             \
        return magnitude == 0 ? x : result;                                                        \
    }
#define LENGTHS(T)                                                                                 \
    T OVERLOAD length(T x)                                                                         \
    {                                                                                              \
        return ABS(x);                                                                             \
    }                                                                                              \
    T OVERLOAD distance(T x, T y)                                                                  \
    {                                                                                              \
        return ABS(x - y);                                                                         \
    }                                                                                              \
    T OVERLOAD normalize(T x)                                                                      \
    {                                                                                              \
        T one = __builtin_elementwise_copysign((T)1, x);                                           \
        return ABS(x) > 0 ? one : x;                                                               \
    }                                                                                              \
    LENGTH(2, T)                                                                                   \
    LENGTH(3, T)                                                                                   \
    LENGTH(4, T)                                                                                   \
    NORMALIZE(2, T)                                                                                \
    NORMALIZE(3, T)                                                                                \
    NORMALIZE(4, T)
LENGTHS(float)
LENGTHS(double)

#define FAST(n)                                                                                    \
    float OVERLOAD fast_length(float##n x)                                                         \
    {                                                                                              \
        return SQRT(dot(x, x));                                                                    \
    }                                                                                              \
    float OVERLOAD fast_distance(float##n x, float##n y)                                           \
    {                                                                                              \
        return fast_length(x - y);                                                                 \
    }                                                                                              \
    float##n OVERLOAD fast_normalize(float##n x)                                                   \
    {                                                                                              \
        float square = dot(x, x);                                                                  \
        float##n result = x * (float##n)(1.0f / SQRT(square));                                     \
        return square == 0 ? x : result;                                                           \
    }
FAST()
FAST(2)
FAST(3)
FAST(4)
