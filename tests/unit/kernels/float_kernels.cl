/* The OpenCL C side of test_float.c: common, geometric and relational builtins. */
#include "arrays.h"

#define COMMON(T)                                                                                  \
    FUNCTION_1(degrees, T, T)                                                                      \
    FUNCTION_1(radians, T, T)                                                                      \
    FUNCTION_1(sign, T, T)                                                                         \
    FUNCTION_2(min, T, T, T)                                                                       \
    FUNCTION_2(max, T, T, T)                                                                       \
    FUNCTION_2(step, T, T, T)                                                                      \
    FUNCTION_3(clamp, T, T, T, T)                                                                  \
    FUNCTION_3(mix, T, T, T, T)                                                                    \
    FUNCTION_3(smoothstep, T, T, T, T)
COMMON(float)
COMMON(double)

/* Forms with scalar arguments, which must do as the vector does that has them in every element. */
#define WITH_SCALARS(n, T)                                                                         \
    for (ulong i = 0; i < count / n; i++) {                                                        \
        T##n a = vload##n(i, x), b = vload##n(i, y);                                               \
        T s = y[i], t = z[i];                                                                      \
        T##n scalar[] = {min(a, s),  max(a, s),           fmin(a, s),                              \
                         fmax(a, s), clamp(a, s, t),      mix(a, b, s),                            \
                         step(s, a), smoothstep(s, t, a), ldexp(a, (int)(i % 40))};                \
        T##n vector[] = {min(a, (T##n)s),                                                          \
                         max(a, (T##n)s),                                                          \
                         fmin(a, (T##n)s),                                                         \
                         fmax(a, (T##n)s),                                                         \
                         clamp(a, (T##n)s, (T##n)t),                                               \
                         mix(a, b, (T##n)s),                                                       \
                         step((T##n)s, a),                                                         \
                         smoothstep((T##n)s, (T##n)t, a),                                          \
                         ldexp(a, (int##n)(int)(i % 40))};                                         \
        for (int k = 0; k < 9; k++)                                                                \
            wrong += any((scalar[k] != vector[k]) &                                                \
                         ((scalar[k] == scalar[k]) | (vector[k] == vector[k])));                   \
    }
#define SCALAR_FORMS(T)                                                                            \
    ulong scalar_forms_##T(__global const T *x, __global const T *y, __global const T *z,          \
                           ulong count)                                                            \
    {                                                                                              \
        ulong wrong = 0;                                                                           \
        WIDTHS(WITH_SCALARS, T)                                                                    \
        return wrong;                                                                              \
    }
SCALAR_FORMS(float)
SCALAR_FORMS(double)

/* The scalar relations give 1, the vector ones -1 in the width of the element. */
#define BOTH_SIGNS(n, name, T, I)                                                                  \
    for (ulong i = 0; i < count / n; i++) {                                                        \
        I##n result = name(vload##n(i, x), vload##n(i, y));                                        \
        for (int k = 0; k < n; k++)                                                                \
            wrong += result[k] != -(I)r[n * i + k];                                                \
    }
#define RELATION(name, T, I)                                                                       \
    ulong name##_##T(__global const T *x, __global const T *y, __global int *r, ulong count)       \
    {                                                                                              \
        ulong wrong = 0;                                                                           \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i], y[i]);                                                               \
        WIDTHS(BOTH_SIGNS, name, T, I)                                                             \
        return wrong;                                                                              \
    }
#define RELATIONS(name) RELATION(name, float, int) RELATION(name, double, long)
RELATIONS(isequal)
RELATIONS(isnotequal)
RELATIONS(isgreater)
RELATIONS(isgreaterequal)
RELATIONS(isless)
RELATIONS(islessequal)
RELATIONS(islessgreater)
RELATIONS(isordered)
RELATIONS(isunordered)
#define first_isnan(a, b) isnan(a)
#define first_isinf(a, b) isinf(a)
#define first_isfinite(a, b) isfinite(a)
#define first_isnormal(a, b) isnormal(a)
#define first_signbit(a, b) signbit(a)
RELATIONS(first_isnan)
RELATIONS(first_isinf)
RELATIONS(first_isfinite)
RELATIONS(first_isnormal)
RELATIONS(first_signbit)

/* select and bitselect: the condition is an array of its own; the vector forms go by the top bit.
 */
#define SELECTS(T, I, U)                                                                           \
    FUNCTION_3(bitselect, T, T, T, T)                                                              \
    void select_##T(__global const T *x, __global const T *y, __global const I *c, __global T *r,  \
                    ulong count)                                                                   \
    {                                                                                              \
        for (ulong i = 0; i < count / 6; i += 1) {                                                 \
            r[6 * i] = select(x[6 * i], y[6 * i], c[6 * i]);                                       \
            r[6 * i + 1] = select(x[6 * i + 1], y[6 * i + 1], (U)c[6 * i + 1]);                    \
            T##2 xs = vload2(3 * i + 1, x), ys = vload2(3 * i + 1, y);                             \
            vstore2(select(xs, ys, vload2(3 * i + 1, c)), 3 * i + 1, r);                           \
            xs = vload2(3 * i + 2, x), ys = vload2(3 * i + 2, y);                                  \
            vstore2(select(xs, ys, as_##U##2(vload2(3 * i + 2, c))), 3 * i + 2, r);                \
        }                                                                                          \
    }
SELECTS(char, char, uchar)
SELECTS(uchar, char, uchar)
SELECTS(short, short, ushort)
SELECTS(ushort, short, ushort)
SELECTS(int, int, uint)
SELECTS(uint, int, uint)
SELECTS(long, long, ulong)
SELECTS(ulong, long, ulong)
SELECTS(float, int, uint)
SELECTS(double, long, ulong)

/* Bit k of the result says any, bit 16 + k all, for the width of index k. */
#define ANY_ALL(T)                                                                                 \
    uint any_all_##T(__global const T *x)                                                          \
    {                                                                                              \
        return any(x[0]) | any(vload2(0, x)) << 1 | any(vload3(0, x)) << 2 |                       \
               any(vload4(0, x)) << 3 | any(vload8(0, x)) << 4 | any(vload16(0, x)) << 5 |         \
               all(x[0]) << 16 | all(vload2(0, x)) << 17 | all(vload3(0, x)) << 18 |               \
               all(vload4(0, x)) << 19 | all(vload8(0, x)) << 20 | all(vload16(0, x)) << 21;       \
    }
ANY_ALL(char)
ANY_ALL(short)
ANY_ALL(int)
ANY_ALL(long)

/* r: dot, length, distance, then normalize in the remaining elements. */
#define GEOMETRIC(n, T)                                                                            \
    void geometric_##T##n(__global const T *x, __global const T *y, __global T *r)                 \
    {                                                                                              \
        T##n a = vload##n(0, x), b = vload##n(0, y);                                               \
        r[0] = dot(a, b);                                                                          \
        r[1] = length(a);                                                                          \
        r[2] = distance(a, b);                                                                     \
        vstore##n(normalize(a), 0, r + 3);                                                         \
    }
#define GEOMETRIC_SCALAR(T)                                                                        \
    void geometric_##T##1(__global const T *x, __global const T *y, __global T *r)                 \
    {                                                                                              \
        r[0] = dot(*x, *y);                                                                        \
        r[1] = length(*x);                                                                         \
        r[2] = distance(*x, *y);                                                                   \
        r[3] = normalize(*x);                                                                      \
    }                                                                                              \
    void cross_##T(__global const T *x, __global const T *y, __global T *r)                        \
    {                                                                                              \
        vstore3(cross(vload3(0, x), vload3(0, y)), 0, r);                                          \
        vstore4(cross(vload4(0, x), vload4(0, y)), 0, r + 3);                                      \
    }                                                                                              \
    GEOMETRIC(2, T)                                                                                \
    GEOMETRIC(3, T)                                                                                \
    GEOMETRIC(4, T)
GEOMETRIC_SCALAR(float)
GEOMETRIC_SCALAR(double)

void fast_geometric(__global const float *x, __global const float *y, __global float *r)
{
    float4 a = vload4(0, x), b = vload4(0, y);
    r[0] = fast_length(a);
    r[1] = fast_distance(a, b);
    vstore4(fast_normalize(a), 0, r + 2);
    r[6] = fast_length(a.xy);
    r[7] = fast_length(a.x);
    vstore3(fast_normalize(a.xyz), 0, r + 8);
}
