/* Math builtins that other files of the library call. */
#ifndef SP_KERNELS_MATH_H
#define SP_KERNELS_MATH_H

#include "gentype.h"

#define DECLARE_1(n, T, name) T##n OVERLOAD name(T##n x);
#define DECLARE_2(n, T, name) T##n OVERLOAD name(T##n x, T##n y);

FLOAT_TYPES(DECLARE_1, cos)
FLOAT_TYPES(DECLARE_1, exp)
FLOAT_TYPES(DECLARE_1, exp10)
FLOAT_TYPES(DECLARE_1, exp2)
FLOAT_TYPES(DECLARE_1, lgamma)
FLOAT_TYPES(DECLARE_1, log)
FLOAT_TYPES(DECLARE_1, log10)
FLOAT_TYPES(DECLARE_1, log2)
FLOAT_TYPES(DECLARE_1, rsqrt)
FLOAT_TYPES(DECLARE_1, sin)
FLOAT_TYPES(DECLARE_1, sqrt)
FLOAT_TYPES(DECLARE_1, tan)
FLOAT_TYPES(DECLARE_2, powr)
FLOAT_TYPES(DECLARE_2, remainder)

#undef DECLARE_1
#undef DECLARE_2

#endif
