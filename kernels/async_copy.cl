/* Async copies from global to local memory and back, and prefetch (OpenCL C 3.0, 6.15.11).
 *
 * On a CPU a work-group runs on one thread, so one work-item copies for all, in one piece: a call
 * of memcpy, not a loop, which would be taken for one that many work-items run
 * (docs/work-group-code.md). A GPU has its work-items share the copy (target.h). A strided copy has
 * no such call; there the work-items take turns everywhere. A barrier comes before either, so that
 * the copy does not sit in the middle of what vectorises over work-items; waiting for the event is
 * one barrier more. Hence events carry nothing: the one that the caller passed goes back.
 *
 * Elements of three are copied as four, as they lie in memory (6.15.11). Prefetch has nothing to
 * do: the processor's own prefetch sees what a kernel does.
 */
#include "gentype.h"
#include "target.h"

static bool is_first_work_item(void)
{
    return (__sp_local_id_0() | __sp_local_id_1() | __sp_local_id_2()) == 0;
}

static size_t own_place(void)
{
    return (__sp_local_id_2() * __sp_local_size_1() + __sp_local_id_1()) * __sp_local_size_0() +
           __sp_local_id_0();
}

static size_t places(void)
{
    return __sp_local_size_0() * __sp_local_size_1() * __sp_local_size_2();
}

void REPLACEABLE __sp_target_group_copy(__generic void *destination, const __generic void *source,
                                        ulong bytes, uint unit)
{
    if (is_first_work_item())
        __builtin_memcpy(destination, source, bytes);
}

/* M: the type as it lies in memory. */
#define COPY(T, M, TO, FROM)                                                                       \
    event_t OVERLOAD async_work_group_copy(TO T *destination, const FROM T *source, size_t count,  \
                                           event_t event)                                          \
    {                                                                                              \
        __sp_barrier();                                                                            \
        __sp_target_group_copy((void *)destination, (const void *)source, count * sizeof(M),       \
                               sizeof(M));                                                         \
        return event;                                                                              \
    }
#define STRIDED_COPY(T, M, TO, FROM, to_step, from_step)                                           \
    event_t OVERLOAD async_work_group_strided_copy(TO T *destination, const FROM T *source,        \
                                                   size_t count, size_t stride, event_t event)     \
    {                                                                                              \
        __sp_barrier();                                                                            \
        for (size_t i = own_place(); i < count; i += places())                                     \
            ((TO M *)destination)[i * to_step] = ((const FROM M *)source)[i * from_step];          \
        return event;                                                                              \
    }
#define COPIES_PREFETCH(T, M)                                                                      \
    COPY(T, M, __local, __global)                                                                  \
    COPY(T, M, __global, __local)                                                                  \
    STRIDED_COPY(T, M, __local, __global, 1, stride)                                               \
    STRIDED_COPY(T, M, __global, __local, stride, 1)                                               \
    void OVERLOAD prefetch(const __global T *p, size_t count)                                      \
    {                                                                                              \
    }
#define ALL_COPIES(T, ...)                                                                         \
    COPIES_PREFETCH(T, T)                                                                          \
    COPIES_PREFETCH(T##2, T##2)                                                                    \
    COPIES_PREFETCH(T##3, T##4)                                                                    \
    COPIES_PREFETCH(T##4, T##4)                                                                    \
    COPIES_PREFETCH(T##8, T##8)                                                                    \
    COPIES_PREFETCH(T##16, T##16)
ALL_SCALARS(ALL_COPIES)

void OVERLOAD wait_group_events(int count, __private event_t *events)
{
    __sp_barrier();
}

void OVERLOAD wait_group_events(int count, __generic event_t *events)
{
    __sp_barrier();
}

void OVERLOAD wait_group_events(int count, __local event_t *events)
{
    __sp_barrier();
}
