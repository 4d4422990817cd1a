/* Vector data load and store functions (OpenCL C 3.0, 6.15.7), without those of half (half.cl).
 *
 * The pointer is aligned for the element only, so the access goes through a type of that alignment.
 * Vectors of three are read and written by element: in memory they are three elements here, not
 * the four that a variable of the type takes.
 */
#include "gentype.h"

#define UNALIGNED(n, T, ...) typedef T##n unaligned_##T##n __attribute__((aligned(sizeof(T))));

#define VLOAD(n, T, AS)                                                                            \
    T##n OVERLOAD vload##n(size_t offset, const AS T *p)                                           \
    {                                                                                              \
        return *(const AS unaligned_##T##n *)(p + offset * n);                                     \
    }
#define VLOADS(AS, T)                                                                              \
    VLOAD(2, T, AS)                                                                                \
    T##3 OVERLOAD vload3(size_t offset, const AS T *p)                                             \
    {                                                                                              \
        p += offset * 3;                                                                           \
        return (T##3)(p[0], p[1], p[2]);                                                           \
    }                                                                                              \
    VLOAD(4, T, AS)                                                                                \
    VLOAD(8, T, AS)                                                                                \
    VLOAD(16, T, AS)

#define VSTORE(n, T, AS)                                                                           \
    void OVERLOAD vstore##n(T##n value, size_t offset, AS T *p)                                    \
    {                                                                                              \
        *(AS unaligned_##T##n *)(p + offset * n) = value;                                          \
    }
#define VSTORES(AS, T)                                                                             \
    VSTORE(2, T, AS)                                                                               \
    void OVERLOAD vstore3(T##3 value, size_t offset, AS T *p)                                      \
    {                                                                                              \
        p += offset * 3;                                                                           \
        p[0] = value.x;                                                                            \
        p[1] = value.y;                                                                            \
        p[2] = value.z;                                                                            \
    }                                                                                              \
    VSTORE(4, T, AS)                                                                               \
    VSTORE(8, T, AS)                                                                               \
    VSTORE(16, T, AS)

#define VLOADS_VSTORES(T, ...)                                                                     \
    VECTOR_WIDTHS(UNALIGNED, T)                                                                    \
    WRITABLE_SPACES(VLOADS, T)                                                                     \
    VLOADS(__constant, T)                                                                          \
    WRITABLE_SPACES(VSTORES, T)
ALL_SCALARS(VLOADS_VSTORES)
