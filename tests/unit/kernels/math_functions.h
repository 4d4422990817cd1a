/* The math builtins under test: one list for the OpenCL C side and the host side.
 *
 * UNARY(name, float_ulp, double_ulp): the limits of the full profile (OpenCL C 3.0, 7.4). The
 * reference is a function of long double. EXACT_*: the result is one certain number; the reference
 * is a function of the type itself.
 */
#define UNARY_FUNCTIONS(X)                                                                         \
    X(acos, 4, 4)                                                                                  \
    X(acosh, 4, 4)                                                                                 \
    X(acospi, 5, 5)                                                                                \
    X(asin, 4, 4)                                                                                  \
    X(asinh, 4, 4)                                                                                 \
    X(asinpi, 5, 5)                                                                                \
    X(atan, 5, 5)                                                                                  \
    X(atanh, 5, 5)                                                                                 \
    X(atanpi, 5, 5)                                                                                \
    X(cbrt, 2, 2)                                                                                  \
    X(cos, 4, 4)                                                                                   \
    X(cosh, 4, 4)                                                                                  \
    X(cospi, 4, 4)                                                                                 \
    X(erf, 16, 16)                                                                                 \
    X(erfc, 16, 16)                                                                                \
    X(exp, 3, 3)                                                                                   \
    X(exp10, 3, 3)                                                                                 \
    X(exp2, 3, 3)                                                                                  \
    X(expm1, 3, 3)                                                                                 \
    X(log, 3, 3)                                                                                   \
    X(log10, 3, 3)                                                                                 \
    X(log1p, 2, 2)                                                                                 \
    X(log2, 3, 3)                                                                                  \
    X(rsqrt, 2, 2)                                                                                 \
    X(sin, 4, 4)                                                                                   \
    X(sinh, 4, 4)                                                                                  \
    X(sinpi, 4, 4)                                                                                 \
    X(tan, 5, 5)                                                                                   \
    X(tanh, 5, 5)                                                                                  \
    X(tanpi, 6, 6)                                                                                 \
    X(tgamma, 16, 16)

#define BINARY_FUNCTIONS(X)                                                                        \
    X(atan2, 6, 6)                                                                                 \
    X(atan2pi, 6, 6)                                                                               \
    X(hypot, 4, 4)                                                                                 \
    X(pow, 16, 16)                                                                                 \
    X(powr, 16, 16)

/* The second argument is an int. */
#define BINARY_INT_FUNCTIONS(X)                                                                    \
    X(pown, 16, 16)                                                                                \
    X(rootn, 16, 16)

#define EXACT_UNARY_FUNCTIONS(X)                                                                   \
    X(ceil)                                                                                        \
    X(fabs)                                                                                        \
    X(floor)                                                                                       \
    X(logb)                                                                                        \
    X(rint)                                                                                        \
    X(round)                                                                                       \
    X(sqrt)                                                                                        \
    X(trunc)

#define EXACT_BINARY_FUNCTIONS(X)                                                                  \
    X(copysign)                                                                                    \
    X(fdim)                                                                                        \
    X(fmax)                                                                                        \
    X(fmin)                                                                                        \
    X(fmod)                                                                                        \
    X(maxmag)                                                                                      \
    X(minmag)                                                                                      \
    X(nextafter)                                                                                   \
    X(remainder)

/* float only; 8192 ulp in a range that is documented with each. */
#define HALF_FUNCTIONS(X)                                                                          \
    X(cos)                                                                                         \
    X(exp)                                                                                         \
    X(exp10)                                                                                       \
    X(exp2)                                                                                        \
    X(log)                                                                                         \
    X(log10)                                                                                       \
    X(log2)                                                                                        \
    X(rsqrt)                                                                                       \
    X(sin)                                                                                         \
    X(tan)
