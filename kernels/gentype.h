/* How one definition becomes the overloads of a builtin function.
 *
 * OpenCL C gives most builtins for a list of element types and for the widths 1, 2, 3, 4, 8 and 16.
 * There are two ways to write that here:
 *
 * - where C's operators or clang's elementwise builtins do the work on vectors and scalars alike,
 *   a macro M(n, T, ...) defines one overload on the type T##n, and ALL_WIDTHS(M, T, ...) uses
 *   it for every width; n is empty for the scalar;
 * - where only a scalar form exists, VECTORS_1, _2 and _3 define the vector overloads of a function
 *   of that many arguments by calling the scalar one for each element. After inlining, samepage-cc
 * takes vectors apart anyway and vectorises over work-items, so nothing is lost.
 *
 * Element types: R of the result, A, B and C of the arguments. Parameters are always x, y, z.
 */
#ifndef SP_KERNELS_GENTYPE_H
#define SP_KERNELS_GENTYPE_H

#include "intrinsics.h"

#pragma OPENCL FP_CONTRACT OFF

#define OVERLOAD __attribute__((overloadable))

#define VECTOR_WIDTHS(M, ...)                                                                      \
    M(2, __VA_ARGS__)                                                                              \
    M(3, __VA_ARGS__)                                                                              \
    M(4, __VA_ARGS__)                                                                              \
    M(8, __VA_ARGS__)                                                                              \
    M(16, __VA_ARGS__)
#define ALL_WIDTHS(M, ...)                                                                         \
    M(, __VA_ARGS__)                                                                               \
    VECTOR_WIDTHS(M, __VA_ARGS__)

/* M(n, T, ...) for every width n and every type T of a kind. */
#define FLOAT_TYPES(M, ...)                                                                        \
    ALL_WIDTHS(M, float, __VA_ARGS__)                                                              \
    ALL_WIDTHS(M, double, __VA_ARGS__)

/* M(n, T, U, bits): U is the unsigned type as wide as T. */
#define SIGNED_INTEGER_TYPES(M)                                                                    \
    ALL_WIDTHS(M, char, uchar, 8)                                                                  \
    ALL_WIDTHS(M, short, ushort, 16)                                                               \
    ALL_WIDTHS(M, int, uint, 32)                                                                   \
    ALL_WIDTHS(M, long, ulong, 64)
#define UNSIGNED_INTEGER_TYPES(M)                                                                  \
    ALL_WIDTHS(M, uchar, uchar, 8)                                                                 \
    ALL_WIDTHS(M, ushort, ushort, 16)                                                              \
    ALL_WIDTHS(M, uint, uint, 32)                                                                  \
    ALL_WIDTHS(M, ulong, ulong, 64)
#define INTEGER_TYPES(M)                                                                           \
    SIGNED_INTEGER_TYPES(M)                                                                        \
    UNSIGNED_INTEGER_TYPES(M)

/* M(T, ...) for every scalar type. */
#define INTEGER_SCALARS(M, ...)                                                                    \
    M(char, __VA_ARGS__)                                                                           \
    M(uchar, __VA_ARGS__)                                                                          \
    M(short, __VA_ARGS__)                                                                          \
    M(ushort, __VA_ARGS__)                                                                         \
    M(int, __VA_ARGS__)                                                                            \
    M(uint, __VA_ARGS__)                                                                           \
    M(long, __VA_ARGS__)                                                                           \
    M(ulong, __VA_ARGS__)
#define ALL_SCALARS(M, ...)                                                                        \
    INTEGER_SCALARS(M, __VA_ARGS__)                                                                \
    M(float, __VA_ARGS__)                                                                          \
    M(double, __VA_ARGS__)

/* M(AS, ...) for the address spaces that a program can write to. */
#define WRITABLE_SPACES(M, ...)                                                                    \
    M(__global, __VA_ARGS__)                                                                       \
    M(__local, __VA_ARGS__)                                                                        \
    M(__private, __VA_ARGS__)                                                                      \
    M(__generic, __VA_ARGS__)

/* Comma-separated E(name, i) for each element index i of a vector. */
#define EACH_2(E, name) E(name, 0), E(name, 1)
#define EACH_3(E, name) EACH_2(E, name), E(name, 2)
#define EACH_4(E, name) EACH_3(E, name), E(name, 3)
#define EACH_8(E, name) EACH_4(E, name), E(name, 4), E(name, 5), E(name, 6), E(name, 7)
#define EACH_16(E, name)                                                                           \
    EACH_8(E, name), E(name, 8), E(name, 9), E(name, a), E(name, b), E(name, c), E(name, d),       \
        E(name, e), E(name, f)

#define ELEMENT_1(name, i) name(x.s##i)
#define ELEMENT_2(name, i) name(x.s##i, y.s##i)
#define ELEMENT_3(name, i) name(x.s##i, y.s##i, z.s##i)

#define VECTOR_1(n, f, R, A)                                                                       \
    R##n OVERLOAD f(A##n x)                                                                        \
    {                                                                                              \
        return (R##n)(EACH_##n(ELEMENT_1, f));                                                     \
    }
#define VECTOR_2(n, f, R, A, B)                                                                    \
    R##n OVERLOAD f(A##n x, B##n y)                                                                \
    {                                                                                              \
        return (R##n)(EACH_##n(ELEMENT_2, f));                                                     \
    }
#define VECTOR_3(n, f, R, A, B, C)                                                                 \
    R##n OVERLOAD f(A##n x, B##n y, C##n z)                                                        \
    {                                                                                              \
        return (R##n)(EACH_##n(ELEMENT_3, f));                                                     \
    }
#define VECTORS_1(f, R, A) VECTOR_WIDTHS(VECTOR_1, f, R, A)
#define VECTORS_2(f, R, A, B) VECTOR_WIDTHS(VECTOR_2, f, R, A, B)
#define VECTORS_3(f, R, A, B, C) VECTOR_WIDTHS(VECTOR_3, f, R, A, B, C)

/* For float and double at once, where result and arguments are all of that type. */
#define FLOAT_VECTORS_1(f) VECTORS_1(f, float, float) VECTORS_1(f, double, double)
#define FLOAT_VECTORS_2(f) VECTORS_2(f, float, float, float) VECTORS_2(f, double, double, double)

/* The bits of a floating-point number. */
#define FLOAT_SIGN 0x80000000u
#define FLOAT_EXPONENT 0x7f800000u
#define FLOAT_FRACTION 0x007fffffu
#define DOUBLE_SIGN 0x8000000000000000ul
#define DOUBLE_EXPONENT 0x7ff0000000000000ul
#define DOUBLE_FRACTION 0x000ffffffffffffful

#endif
