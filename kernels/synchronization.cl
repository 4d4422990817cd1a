/* Barriers and fences (OpenCL C 3.0, 6.15.8 and 6.15.12.6), and the questions about a pointer's
 * address space (6.15.10), whose answers feed the fences.
 *
 * All work-items of a work-group run on one thread, in program order between barriers. Hence
 * - a fence of work-group scope or less only has to keep the compiler from moving accesses;
 * - a barrier is no fence for other work-groups: work_group_barrier with a wider scope adds one
 *   on each side (what came before is released, what comes after is acquired).
 * Fences ignore which address spaces the flags name: the processor has no fence for less than all
 * memory.
 */
#include "gentype.h"

/* The order must be a constant for clang, hence a choice between constants. */
static void fence(memory_order order)
{
    switch (order) {
    case memory_order_relaxed:
        break;
    case memory_order_acquire:
        __c11_atomic_thread_fence(__ATOMIC_ACQUIRE);
        break;
    case memory_order_release:
        __c11_atomic_thread_fence(__ATOMIC_RELEASE);
        break;
    case memory_order_acq_rel:
        __c11_atomic_thread_fence(__ATOMIC_ACQ_REL);
        break;
    case memory_order_seq_cst:
        __c11_atomic_thread_fence(__ATOMIC_SEQ_CST);
        break;
    }
}

static bool scope_is_one_thread(memory_scope scope)
{
    return scope != memory_scope_device && scope != memory_scope_all_svm_devices;
}

void OVERLOAD atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order,
                                     memory_scope scope)
{
    if (scope_is_one_thread(scope)) {
        __c11_atomic_signal_fence(__ATOMIC_SEQ_CST);
    } else {
        fence(order);
    }
}

void OVERLOAD mem_fence(cl_mem_fence_flags flags)
{
    __c11_atomic_signal_fence(__ATOMIC_ACQ_REL);
}

void OVERLOAD read_mem_fence(cl_mem_fence_flags flags)
{
    __c11_atomic_signal_fence(__ATOMIC_ACQUIRE);
}

void OVERLOAD write_mem_fence(cl_mem_fence_flags flags)
{
    __c11_atomic_signal_fence(__ATOMIC_RELEASE);
}

void __attribute__((convergent)) OVERLOAD barrier(cl_mem_fence_flags flags)
{
    __sp_barrier();
}

void __attribute__((convergent)) OVERLOAD work_group_barrier(cl_mem_fence_flags flags)
{
    __sp_barrier();
}

void __attribute__((convergent)) OVERLOAD work_group_barrier(cl_mem_fence_flags flags,
                                                             memory_scope scope)
{
    if (!scope_is_one_thread(scope)) {
        __c11_atomic_thread_fence(__ATOMIC_RELEASE);
    }
    __sp_barrier();
    if (!scope_is_one_thread(scope)) {
        __c11_atomic_thread_fence(__ATOMIC_ACQUIRE);
    }
}

/* clang declares get_fence twice, for const and for plain pointers. Private memory needs no fence.
 */
cl_mem_fence_flags OVERLOAD get_fence(const __generic void *pointer)
{
    if (__sp_is_local(pointer)) {
        return CLK_LOCAL_MEM_FENCE;
    }
    return __sp_is_private(pointer) ? 0 : CLK_GLOBAL_MEM_FENCE;
}

cl_mem_fence_flags OVERLOAD get_fence(__generic void *pointer)
{
    return get_fence((const __generic void *)pointer);
}

/* clang turns to_global, to_local and to_private into these. A wrong guess gives a null pointer. */
__global void *__to_global(__generic void *pointer)
{
    return __sp_is_local(pointer) || __sp_is_private(pointer) ? 0 : (__global void *)pointer;
}

__local void *__to_local(__generic void *pointer)
{
    return __sp_is_local(pointer) ? (__local void *)pointer : 0;
}

__private void *__to_private(__generic void *pointer)
{
    return __sp_is_private(pointer) ? (__private void *)pointer : 0;
}
