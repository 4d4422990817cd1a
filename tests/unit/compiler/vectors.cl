/* Every operator and integer function on vectors of every element and width, a kernel each: what a
 * target's code generator may have no instruction for. The results are not looked at. */
#define OPERATORS(T, S)                                                                            \
    out[0] = a + b, out[1] = a - b, out[2] = a * b;                                                \
    out[3] = a / b;                                                                                \
    masks[0] = a == b, masks[1] = a != b, masks[2] = a < b;                                        \
    masks[3] = a <= b, masks[4] = a > b, masks[5] = a >= b;                                        \
    masks[6] = a && b, masks[7] = a || b, masks[8] = !a;                                           \
    out[4] = a < b ? a : b;                                                                        \
    out[5] = select(a, b, masks[9]);                                                               \
    out[6] = -a;                                                                                   \
    out[7] = min(a, b) + max(a, b) + clamp(a, b, b + b);

#define INTEGERS(T, S, U)                                                                          \
    out[8] = a % b, out[9] = a & b, out[10] = a | b, out[11] = a ^ b;                              \
    out[12] = a << b, out[13] = a >> b, out[14] = ~a;                                              \
    out[15] = add_sat(a, b), out[16] = sub_sat(a, b);                                              \
    out[17] = hadd(a, b), out[18] = rhadd(a, b), out[19] = mul_hi(a, b);                           \
    out[20] = mad_sat(a, b, a), out[21] = mad_hi(a, b, a), out[22] = rotate(a, b);                 \
    out[23] = clz(a), out[24] = ctz(a), out[25] = popcount(a);                                     \
    out[26] = bitselect(a, b, a);                                                                  \
    unsigneds[0] = abs(a), unsigneds[1] = abs_diff(a, b);

#define INTEGER_KERNEL(T, S, U, W)                                                                 \
    __kernel void T##W##_kernel(__global T##W *in, __global T##W *out, __global S##W *masks,       \
                                __global U##W *unsigneds)                                          \
    {                                                                                              \
        size_t i = get_global_id(0);                                                               \
        T##W a = in[2 * i], b = in[2 * i + 1];                                                     \
        out += 32 * i, masks += 16 * i, unsigneds += 2 * i;                                        \
        OPERATORS(T##W, S##W)                                                                      \
        INTEGERS(T##W, S##W, U##W)                                                                 \
    }

#define FLOAT_KERNEL(T, S, W)                                                                      \
    __kernel void T##W##_kernel(__global T##W *in, __global T##W *out, __global S##W *masks)       \
    {                                                                                              \
        size_t i = get_global_id(0);                                                               \
        T##W a = in[2 * i], b = in[2 * i + 1];                                                     \
        out += 32 * i, masks += 16 * i;                                                            \
        OPERATORS(T##W, S##W)                                                                      \
        out[8] = fma(a, b, a), out[9] = fabs(a), out[10] = floor(a);                               \
        masks[10] = isnan(a), masks[11] = isgreater(a, b), masks[12] = signbit(a);                 \
    }

#define INTEGER_KERNELS(T, S, U)                                                                   \
    INTEGER_KERNEL(T, S, U, 2)                                                                     \
    INTEGER_KERNEL(T, S, U, 3)                                                                     \
    INTEGER_KERNEL(T, S, U, 4)                                                                     \
    INTEGER_KERNEL(T, S, U, 8)                                                                     \
    INTEGER_KERNEL(T, S, U, 16)

#define FLOAT_KERNELS(T, S)                                                                        \
    FLOAT_KERNEL(T, S, 2) FLOAT_KERNEL(T, S, 3) FLOAT_KERNEL(T, S, 4)                              \
    FLOAT_KERNEL(T, S, 8) FLOAT_KERNEL(T, S, 16)

INTEGER_KERNELS(char, char, uchar)
INTEGER_KERNELS(uchar, char, uchar)
INTEGER_KERNELS(short, short, ushort)
INTEGER_KERNELS(ushort, short, ushort)
INTEGER_KERNELS(int, int, uint)
INTEGER_KERNELS(uint, int, uint)
INTEGER_KERNELS(long, long, ulong)
INTEGER_KERNELS(ulong, long, ulong)
FLOAT_KERNELS(float, int)
FLOAT_KERNELS(double, long)

/* Masks of one width choose among elements of another. */
#define MIX(T, M, W)                                                                               \
    __kernel void T##_##M##W(__global T##W *in, __global M##W *out)                                \
    {                                                                                              \
        size_t i = get_global_id(0);                                                               \
        T##W a = in[2 * i], b = in[2 * i + 1];                                                     \
        out[i] = convert_##M##W##_sat(a) + convert_##M##W(a > b);                                  \
    }
#define MIXES(T, W) MIX(T, char, W) MIX(T, ushort, W) MIX(T, int, W) MIX(T, ulong, W)
MIXES(short, 2) MIXES(short, 4) MIXES(char, 2) MIXES(char, 4) MIXES(char, 16)
MIXES(int, 2) MIXES(float, 2) MIXES(float, 8) MIXES(long, 2)
