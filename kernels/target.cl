/* Fences and scopes where a work-group runs on one thread (kernels/target.h): in program order
 * between barriers, so a fence of work-group scope or less only has to keep the compiler from
 * moving accesses. The processor has no fence for less than all memory.
 */
#include "target.h"

__generic void *REPLACEABLE CONST_FUNCTION __sp_target_scoped(__generic void *pointer, uint scope)
{
    return pointer;
}

void REPLACEABLE __sp_target_fence(uint order, uint scope)
{
    if (scope != memory_scope_device && scope != memory_scope_all_svm_devices) {
        __c11_atomic_signal_fence(__ATOMIC_SEQ_CST);
        return;
    }
    /* The order must be a constant for clang, hence a choice between constants. */
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
    default:
        __c11_atomic_thread_fence(__ATOMIC_SEQ_CST);
        break;
    }
}
