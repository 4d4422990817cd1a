/* See fence.h. */
#include "device/fence.h"

#include "util/futex.h"

static struct sp_fence_slot *slot_of(const struct sp_fence_board *board, sp_fence fence)
{
    return (struct sp_fence_slot *)&board->lines[sp_fence_device(fence) % SP_MAX_CLIENT_DEVICES]
        .slots[sp_fence_slot(fence) % SP_FENCE_SLOTS];
}

enum sp_fence_state sp_fence_look(const struct sp_fence_board *board, sp_fence fence)
{
    uint64_t reached = atomic_load_explicit(&slot_of(board, fence)->reached, memory_order_acquire);
    uint64_t number = sp_fence_number(fence);
    if (reached >> 1 < number)
        return SP_FENCE_NOT_YET;
    return reached == number << 1 ? SP_FENCE_WELL : SP_FENCE_BADLY;
}

void sp_fence_wake(struct sp_fence_line *line)
{
    /* Sequentially consistent: the process sets the word, then looks for what it sleeps for. */
    if (atomic_load_explicit(&line->process_sleeps, memory_order_seq_cst) &&
        atomic_exchange_explicit(&line->process_sleeps, 0, memory_order_seq_cst))
        sp_futex_wake_shared(&line->process_sleeps, 1);
}

void sp_fence_reach(struct sp_fence_board *board, sp_fence fence, bool is_well, uint32_t unexports)
{
    struct sp_fence_slot *slot = slot_of(board, fence);
    struct sp_fence_line *line = &board->lines[sp_fence_device(fence) % SP_MAX_CLIENT_DEVICES];
    /* Relaxed: who could have reached it before is gone, or tells us of it. */
    if (atomic_load_explicit(&slot->reached, memory_order_relaxed) >> 1 >= sp_fence_number(fence))
        return;
    atomic_store_explicit(&slot->unexports, unexports, memory_order_relaxed);
    atomic_store_explicit(&slot->reached, sp_fence_number(fence) << 1 | !is_well,
                          memory_order_release);
    /* Sequentially consistent, before the look at who sleeps (process/park.c). */
    atomic_fetch_add_explicit(&line->ends, 1, memory_order_seq_cst);
    if (!atomic_load_explicit(&line->awaited_by, memory_order_seq_cst))
        return;
    uint32_t devices = atomic_exchange_explicit(&line->awaited_by, 0, memory_order_seq_cst);
    for (uint32_t d = 0; d < SP_MAX_CLIENT_DEVICES; d++)
        if (devices >> d & 1)
            sp_fence_wake(&board->lines[d]);
}
