/* shuffle and shuffle2 (OpenCL C 3.0, 6.15.14).
 *
 * Only the low bits of a mask element choose; the mask may vary at run time. With a constant mask
 * the element accesses fold into one shuffle instruction.
 *
 * n: width of the result and the mask. m: width of the source.
 */
#include "gentype.h"

#define PICK_1(m, i) x[mask.s##i & (m - 1)]
#define PICK_2(m, i) (mask.s##i & m ? y[mask.s##i & (m - 1)] : x[mask.s##i & (m - 1)])

#define SHUFFLE(n, m, T, U)                                                                        \
    T##n OVERLOAD shuffle(T##m x, U##n mask)                                                       \
    {                                                                                              \
        return (T##n)(EACH_##n(PICK_1, m));                                                        \
    }                                                                                              \
    T##n OVERLOAD shuffle2(T##m x, T##m y, U##n mask)                                              \
    {                                                                                              \
        return (T##n)(EACH_##n(PICK_2, m));                                                        \
    }
#define SHUFFLE_FROM(m, T, U)                                                                      \
    SHUFFLE(2, m, T, U)                                                                            \
    SHUFFLE(4, m, T, U)                                                                            \
    SHUFFLE(8, m, T, U)                                                                            \
    SHUFFLE(16, m, T, U)
#define SHUFFLES(T, U)                                                                             \
    SHUFFLE_FROM(2, T, U)                                                                          \
    SHUFFLE_FROM(4, T, U)                                                                          \
    SHUFFLE_FROM(8, T, U)                                                                          \
    SHUFFLE_FROM(16, T, U)

SHUFFLES(char, uchar)
SHUFFLES(uchar, uchar)
SHUFFLES(short, ushort)
SHUFFLES(ushort, ushort)
SHUFFLES(int, uint)
SHUFFLES(uint, uint)
SHUFFLES(long, ulong)
SHUFFLES(ulong, ulong)
SHUFFLES(float, uint)
SHUFFLES(double, ulong)
