/* A gate: shut once, opened once, and anyone may wait for it. Opening costs a system call only
 * where somebody sleeps. */
#ifndef SP_UTIL_GATE_H
#define SP_UTIL_GATE_H

#include <stdbool.h>

#include "util/futex.h"

enum { SP_GATE_SHUT = 0, SP_GATE_OPEN = 1, SP_GATE_SLEEPERS = 2 /* shut, and somebody sleeps */ };

struct sp_gate {
    atomic_uint state;
};

static inline void sp_gate_init(struct sp_gate *gate)
{
    atomic_init(&gate->state, SP_GATE_SHUT);
}

/* Acquire: what came before the opening is visible to who saw it open. */
static inline bool sp_gate_is_open(struct sp_gate *gate)
{
    return atomic_load_explicit(&gate->state, memory_order_acquire) == SP_GATE_OPEN;
}

/* The gate's memory may be gone as soon as a waiter sees it open; the wake-up names only its
 * address. */
static inline void sp_gate_open(struct sp_gate *gate)
{
    if (atomic_exchange_explicit(&gate->state, SP_GATE_OPEN, memory_order_release) ==
        SP_GATE_SLEEPERS)
        sp_futex_wake(&gate->state, INT_MAX);
}

/* Sleeps until the gate is open. */
static inline void sp_gate_wait(struct sp_gate *gate)
{
    for (;;) {
        unsigned state = SP_GATE_SHUT;
        atomic_compare_exchange_strong_explicit(&gate->state, &state, SP_GATE_SLEEPERS,
                                                memory_order_acquire, memory_order_acquire);
        if (state == SP_GATE_OPEN)
            return;
        sp_futex_wait(&gate->state, SP_GATE_SLEEPERS);
    }
}

#endif
