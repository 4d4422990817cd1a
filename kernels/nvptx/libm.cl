/* The functions of the C library (kernels/intrinsics.h) for NVIDIA GPUs, out of libclc, of which
 * only what is used comes into nvptx.bc. What is worth more speed than libclc has is in
 * math_float.cl, and what libclc-19 has wrong in gamma.cl and remainder.cl. tests/unit/kernels
 * (math_nvptx) holds all of them to OpenCL's limits (OpenCL C 3.0, 7.4).
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
    LIBM_1(T, suffix, atanh)                                                                       \
    LIBM_1(T, suffix, cbrt)                                                                        \
    LIBM_1(T, suffix, cosh)                                                                        \
    LIBM_1(T, suffix, lgamma)                                                                      \
    LIBM_1(T, suffix, log)                                                                         \
    LIBM_1(T, suffix, log10)                                                                       \
    LIBM_1(T, suffix, log2)                                                                        \
    LIBM_1(T, suffix, sinh)                                                                        \
    LIBM_1(T, suffix, tanh)                                                                        \
    LIBM_2(T, suffix, atan2)                                                                       \
    LIBM_2(T, suffix, hypot)
FUNCTIONS(float, f)
FUNCTIONS(double, )

/* libclc's double functions give +0 for -0. */
#define ODD_DOUBLE(name)                                                                           \
    double OVERLOAD CONST_FUNCTION name(double);                                                   \
    double CONST_FUNCTION __sp_libm_##name(double x)                                               \
    {                                                                                              \
        return x == 0 ? x : name(x);                                                               \
    }
ODD_DOUBLE(atan)
ODD_DOUBLE(erf)
ODD_DOUBLE(sin)
ODD_DOUBLE(tan)
LIBM_1(float, f, atan)
LIBM_1(float, f, erf)

/* libclc's float function loses an ulp for each unit of x^2 and gives 0 for what is subnormal. */
LIBM_1(double, , erfc)
float OVERLOAD CONST_FUNCTION erfc(float);
float CONST_FUNCTION __sp_libm_erfcf(float x)
{
    return x > 2 ? (float)erfc((double)x) : erfc(x);
}

/* In float these, sin and tan are in math_float.cl. */
LIBM_1(double, , cos)
LIBM_2(double, , pow)
