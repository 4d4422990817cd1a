/* Work-group collective functions (OpenCL C 3.0, 6.15.16).
 *
 * Every work-item writes its value to the group's scratch memory; after a barrier the first
 * work-item goes over all of them in order of the local linear id, and after another everyone
 * reads. In order also means that sums of floating-point numbers come out the same for every shape
 * of the work-group. Each function leaves with the scratch memory free: where a work-item still
 * reads what another may overwrite in the next call, a last barrier separates them.
 */
#include "gentype.h"

static size_t linear_id(void)
{
    return (__sp_local_id_2() * __sp_local_size_1() + __sp_local_id_1()) * __sp_local_size_0() +
           __sp_local_id_0();
}

static size_t group_size(void)
{
    return __sp_local_size_0() * __sp_local_size_1() * __sp_local_size_2();
}

#define BROADCAST(T)                                                                               \
    static T broadcast_##T(T value, bool sender)                                                   \
    {                                                                                              \
        __local T *scratch = __sp_group_scratch();                                                 \
        if (sender) {                                                                              \
            *scratch = value;                                                                      \
        }                                                                                          \
        __sp_barrier();                                                                            \
        T result = *scratch;                                                                       \
        __sp_barrier();                                                                            \
        return result;                                                                             \
    }                                                                                              \
    T OVERLOAD work_group_broadcast(T value, size_t id_0)                                          \
    {                                                                                              \
        return broadcast_##T(value, __sp_local_id_0() == id_0);                                    \
    }                                                                                              \
    T OVERLOAD work_group_broadcast(T value, size_t id_0, size_t id_1)                             \
    {                                                                                              \
        return broadcast_##T(value, __sp_local_id_0() == id_0 && __sp_local_id_1() == id_1);       \
    }                                                                                              \
    T OVERLOAD work_group_broadcast(T value, size_t id_0, size_t id_1, size_t id_2)                \
    {                                                                                              \
        return broadcast_##T(value, __sp_local_id_0() == id_0 && __sp_local_id_1() == id_1 &&      \
                                        __sp_local_id_2() == id_2);                                \
    }

#define COLLECTIVE(T, name, identity, combine)                                                     \
    T OVERLOAD work_group_reduce_##name(T value)                                                   \
    {                                                                                              \
        __local T *scratch = __sp_group_scratch();                                                 \
        size_t id = linear_id();                                                                   \
        scratch[id] = value;                                                                       \
        __sp_barrier();                                                                            \
        if (id == 0) {                                                                             \
            T sum = value;                                                                         \
            for (size_t i = 1, n = group_size(); i < n; i++) {                                     \
                sum = combine(sum, scratch[i]);                                                    \
            }                                                                                      \
            *scratch = sum;                                                                        \
        }                                                                                          \
        __sp_barrier();                                                                            \
        T result = *scratch;                                                                       \
        __sp_barrier();                                                                            \
        return result;                                                                             \
    }                                                                                              \
    T OVERLOAD work_group_scan_inclusive_##name(T value)                                           \
    {                                                                                              \
        __local T *scratch = __sp_group_scratch();                                                 \
        size_t id = linear_id();                                                                   \
        scratch[id] = value;                                                                       \
        __sp_barrier();                                                                            \
        if (id == 0) {                                                                             \
            T sum = value;                                                                         \
            for (size_t i = 1, n = group_size(); i < n; i++) {                                     \
                sum = combine(sum, scratch[i]);                                                    \
                scratch[i] = sum;                                                                  \
            }                                                                                      \
        }                                                                                          \
        __sp_barrier();                                                                            \
        T result = scratch[id];                                                                    \
        __sp_barrier();                                                                            \
        return result;                                                                             \
    }                                                                                              \
    T OVERLOAD work_group_scan_exclusive_##name(T value)                                           \
    {                                                                                              \
        __local T *scratch = __sp_group_scratch();                                                 \
        size_t id = linear_id();                                                                   \
        scratch[id] = value;                                                                       \
        __sp_barrier();                                                                            \
        if (id == 0) {                                                                             \
            T sum = identity;                                                                      \
            for (size_t i = 0, n = group_size(); i < n; i++) {                                     \
                T next = scratch[i];                                                               \
                scratch[i] = sum;                                                                  \
                sum = combine(sum, next);                                                          \
            }                                                                                      \
        }                                                                                          \
        __sp_barrier();                                                                            \
        T result = scratch[id];                                                                    \
        __sp_barrier();                                                                            \
        return result;                                                                             \
    }

#define ADD(a, b) ((a) + (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))

#define COLLECTIVES(T, lowest, highest)                                                            \
    BROADCAST(T)                                                                                   \
    COLLECTIVE(T, add, 0, ADD)                                                                     \
    COLLECTIVE(T, min, highest, MIN)                                                               \
    COLLECTIVE(T, max, lowest, MAX)

COLLECTIVES(int, INT_MIN, INT_MAX)
COLLECTIVES(uint, 0, UINT_MAX)
COLLECTIVES(long, LONG_MIN, LONG_MAX)
COLLECTIVES(ulong, 0, ULONG_MAX)
COLLECTIVES(float, -INFINITY, INFINITY)
COLLECTIVES(double, -INFINITY, INFINITY)

int OVERLOAD work_group_all(int predicate)
{
    return work_group_reduce_min((int)(predicate != 0));
}

int OVERLOAD work_group_any(int predicate)
{
    return work_group_reduce_max((int)(predicate != 0));
}
