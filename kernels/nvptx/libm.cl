/* The functions of the C library (kernels/intrinsics.h) for NVIDIA GPUs, out of libclc: its
 * functions keep the limits of OpenCL (OpenCL C 3.0, 7.4), of which only those used here come into
 * nvptx.bc. What is worth more speed than they have is in math_float.cl instead.
 */
#include <opencl-c-base.h>

#define OVERLOAD __attribute__((overloadable))
#define CONST_FUNCTION __attribute__((const))

#define LIBM_1(T, suffix, name)                                                                    \
    T OVERLOAD CONST_FUNCTION name(T);                                                             \
    T CONST_FUNCTION __sp_libm_##name##suffix(T x)                                                 \
    {                                                                                              \
        return name(x);                                                                            \
    }
#define LIBM_2(T, suffix, name)                                                                    \
    T OVERLOAD CONST_FUNCTION name(T, T);                                                          \
    T CONST_FUNCTION __sp_libm_##name##suffix(T x, T y)                                            \
    {                                                                                              \
        return name(x, y);                                                                         \
    }
#define FUNCTIONS(T, suffix)                                                                       \
    LIBM_1(T, suffix, acos)                                                                        \
    LIBM_1(T, suffix, acosh)                                                                       \
    LIBM_1(T, suffix, asin)                                                                        \
    LIBM_1(T, suffix, asinh)                                                                       \
    LIBM_1(T, suffix, atan)                                                                        \
    LIBM_1(T, suffix, atanh)                                                                       \
    LIBM_1(T, suffix, cbrt)                                                                        \
    LIBM_1(T, suffix, cosh)                                                                        \
    LIBM_1(T, suffix, erf)                                                                         \
    LIBM_1(T, suffix, erfc)                                                                        \
    LIBM_1(T, suffix, expm1)                                                                       \
    LIBM_1(T, suffix, lgamma)                                                                      \
    LIBM_1(T, suffix, log)                                                                         \
    LIBM_1(T, suffix, log10)                                                                       \
    LIBM_1(T, suffix, log1p)                                                                       \
    LIBM_1(T, suffix, log2)                                                                        \
    LIBM_1(T, suffix, sinh)                                                                        \
    LIBM_1(T, suffix, tanh)                                                                        \
    LIBM_1(T, suffix, tgamma)                                                                      \
    LIBM_2(T, suffix, atan2)                                                                       \
    LIBM_2(T, suffix, fmod)                                                                        \
    LIBM_2(T, suffix, hypot)                                                                       \
    LIBM_2(T, suffix, remainder)
FUNCTIONS(float, f)
FUNCTIONS(double, )

/* In float they are in math_float.cl. */
LIBM_1(double, , cos)
LIBM_1(double, , exp)
LIBM_1(double, , exp10)
LIBM_1(double, , exp2)
LIBM_1(double, , sin)
LIBM_1(double, , tan)
LIBM_2(double, , pow)
