/* See spin.h. Owns when this process's spins may be long again, and each thread's count of times
 * that the kernel took its processor away. */
#include "util/spin.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "util/thread.h"
#include "util/time.h"

/* A spin sees the clock every few microseconds. Interrupts and the kernel's own threads take some
 * tens; another thread keeps the processor for a slice, 0.7 to 3 ms (the kernel's base_slice_ns,
 * which grows with the processors), before it is the spin's turn again. */
#define LOST_NS 300000u

/* A twentieth of a processor is what a long spin may take of a wait (device/client/probe.c). */
#define SHARE 20u

/* Relaxed: a guess about the future, which orders nothing. */
static _Atomic uint64_t brief_until;

/* Whether the kernel has taken this thread's processor away since the last look, or ever. A gap
 * between two looks at the clock alone does not say so: what the spin looks at may have taken long,
 * or the host of a virtual machine may have stopped all of it. */
static bool was_preempted(void)
{
    static SP_THREAD_LOCAL long seen;
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage))
        return false;
    bool is_new = usage.ru_nivcsw != seen;
    seen = usage.ru_nivcsw;
    return is_new;
}

void sp_spin_begin(struct sp_spin *spin, uint64_t ns)
{
    uint64_t now = sp_time_ns();
    if (ns > SP_BRIEF_SPIN_NS && now < atomic_load_explicit(&brief_until, memory_order_relaxed))
        ns = SP_BRIEF_SPIN_NS;
    *spin = (struct sp_spin){.begin = now, .last = now, .end = now + ns};
}

bool sp_spin_goes_on(struct sp_spin *spin)
{
    uint64_t now = sp_time_ns();
    if (spin->end && now - spin->last > LOST_NS && was_preempted()) {
        uint64_t until = now + (spin->last - spin->begin) * SHARE;
        atomic_store_explicit(&brief_until, until, memory_order_relaxed);
        spin->end = 0;
        return false;
    }
    spin->last = now;
    return now < spin->end;
}
