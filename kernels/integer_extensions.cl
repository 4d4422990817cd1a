/* cl_khr_extended_bit_ops and cl_khr_integer_dot_product.
 *
 * The CPU device lists the first. The functions of the second are here since clang's opencl-c.h
 * declares them for every spir64.
 */
#include "gentype.h"

/* The low `count` bits: a count of 0 gives none, and one of the full width must not shift by it. */
#define LOW_BITS(U, bits, count)                                                                   \
    ((count) == 0 ? (U)0 : (U)((U) ~(U)0 >> ((bits - (count)) & (bits - 1))))

#define BIT_OPERATIONS(n, T, S, U, bits)                                                           \
    T##n OVERLOAD bitfield_insert(T##n base, T##n insert, uint offset, uint count)                 \
    {                                                                                              \
        U##n mask = (U##n)(U)(LOW_BITS(U, bits, count) << (offset & (bits - 1)));                  \
        U##n moved = __builtin_astype(insert, U##n) << (U##n)(U)(offset & (bits - 1));             \
        U##n result = (__builtin_astype(base, U##n) & ~mask) | (moved & mask);                     \
        return __builtin_astype(result, T##n);                                                     \
    }                                                                                              \
    S##n OVERLOAD bitfield_extract_signed(T##n base, uint offset, uint count)                      \
    {                                                                                              \
        U##n top = __builtin_astype(base, U##n)                                                    \
                   << (U##n)(U)((bits - offset - count) & (bits - 1));                             \
        S##n result = __builtin_astype(top, S##n) >> (S##n)(S)((bits - count) & (bits - 1));       \
        return count == 0 ? (S##n)0 : result;                                                      \
    }                                                                                              \
    U##n OVERLOAD bitfield_extract_unsigned(T##n base, uint offset, uint count)                    \
    {                                                                                              \
        U##n low = __builtin_astype(base, U##n) >> (U##n)(U)(offset & (bits - 1));                 \
        return low & (U##n)LOW_BITS(U, bits, count);                                               \
    }

#define BIT_TYPES(T, S, U, bits) ALL_WIDTHS(BIT_OPERATIONS, T, S, U, bits)
BIT_TYPES(char, char, uchar, 8)
BIT_TYPES(uchar, char, uchar, 8)
BIT_TYPES(short, short, ushort, 16)
BIT_TYPES(ushort, short, ushort, 16)
BIT_TYPES(int, int, uint, 32)
BIT_TYPES(uint, int, uint, 32)
BIT_TYPES(long, long, ulong, 64)
BIT_TYPES(ulong, long, ulong, 64)

/* On a scalar the elementwise builtin would reverse the promoted value. */
#define BIT_REVERSE(n, T)                                                                          \
    T##n OVERLOAD bit_reverse(T##n x)                                                              \
    {                                                                                              \
        return __builtin_elementwise_bitreverse(x);                                                \
    }
#define BIT_REVERSES(T, U, scalar)                                                                 \
    T OVERLOAD bit_reverse(T x)                                                                    \
    {                                                                                              \
        return (T)scalar((U)x);                                                                    \
    }                                                                                              \
    VECTOR_WIDTHS(BIT_REVERSE, T)
BIT_REVERSES(char, uchar, __builtin_bitreverse8)
BIT_REVERSES(uchar, uchar, __builtin_bitreverse8)
BIT_REVERSES(short, ushort, __builtin_bitreverse16)
BIT_REVERSES(ushort, ushort, __builtin_bitreverse16)
BIT_REVERSES(int, uint, __builtin_bitreverse32)
BIT_REVERSES(uint, uint, __builtin_bitreverse32)
BIT_REVERSES(long, ulong, __builtin_bitreverse64)
BIT_REVERSES(ulong, ulong, __builtin_bitreverse64)

/* Four products of bytes, and their sum: at most 4 * 255 * 255, so that no int overflows. */
#define DOT_PRODUCT(A, B, R, packed)                                                               \
    R OVERLOAD dot(A##4 x, B##4 y)                                                                 \
    {                                                                                              \
        return (R)x.x * (R)y.x + (R)x.y * (R)y.y + (R)x.z * (R)y.z + (R)x.w * (R)y.w;              \
    }                                                                                              \
    R OVERLOAD dot_acc_sat(A##4 x, B##4 y, R sum)                                                  \
    {                                                                                              \
        return __builtin_elementwise_add_sat(dot(x, y), sum);                                      \
    }                                                                                              \
    R OVERLOAD dot_4x8packed_##packed(uint x, uint y)                                              \
    {                                                                                              \
        return dot(__builtin_astype(x, A##4), __builtin_astype(y, B##4));                          \
    }                                                                                              \
    R OVERLOAD dot_acc_sat_4x8packed_##packed(uint x, uint y, R sum)                               \
    {                                                                                              \
        return __builtin_elementwise_add_sat(dot_4x8packed_##packed(x, y), sum);                   \
    }
DOT_PRODUCT(char, char, int, ss_int)
DOT_PRODUCT(uchar, uchar, uint, uu_uint)
DOT_PRODUCT(char, uchar, int, su_int)
DOT_PRODUCT(uchar, char, int, us_int)
