/* Relational functions (OpenCL C 3.0, 6.15.6).
 *
 * A comparison of vectors in OpenCL C already gives what the vector forms return, 0 or -1 in
 * integers as wide as the elements, and a comparison of scalars gives 0 or 1. So one expression
 * serves both; only the type of the result differs (int for a scalar double, long for its vectors).
 */
#include "gentype.h"

#define RELATION_1(n, T, I, name, expression)                                                      \
    I##n OVERLOAD name(T##n x)                                                                     \
    {                                                                                              \
        return expression;                                                                         \
    }
#define RELATION_2(n, T, I, name, expression)                                                      \
    I##n OVERLOAD name(T##n x, T##n y)                                                             \
    {                                                                                              \
        return expression;                                                                         \
    }
#define RELATIONS_1(name, float_expression, double_expression)                                     \
    ALL_WIDTHS(RELATION_1, float, int, name, float_expression)                                     \
    RELATION_1(, double, int, name, double_expression)                                             \
    VECTOR_WIDTHS(RELATION_1, double, long, name, double_expression)
#define RELATIONS_2(name, expression)                                                              \
    ALL_WIDTHS(RELATION_2, float, int, name, expression)                                           \
    RELATION_2(, double, int, name, expression)                                                    \
    VECTOR_WIDTHS(RELATION_2, double, long, name, expression)

#define ABS(x) __builtin_elementwise_abs(x)

RELATIONS_2(isequal, x == y)
RELATIONS_2(isnotequal, x != y)
RELATIONS_2(isgreater, x > y)
RELATIONS_2(isgreaterequal, x >= y)
RELATIONS_2(isless, x < y)
RELATIONS_2(islessequal, x <= y)
RELATIONS_2(islessgreater, (x < y) | (x > y))
RELATIONS_2(isordered, (x == x) & (y == y))
RELATIONS_2(isunordered, (x != x) | (y != y))
RELATIONS_1(isnan, x != x, x != x)
RELATIONS_1(isinf, ABS(x) == INFINITY, ABS(x) == INFINITY)
RELATIONS_1(isfinite, ABS(x) < INFINITY, ABS(x) < INFINITY)
RELATIONS_1(isnormal, (ABS(x) < INFINITY) & (ABS(x) >= FLT_MIN),
            (ABS(x) < INFINITY) & (ABS(x) >= DBL_MIN))

#define SIGNBIT(n, T, I, R)                                                                        \
    R##n OVERLOAD signbit(T##n x)                                                                  \
    {                                                                                              \
        return __builtin_astype(x, I##n) < (I##n)0;                                                \
    }
ALL_WIDTHS(SIGNBIT, float, int, int)
SIGNBIT(, double, long, int)
VECTOR_WIDTHS(SIGNBIT, double, long, long)

/* The most significant bit of an element is what counts. */
#define OR_2(x) (x.s0 | x.s1)
#define OR_3(x) (x.s0 | x.s1 | x.s2)
#define OR_4(x) OR_2((x.lo | x.hi))
#define OR_8(x) OR_4((x.lo | x.hi))
#define OR_16(x) OR_8((x.lo | x.hi))
#define AND_2(x) (x.s0 & x.s1)
#define AND_3(x) (x.s0 & x.s1 & x.s2)
#define AND_4(x) AND_2((x.lo & x.hi))
#define AND_8(x) AND_4((x.lo & x.hi))
#define AND_16(x) AND_8((x.lo & x.hi))

#define ANY_ALL(n, T)                                                                              \
    int OVERLOAD any(T##n x)                                                                       \
    {                                                                                              \
        return OR_##n(x) < 0;                                                                      \
    }                                                                                              \
    int OVERLOAD all(T##n x)                                                                       \
    {                                                                                              \
        return AND_##n(x) < 0;                                                                     \
    }
#define ANY_ALL_WIDTHS(T)                                                                          \
    int OVERLOAD any(T x)                                                                          \
    {                                                                                              \
        return x < 0;                                                                              \
    }                                                                                              \
    int OVERLOAD all(T x)                                                                          \
    {                                                                                              \
        return x < 0;                                                                              \
    }                                                                                              \
    VECTOR_WIDTHS(ANY_ALL, T)
ANY_ALL_WIDTHS(char)
ANY_ALL_WIDTHS(short)
ANY_ALL_WIDTHS(int)
ANY_ALL_WIDTHS(long)

/* x ^ ((x ^ y) & mask), which stays together: LLVM takes (x & ~mask) | (y & mask) for a sum, and in a longer
 * sum adds the two sides one by one. */
#define BITSELECT(n, T, U)                                                                         \
    T##n OVERLOAD bitselect(T##n x, T##n y, T##n mask)                                             \
    {                                                                                              \
        U##n bits = __builtin_astype(x, U##n);                                                     \
        bits ^= (bits ^ __builtin_astype(y, U##n)) & __builtin_astype(mask, U##n);                 \
        return __builtin_astype(bits, T##n);                                                       \
    }
ALL_WIDTHS(BITSELECT, char, uchar)
ALL_WIDTHS(BITSELECT, uchar, uchar)
ALL_WIDTHS(BITSELECT, short, ushort)
ALL_WIDTHS(BITSELECT, ushort, ushort)
ALL_WIDTHS(BITSELECT, int, uint)
ALL_WIDTHS(BITSELECT, uint, uint)
ALL_WIDTHS(BITSELECT, long, ulong)
ALL_WIDTHS(BITSELECT, ulong, ulong)
ALL_WIDTHS(BITSELECT, float, uint)
ALL_WIDTHS(BITSELECT, double, ulong)

/* A scalar condition counts as a whole, a vector condition by the top bit of each element, and so
 * does C's selection in OpenCL C. I is as wide as T and signed. */
#define SELECT(n, T, I, U)                                                                         \
    T##n OVERLOAD select(T##n x, T##n y, I##n condition)                                           \
    {                                                                                              \
        return condition ? y : x;                                                                  \
    }                                                                                              \
    T##n OVERLOAD select(T##n x, T##n y, U##n condition)                                           \
    {                                                                                              \
        return __builtin_astype(condition, I##n) ? y : x;                                          \
    }
ALL_WIDTHS(SELECT, char, char, uchar)
ALL_WIDTHS(SELECT, uchar, char, uchar)
ALL_WIDTHS(SELECT, short, short, ushort)
ALL_WIDTHS(SELECT, ushort, short, ushort)
ALL_WIDTHS(SELECT, int, int, uint)
ALL_WIDTHS(SELECT, uint, int, uint)
ALL_WIDTHS(SELECT, long, long, ulong)
ALL_WIDTHS(SELECT, ulong, long, ulong)
ALL_WIDTHS(SELECT, float, int, uint)
ALL_WIDTHS(SELECT, double, long, ulong)
