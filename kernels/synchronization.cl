/* Barriers and fences (OpenCL C 3.0, 6.15.8 and 6.15.12.6), and the questions about a pointer's
 * address space (6.15.10), whose answers feed the fences.
 *
 * What a fence is, a target knows (target.h). Here is what follows from the specification:
 * - a barrier is no fence for other work-groups: work_group_barrier with a wider scope adds one
 *   on each side (what came before is released, what comes after is acquired);
 * - which address spaces the flags name does not matter, but to mem_fence: programs of OpenCL C 1.x
 *   order global memory for other work-groups with it, so there it has the device's scope.
 */
#include "gentype.h"
#include "target.h"

static bool scope_is_group(memory_scope scope)
{
    return scope != memory_scope_device && scope != memory_scope_all_svm_devices;
}

void OVERLOAD atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order,
                                     memory_scope scope)
{
    __sp_target_fence(order, scope);
}

static memory_scope scope_of_flags(cl_mem_fence_flags flags)
{
    return flags & CLK_GLOBAL_MEM_FENCE ? memory_scope_device : memory_scope_work_group;
}

void OVERLOAD mem_fence(cl_mem_fence_flags flags)
{
    __sp_target_fence(memory_order_acq_rel, scope_of_flags(flags));
}

void OVERLOAD read_mem_fence(cl_mem_fence_flags flags)
{
    __sp_target_fence(memory_order_acquire, scope_of_flags(flags));
}

void OVERLOAD write_mem_fence(cl_mem_fence_flags flags)
{
    __sp_target_fence(memory_order_release, scope_of_flags(flags));
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
    if (!scope_is_group(scope)) {
        __sp_target_fence(memory_order_release, scope);
    }
    __sp_barrier();
    if (!scope_is_group(scope)) {
        __sp_target_fence(memory_order_acquire, scope);
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
