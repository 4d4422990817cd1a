/* See atomic_part.h. One word of marks for each granule, a bit for each agent; pages of them appear
 * when used.
 *
 * Entering stores is_inside, then reads a mark; clearing a mark stores it, then reads is_inside.
 * All four are sequentially consistent, so one of the two sees the other: either the mark is seen
 * as cleared, or the visitor is waited for.
 */
#include "svm/atomic_part.h"

#include <errno.h>
#include <sys/mman.h>

#include "svm/coherence.h"
#include "util/alloc.h"
#include "util/futex.h"

_Static_assert(SP_MAX_AGENTS <= 32, "a bit for each agent");

static struct {
    uintptr_t start;
    size_t bytes;
    _Atomic uint32_t *marks; /* by granule */
    atomic_size_t used;      /* granules that have spans */
    _Atomic(struct sp_atomic_visitor *) visitors;
} part;

int sp_atomic_part_init(uintptr_t start, size_t bytes)
{
    if (sp_alloc_may_fail())
        return -ENOMEM;
    void *marks = mmap(NULL, bytes / SP_GRANULE_BYTES * sizeof *part.marks, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (marks == MAP_FAILED)
        return -ENOMEM;
    part.marks = marks;
    part.start = start;
    part.bytes = bytes;
    return 0;
}

void sp_atomic_part(uintptr_t *start, size_t *bytes)
{
    *start = part.start;
    *bytes = part.bytes;
}

void sp_atomic_part_count(ptrdiff_t granules)
{
    /* Relaxed: a region is handed to who uses it in ways that order this. */
    atomic_fetch_add_explicit(&part.used, (size_t)granules, memory_order_relaxed);
}

bool sp_atomic_part_is_used(void)
{
    return atomic_load_explicit(&part.used, memory_order_relaxed) != 0;
}

void sp_atomic_visitor_add(struct sp_atomic_visitor *visitor)
{
    visitor->next = atomic_load_explicit(&part.visitors, memory_order_relaxed);
    /* Sequentially consistent, before it ever enters. */
    while (!atomic_compare_exchange_weak(&part.visitors, &visitor->next, visitor))
        ;
}

void sp_atomic_enter(struct sp_atomic_visitor *visitor)
{
    atomic_store(&visitor->is_inside, 1);
}

void sp_atomic_leave(struct sp_atomic_visitor *visitor)
{
    /* Release: its operations are done. */
    atomic_store_explicit(&visitor->is_inside, 0, memory_order_release);
}

bool sp_atomic_is_bound(uintptr_t address, uint32_t agent)
{
    size_t offset = address - part.start;
    return offset < part.bytes && atomic_load(&part.marks[offset / SP_GRANULE_BYTES]) >> agent & 1;
}

static size_t granule_of(uintptr_t start)
{
    return (start - part.start) / SP_GRANULE_BYTES;
}

void sp_atomic_mark(uintptr_t start, size_t bytes, uint32_t agent)
{
    if (start - part.start >= part.bytes)
        return;
    for (size_t i = 0; i < bytes / SP_GRANULE_BYTES; i++)
        atomic_fetch_or(&part.marks[granule_of(start) + i], 1u << agent);
}

void sp_atomic_unmark(uintptr_t start, size_t bytes, uint32_t agent)
{
    if (start - part.start >= part.bytes)
        return;
    for (size_t i = 0; i < bytes / SP_GRANULE_BYTES; i++)
        atomic_fetch_and(&part.marks[granule_of(start) + i], ~(1u << agent));
    struct sp_atomic_visitor *visitor = atomic_load(&part.visitors);
    for (; visitor; visitor = visitor->next)
        while (atomic_load(&visitor->is_inside)) /* a batch: microseconds */
            sp_cpu_pause();
}
