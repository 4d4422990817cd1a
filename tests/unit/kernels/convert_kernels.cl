/* The OpenCL C side of test_convert.c: every conversion over arrays, as a scalar and in two of the
 * vector widths (all come from one macro; that they all exist is checked elsewhere). The vector
 * forms only count where they differ from the scalar one. */
#define CONVERT(D, S, suffix)                                                                      \
    ulong convert_##D##suffix##_##S(__global const S *x, __global D *r, ulong count)               \
    {                                                                                              \
        ulong wrong = 0;                                                                           \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = convert_##D##suffix(x[i]);                                                      \
        for (ulong i = 0; i < count / 3; i++)                                                      \
            wrong += differs(convert_##D##3##suffix(vload3(i, x)), vload3(i, r));                  \
        for (ulong i = 0; i < count / 4; i++)                                                      \
            wrong += differs(convert_##D##4##suffix(vload4(i, x)), vload4(i, r));                  \
        return wrong;                                                                              \
    }

/* By bits, but for NaN. */
#define DIFFERS(n, T)                                                                              \
    static int __attribute__((overloadable)) differs(T##n a, T##n b)                               \
    {                                                                                              \
        return any((a != b) & ((a == a) | (b == b)));                                              \
    }
#define BOTH_WIDTHS(T) DIFFERS(3, T) DIFFERS(4, T)
BOTH_WIDTHS(char)
BOTH_WIDTHS(uchar)
BOTH_WIDTHS(short)
BOTH_WIDTHS(ushort)
BOTH_WIDTHS(int)
BOTH_WIDTHS(uint)
BOTH_WIDTHS(long)
BOTH_WIDTHS(ulong)
BOTH_WIDTHS(float)
BOTH_WIDTHS(double)

#define MODES(D, S, saturation)                                                                    \
    CONVERT(D, S, saturation)                                                                      \
    CONVERT(D, S, saturation##_rte)                                                                \
    CONVERT(D, S, saturation##_rtz)                                                                \
    CONVERT(D, S, saturation##_rtp)                                                                \
    CONVERT(D, S, saturation##_rtn)
#define TO_INTEGER(D, S) MODES(D, S, ) MODES(D, S, _sat)
#define FROM_ALL(M, D)                                                                             \
    M(D, char)                                                                                     \
    M(D, uchar) M(D, short) M(D, ushort) M(D, int) M(D, uint) M(D, long) M(D, ulong) M(D, float)   \
        M(D, double)
#define TO_FLOAT(D, S) MODES(D, S, )

FROM_ALL(TO_INTEGER, char)
FROM_ALL(TO_INTEGER, uchar)
FROM_ALL(TO_INTEGER, short)
FROM_ALL(TO_INTEGER, ushort)
FROM_ALL(TO_INTEGER, int)
FROM_ALL(TO_INTEGER, uint)
FROM_ALL(TO_INTEGER, long)
FROM_ALL(TO_INTEGER, ulong)
FROM_ALL(TO_FLOAT, float)
FROM_ALL(TO_FLOAT, double)
