/* OpenCL C 1.x atomic functions (OpenCL C 3.0, 6.15.13), and the atom_ forms of the extensions
 * cl_khr_{global,local}_int32_{base,extended}_atomics and cl_khr_int64_{base,extended}_atomics.
 *
 * They act on plain integers in global or local memory, and are relaxed: programs of that age put
 * fences where they want order. The operation itself is the one of C11 at device scope.
 */
#include "gentype.h"

/* The plain integer seen as an atomic one. `volatile` is dropped: it would forbid nothing that
 * an atomic operation does not forbid already, and it hides from the optimiser what memory is
 * touched. */
#define ATOMIC(AS, T, p) ((AS atomic_##T *)(p))
#define RELAXED memory_order_relaxed, memory_scope_device

#define READ_MODIFY_WRITE(prefix, AS, T, name, operation)                                          \
    T OVERLOAD prefix##name(volatile AS T *p, T value)                                             \
    {                                                                                              \
        return __opencl_atomic_##operation(ATOMIC(AS, T, p), value, RELAXED);                      \
    }

#define ATOMICS(prefix, AS, T)                                                                     \
    READ_MODIFY_WRITE(prefix, AS, T, add, fetch_add)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, sub, fetch_sub)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, min, fetch_min)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, max, fetch_max)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, and, fetch_and)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, or, fetch_or)                                                 \
    READ_MODIFY_WRITE(prefix, AS, T, xor, fetch_xor)                                               \
    READ_MODIFY_WRITE(prefix, AS, T, xchg, exchange)                                               \
    T OVERLOAD prefix##inc(volatile AS T *p)                                                       \
    {                                                                                              \
        return __opencl_atomic_fetch_add(ATOMIC(AS, T, p), 1, RELAXED);                            \
    }                                                                                              \
    T OVERLOAD prefix##dec(volatile AS T *p)                                                       \
    {                                                                                              \
        return __opencl_atomic_fetch_sub(ATOMIC(AS, T, p), 1, RELAXED);                            \
    }                                                                                              \
    T OVERLOAD prefix##cmpxchg(volatile AS T *p, T expected, T desired)                            \
    {                                                                                              \
        __opencl_atomic_compare_exchange_strong(ATOMIC(AS, T, p), &expected, desired,              \
                                                memory_order_relaxed, RELAXED);                    \
        return expected;                                                                           \
    }

#define BOTH_SPACES(prefix, T)                                                                     \
    ATOMICS(prefix, __global, T)                                                                   \
    ATOMICS(prefix, __local, T)

BOTH_SPACES(atomic_, int)
BOTH_SPACES(atomic_, uint)
BOTH_SPACES(atom_, int)
BOTH_SPACES(atom_, uint)
BOTH_SPACES(atom_, long)
BOTH_SPACES(atom_, ulong)

READ_MODIFY_WRITE(atomic_, __global, float, xchg, exchange)
READ_MODIFY_WRITE(atomic_, __local, float, xchg, exchange)
