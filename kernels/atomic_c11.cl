/* C11 atomic functions (OpenCL C 3.0, 6.15.12).
 *
 * Every function comes for a pointer to the generic address space, which has the body, and for
 * pointers to global and local memory (what programs see that are compiled without the generic
 * address space), which cast and pass on. Three forms of each: sequentially consistent at device
 * scope; with an order; with an order and a scope. An order that is no constant after inlining
 * stays a switch.
 *
 * On the types with no meaning under C11 (add, subtract, min and max of float and double) this
 * follows cl_ext_float_atomics. atomic_init is a plain store, as its name for not being atomic has
 * it.
 */
#include "gentype.h"
#include "target.h"

#define ORDER memory_order
#define SCOPE memory_scope

/* See atomic_legacy.cl for why `volatile` goes. */
#define PLAIN(AS, T, p) ((AS atomic_##T *)(p))
#define GENERIC(T, p) ((volatile __generic atomic_##T *)(p))

/* Keeps a scope that is not the device's (target.h). */
#define SCOPED(T, p, scope)                                                                        \
    ((__generic atomic_##T *)__sp_target_scoped((__generic void *)(p), scope))

#define ATOMIC_STORE_NAMED(AS, T)                                                                  \
    void OVERLOAD atomic_store(volatile AS atomic_##T *p, T value)                                 \
    {                                                                                              \
        atomic_store(GENERIC(T, p), value);                                                        \
    }                                                                                              \
    void OVERLOAD atomic_store_explicit(volatile AS atomic_##T *p, T value, ORDER order)           \
    {                                                                                              \
        atomic_store_explicit(GENERIC(T, p), value, order);                                        \
    }                                                                                              \
    void OVERLOAD atomic_store_explicit(volatile AS atomic_##T *p, T value, ORDER order,           \
                                        SCOPE scope)                                               \
    {                                                                                              \
        atomic_store_explicit(GENERIC(T, p), value, order, scope);                                 \
    }                                                                                              \
    void OVERLOAD atomic_init(volatile AS atomic_##T *p, T value)                                  \
    {                                                                                              \
        atomic_init(GENERIC(T, p), value);                                                         \
    }

#define ATOMIC_STORE(T)                                                                            \
    void OVERLOAD atomic_store(volatile __generic atomic_##T *p, T value)                          \
    {                                                                                              \
        __opencl_atomic_store(PLAIN(__generic, T, p), value, memory_order_seq_cst,                 \
                              memory_scope_device);                                                \
    }                                                                                              \
    void OVERLOAD atomic_store_explicit(volatile __generic atomic_##T *p, T value, ORDER order)    \
    {                                                                                              \
        __opencl_atomic_store(PLAIN(__generic, T, p), value, order, memory_scope_device);          \
    }                                                                                              \
    void OVERLOAD atomic_store_explicit(volatile __generic atomic_##T *p, T value, ORDER order,    \
                                        SCOPE scope)                                               \
    {                                                                                              \
        __opencl_atomic_store(SCOPED(T, p, scope), value, order, scope);                           \
    }                                                                                              \
    void OVERLOAD atomic_init(volatile __generic atomic_##T *p, T value)                           \
    {                                                                                              \
        *(__generic T *)p = value;                                                                 \
    }                                                                                              \
    ATOMIC_STORE_NAMED(__global, T)                                                                \
    ATOMIC_STORE_NAMED(__local, T)

#define ATOMIC_LOAD_NAMED(AS, T)                                                                   \
    T OVERLOAD atomic_load(volatile AS atomic_##T *p)                                              \
    {                                                                                              \
        return atomic_load(GENERIC(T, p));                                                         \
    }                                                                                              \
    T OVERLOAD atomic_load_explicit(volatile AS atomic_##T *p, ORDER order)                        \
    {                                                                                              \
        return atomic_load_explicit(GENERIC(T, p), order);                                         \
    }                                                                                              \
    T OVERLOAD atomic_load_explicit(volatile AS atomic_##T *p, ORDER order, SCOPE scope)           \
    {                                                                                              \
        return atomic_load_explicit(GENERIC(T, p), order, scope);                                  \
    }

#define ATOMIC_LOAD(T)                                                                             \
    T OVERLOAD atomic_load(volatile __generic atomic_##T *p)                                       \
    {                                                                                              \
        return __opencl_atomic_load(PLAIN(__generic, T, p), memory_order_seq_cst,                  \
                                    memory_scope_device);                                          \
    }                                                                                              \
    T OVERLOAD atomic_load_explicit(volatile __generic atomic_##T *p, ORDER order)                 \
    {                                                                                              \
        return __opencl_atomic_load(PLAIN(__generic, T, p), order, memory_scope_device);           \
    }                                                                                              \
    T OVERLOAD atomic_load_explicit(volatile __generic atomic_##T *p, ORDER order, SCOPE scope)    \
    {                                                                                              \
        return __opencl_atomic_load(SCOPED(T, p, scope), order, scope);                            \
    }                                                                                              \
    ATOMIC_LOAD_NAMED(__global, T)                                                                 \
    ATOMIC_LOAD_NAMED(__local, T)

#define READ_MODIFY_WRITE_NAMED(AS, name, T)                                                       \
    T OVERLOAD atomic_##name(volatile AS atomic_##T *p, T value)                                   \
    {                                                                                              \
        return atomic_##name(GENERIC(T, p), value);                                                \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, T value, ORDER order)           \
    {                                                                                              \
        return atomic_##name##_explicit(GENERIC(T, p), value, order);                              \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, T value, ORDER order,           \
                                        SCOPE scope)                                               \
    {                                                                                              \
        return atomic_##name##_explicit(GENERIC(T, p), value, order, scope);                       \
    }

#define READ_MODIFY_WRITE(name, T)                                                                 \
    T OVERLOAD atomic_##name(volatile __generic atomic_##T *p, T value)                            \
    {                                                                                              \
        return __opencl_atomic_##name(PLAIN(__generic, T, p), value, memory_order_seq_cst,         \
                                      memory_scope_device);                                        \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile __generic atomic_##T *p, T value, ORDER order)    \
    {                                                                                              \
        return __opencl_atomic_##name(PLAIN(__generic, T, p), value, order, memory_scope_device);  \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile __generic atomic_##T *p, T value, ORDER order,    \
                                        SCOPE scope)                                               \
    {                                                                                              \
        return __opencl_atomic_##name(SCOPED(T, p, scope), value, order, scope);                   \
    }                                                                                              \
    READ_MODIFY_WRITE_NAMED(__global, name, T)                                                     \
    READ_MODIFY_WRITE_NAMED(__local, name, T)

/* The expected value may lie in any address space, whatever the one of the object. */
#define COMPARE_EXCHANGE_NAMED(AS, EXPECTED_AS, name, T)                                           \
    bool OVERLOAD atomic_##name(volatile AS atomic_##T *p, EXPECTED_AS T *expected, T desired)     \
    {                                                                                              \
        return atomic_##name(GENERIC(T, p), (__generic T *)expected, desired);                     \
    }                                                                                              \
    bool OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, EXPECTED_AS T *expected,     \
                                           T desired, ORDER success, ORDER failure)                \
    {                                                                                              \
        return atomic_##name##_explicit(GENERIC(T, p), (__generic T *)expected, desired, success,  \
                                        failure);                                                  \
    }                                                                                              \
    bool OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, EXPECTED_AS T *expected,     \
                                           T desired, ORDER success, ORDER failure, SCOPE scope)   \
    {                                                                                              \
        return atomic_##name##_explicit(GENERIC(T, p), (__generic T *)expected, desired, success,  \
                                        failure, scope);                                           \
    }

#define COMPARE_EXCHANGE(name, T)                                                                  \
    bool OVERLOAD atomic_##name(volatile __generic atomic_##T *p, __generic T *expected,           \
                                T desired)                                                         \
    {                                                                                              \
        return __opencl_atomic_##name(PLAIN(__generic, T, p), expected, desired,                   \
                                      memory_order_seq_cst, memory_order_seq_cst,                  \
                                      memory_scope_device);                                        \
    }                                                                                              \
    bool OVERLOAD atomic_##name##_explicit(volatile __generic atomic_##T *p,                       \
                                           __generic T *expected, T desired, ORDER success,        \
                                           ORDER failure, SCOPE scope)                             \
    {                                                                                              \
        return __opencl_atomic_##name(SCOPED(T, p, scope), expected, desired, success, failure,    \
                                      scope);                                                      \
    }                                                                                              \
    bool OVERLOAD atomic_##name##_explicit(volatile __generic atomic_##T *p,                       \
                                           __generic T *expected, T desired, ORDER success,        \
                                           ORDER failure)                                          \
    {                                                                                              \
        return atomic_##name##_explicit(p, expected, desired, success, failure,                    \
                                        memory_scope_device);                                      \
    }                                                                                              \
    COMPARE_EXCHANGE_NAMED(__global, __global, name, T)                                            \
    COMPARE_EXCHANGE_NAMED(__global, __local, name, T)                                             \
    COMPARE_EXCHANGE_NAMED(__global, __private, name, T)                                           \
    COMPARE_EXCHANGE_NAMED(__local, __global, name, T)                                             \
    COMPARE_EXCHANGE_NAMED(__local, __local, name, T)                                              \
    COMPARE_EXCHANGE_NAMED(__local, __private, name, T)

#define ANY_TYPE(T)                                                                                \
    ATOMIC_STORE(T)                                                                                \
    ATOMIC_LOAD(T)                                                                                 \
    READ_MODIFY_WRITE(exchange, T)                                                                 \
    COMPARE_EXCHANGE(compare_exchange_strong, T)                                                   \
    COMPARE_EXCHANGE(compare_exchange_weak, T)                                                     \
    READ_MODIFY_WRITE(fetch_add, T)                                                                \
    READ_MODIFY_WRITE(fetch_sub, T)                                                                \
    READ_MODIFY_WRITE(fetch_min, T)                                                                \
    READ_MODIFY_WRITE(fetch_max, T)

#define INTEGER_TYPE(T)                                                                            \
    ANY_TYPE(T)                                                                                    \
    READ_MODIFY_WRITE(fetch_and, T)                                                                \
    READ_MODIFY_WRITE(fetch_or, T)                                                                 \
    READ_MODIFY_WRITE(fetch_xor, T)

INTEGER_TYPE(int)
INTEGER_TYPE(uint)
INTEGER_TYPE(long)
INTEGER_TYPE(ulong)
ANY_TYPE(float)
ANY_TYPE(double)

/* Without the generic address space clang's header, for these alone, means private memory by a
 * plain pointer. */
#define PRIVATE_FLOAT(T)                                                                           \
    READ_MODIFY_WRITE_NAMED(__private, fetch_add, T)                                               \
    READ_MODIFY_WRITE_NAMED(__private, fetch_sub, T)                                               \
    READ_MODIFY_WRITE_NAMED(__private, fetch_min, T)                                               \
    READ_MODIFY_WRITE_NAMED(__private, fetch_max, T)
PRIVATE_FLOAT(float)
PRIVATE_FLOAT(double)

/* atomic_intptr_t is an atomic_long and atomic_uintptr_t an atomic_ulong. For them clang's headers
 * also declare operands of the other signedness (a ptrdiff_t to add, a uintptr_t to mask with). */
#define MIXED_SIGNEDNESS(AS, name, T, V)                                                           \
    T OVERLOAD atomic_##name(volatile AS atomic_##T *p, V value)                                   \
    {                                                                                              \
        return atomic_##name(p, (T)value);                                                         \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, V value, ORDER order)           \
    {                                                                                              \
        return atomic_##name##_explicit(p, (T)value, order);                                       \
    }                                                                                              \
    T OVERLOAD atomic_##name##_explicit(volatile AS atomic_##T *p, V value, ORDER order,           \
                                        SCOPE scope)                                               \
    {                                                                                              \
        return atomic_##name##_explicit(p, (T)value, order, scope);                                \
    }
#define MIXED_SPACES(name)                                                                         \
    MIXED_SIGNEDNESS(__generic, name, long, ulong)                                                 \
    MIXED_SIGNEDNESS(__global, name, long, ulong)                                                  \
    MIXED_SIGNEDNESS(__local, name, long, ulong)                                                   \
    MIXED_SIGNEDNESS(__generic, name, ulong, long)                                                 \
    MIXED_SIGNEDNESS(__global, name, ulong, long)                                                  \
    MIXED_SIGNEDNESS(__local, name, ulong, long)
MIXED_SPACES(fetch_add)
MIXED_SPACES(fetch_sub)
MIXED_SPACES(fetch_and)
MIXED_SPACES(fetch_or)
MIXED_SPACES(fetch_xor)
MIXED_SPACES(fetch_min)
MIXED_SPACES(fetch_max)

/* An atomic_flag is an atomic_int: 0 is clear. */
#define ATOMIC_FLAG(AS)                                                                            \
    bool OVERLOAD atomic_flag_test_and_set(volatile AS atomic_flag *p)                             \
    {                                                                                              \
        return __opencl_atomic_exchange(PLAIN(AS, int, p), 1, memory_order_seq_cst,                \
                                        memory_scope_device) != 0;                                 \
    }                                                                                              \
    bool OVERLOAD atomic_flag_test_and_set_explicit(volatile AS atomic_flag *p, ORDER order)       \
    {                                                                                              \
        return __opencl_atomic_exchange(PLAIN(AS, int, p), 1, order, memory_scope_device) != 0;    \
    }                                                                                              \
    bool OVERLOAD atomic_flag_test_and_set_explicit(volatile AS atomic_flag *p, ORDER order,       \
                                                    SCOPE scope)                                   \
    {                                                                                              \
        return __opencl_atomic_exchange(SCOPED(int, p, scope), 1, order, scope) != 0;              \
    }                                                                                              \
    void OVERLOAD atomic_flag_clear(volatile AS atomic_flag *p)                                    \
    {                                                                                              \
        __opencl_atomic_store(PLAIN(AS, int, p), 0, memory_order_seq_cst, memory_scope_device);    \
    }                                                                                              \
    void OVERLOAD atomic_flag_clear_explicit(volatile AS atomic_flag *p, ORDER order)              \
    {                                                                                              \
        __opencl_atomic_store(PLAIN(AS, int, p), 0, order, memory_scope_device);                   \
    }                                                                                              \
    void OVERLOAD atomic_flag_clear_explicit(volatile AS atomic_flag *p, ORDER order, SCOPE scope) \
    {                                                                                              \
        __opencl_atomic_store(SCOPED(int, p, scope), 0, order, scope);                             \
    }

ATOMIC_FLAG(__generic)
ATOMIC_FLAG(__global)
ATOMIC_FLAG(__local)
