/* OpenCL C: a builtin over arrays, as a scalar and in every vector width.
 *
 * FUNCTION_1(name, R, A) defines name_A(x, r, count) for the scalar form, and name_A2, _A3, _A4,
 * _A8 and _A16; _2 and _3 for more arguments. `count` must be a multiple of 48, which all widths
 * divide. harness_run_widths calls them. */
#define WIDTHS(M, ...)                                                                             \
    M(2, __VA_ARGS__) M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)

#define VECTOR_FORM_1(n, name, R, A)                                                               \
    void name##_##A##n(__global const A *x, __global R *r, ulong count)                            \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(name(vload##n(i, x)), i, r);                                                 \
    }
#define FUNCTION_1(name, R, A)                                                                     \
    void name##_##A(__global const A *x, __global R *r, ulong count)                               \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i]);                                                                     \
    }                                                                                              \
    WIDTHS(VECTOR_FORM_1, name, R, A)

#define VECTOR_FORM_2(n, name, R, A, B)                                                            \
    void name##_##A##n(__global const A *x, __global const B *y, __global R *r, ulong count)       \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(name(vload##n(i, x), vload##n(i, y)), i, r);                                 \
    }
#define FUNCTION_2(name, R, A, B)                                                                  \
    void name##_##A(__global const A *x, __global const B *y, __global R *r, ulong count)          \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i], y[i]);                                                               \
    }                                                                                              \
    WIDTHS(VECTOR_FORM_2, name, R, A, B)

#define VECTOR_FORM_3(n, name, R, A, B, C)                                                         \
    void name##_##A##n(__global const A *x, __global const B *y, __global const C *z,              \
                       __global R *r, ulong count)                                                 \
    {                                                                                              \
        for (ulong i = 0; i < count / n; i++)                                                      \
            vstore##n(name(vload##n(i, x), vload##n(i, y), vload##n(i, z)), i, r);                 \
    }
#define FUNCTION_3(name, R, A, B, C)                                                               \
    void name##_##A(__global const A *x, __global const B *y, __global const C *z, __global R *r,  \
                    ulong count)                                                                   \
    {                                                                                              \
        for (ulong i = 0; i < count; i++)                                                          \
            r[i] = name(x[i], y[i], z[i]);                                                         \
    }                                                                                              \
    WIDTHS(VECTOR_FORM_3, name, R, A, B, C)
