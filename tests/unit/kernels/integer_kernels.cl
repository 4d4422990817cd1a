/* The OpenCL C side of test_integer.c: each builtin over arrays. */
#include "arrays.h"

/* The overloads whose last arguments are scalars of the element type, under names of their own. */
#define WITH_SCALAR(n, T)                                                                          \
    T##n __attribute__((overloadable)) min_scalar(T##n x, T##n y)                                  \
    {                                                                                              \
        return min(x, y.s0);                                                                       \
    }                                                                                              \
    T##n __attribute__((overloadable)) max_scalar(T##n x, T##n y)                                  \
    {                                                                                              \
        return max(x, y.s0);                                                                       \
    }                                                                                              \
    T##n __attribute__((overloadable)) clamp_scalar(T##n x, T##n y, T##n z)                        \
    {                                                                                              \
        return clamp(x, y.s0, z.s0);                                                               \
    }
/* and what they must equal */
#define SPREAD(n, T)                                                                               \
    T##n __attribute__((overloadable)) min_spread(T##n x, T##n y)                                  \
    {                                                                                              \
        return min(x, (T##n)y.s0);                                                                 \
    }                                                                                              \
    T##n __attribute__((overloadable)) max_spread(T##n x, T##n y)                                  \
    {                                                                                              \
        return max(x, (T##n)y.s0);                                                                 \
    }                                                                                              \
    T##n __attribute__((overloadable)) clamp_spread(T##n x, T##n y, T##n z)                        \
    {                                                                                              \
        return clamp(x, (T##n)y.s0, (T##n)z.s0);                                                   \
    }
/* The number of elements in which the two differ. */
#define COMPARE(n, T)                                                                              \
    for (ulong i = 0; i < count / n; i++) {                                                        \
        T##n a = vload##n(i, x), b = vload##n(i, y), c = vload##n(i, z);                           \
        T##n scalar[3] = {min_scalar(a, b), max_scalar(a, b), clamp_scalar(a, b, c)};              \
        T##n spread[3] = {min_spread(a, b), max_spread(a, b), clamp_spread(a, b, c)};              \
        for (int j = 0; j < 3; j++)                                                                \
            for (int k = 0; k < n; k++)                                                            \
                wrong += scalar[j][k] != spread[j][k];                                             \
    }

#define ALL(T, U)                                                                                  \
    FUNCTION_1(abs, U, T)                                                                          \
    FUNCTION_1(clz, T, T)                                                                          \
    FUNCTION_1(ctz, T, T)                                                                          \
    FUNCTION_1(popcount, T, T)                                                                     \
    FUNCTION_1(bit_reverse, T, T)                                                                  \
    FUNCTION_2(abs_diff, U, T, T)                                                                  \
    FUNCTION_2(add_sat, T, T, T)                                                                   \
    FUNCTION_2(sub_sat, T, T, T)                                                                   \
    FUNCTION_2(hadd, T, T, T)                                                                      \
    FUNCTION_2(rhadd, T, T, T)                                                                     \
    FUNCTION_2(mul_hi, T, T, T)                                                                    \
    FUNCTION_2(rotate, T, T, T)                                                                    \
    FUNCTION_2(min, T, T, T)                                                                       \
    FUNCTION_2(max, T, T, T)                                                                       \
    FUNCTION_3(clamp, T, T, T, T)                                                                  \
    FUNCTION_3(mad_hi, T, T, T, T)                                                                 \
    FUNCTION_3(mad_sat, T, T, T, T)                                                                \
    WIDTHS(WITH_SCALAR, T)                                                                         \
    WIDTHS(SPREAD, T)                                                                              \
    ulong scalar_forms_##T(__global const T *x, __global const T *y, __global const T *z,          \
                           ulong count)                                                            \
    {                                                                                              \
        ulong wrong = 0;                                                                           \
        WIDTHS(COMPARE, T)                                                                         \
        return wrong;                                                                              \
    }
ALL(char, uchar)
ALL(uchar, uchar)
ALL(short, ushort)
ALL(ushort, ushort)
ALL(int, uint)
ALL(uint, uint)
ALL(long, ulong)
ALL(ulong, ulong)

FUNCTION_2(mul24, int, int, int)
FUNCTION_2(mul24, uint, uint, uint)
FUNCTION_3(mad24, int, int, int, int)
FUNCTION_3(mad24, uint, uint, uint, uint)
FUNCTION_2(upsample, short, char, uchar)
FUNCTION_2(upsample, ushort, uchar, uchar)
FUNCTION_2(upsample, int, short, ushort)
FUNCTION_2(upsample, uint, ushort, ushort)
FUNCTION_2(upsample, long, int, uint)
FUNCTION_2(upsample, ulong, uint, uint)

/* offset and count come packed in one array: they are scalars for all widths. */
#define BIT_FIELD(T, S, U)                                                                         \
    void bit_field_##T(__global const T *x, __global const T *y, __global const uint *fields,      \
                       __global T *inserted, __global S *as_signed, __global U *as_unsigned,       \
                       ulong count)                                                                \
    {                                                                                              \
        for (ulong i = 0; i < count; i++) {                                                        \
            uint offset = fields[2 * i], bits = fields[2 * i + 1];                                 \
            inserted[i] = bitfield_insert(x[i], y[i], offset, bits);                               \
            as_signed[i] = bitfield_extract_signed(x[i], offset, bits);                            \
            as_unsigned[i] = bitfield_extract_unsigned(x[i], offset, bits);                        \
            T##4 vector = bitfield_insert((T##4)x[i], (T##4)y[i], offset, bits);                   \
            S##4 signed_vector = bitfield_extract_signed((T##4)x[i], offset, bits);                \
            U##4 unsigned_vector = bitfield_extract_unsigned((T##4)x[i], offset, bits);            \
            if (vector.s3 != inserted[i] || signed_vector.s1 != as_signed[i] ||                    \
                unsigned_vector.s2 != as_unsigned[i])                                              \
                inserted[i] = ~inserted[i];                                                        \
        }                                                                                          \
    }
BIT_FIELD(char, char, uchar)
BIT_FIELD(ushort, short, ushort)
BIT_FIELD(int, int, uint)
BIT_FIELD(ulong, long, ulong)

void dot_products(__global const uint *x, __global const uint *y, __global int *r)
{
    r[0] = dot(as_char4(*x), as_char4(*y));
    r[1] = dot(as_uchar4(*x), as_uchar4(*y));
    r[2] = dot(as_char4(*x), as_uchar4(*y));
    r[3] = dot_4x8packed_us_int(*x, *y);
    r[4] = dot_acc_sat(as_char4(*x), as_char4(*y), INT_MAX - 10);
    r[5] = dot_acc_sat_4x8packed_uu_uint(*x, *y, UINT_MAX - 10);
}
