/* What a kernel may reach, where the application says so (the checking mode): the ranges that were
 * declared under the kernel's ticket. All else that is bound is made inaccessible while it runs. A
 * touch of that is a fault; its handler notes the address of the first and makes the granule
 * accessible again, so that the kernel goes on with what happens to be there, as it would
 * unchecked.
 *
 * Invariant: outside of a kernel nothing is hidden.
 *
 * The loop thread's, but for reveal, which runs in the handler of a fault on any thread that runs
 * the kernel's code, while the loop thread is inside run.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/process/virtual/virtual.h"
#include "svm/heap.h"
#include "util/alloc.h"

/* What is said of a granule while a kernel runs. */
enum { REACHABLE = 0, DECLARED = 1, HIDDEN = 2 };

/* One range of whole granules that a kernel to come declares. */
struct declared {
    struct declared *next;
    uint64_t ticket;
    uint64_t first, end;
};

static struct {
    unsigned char *window;
    uint64_t granules;
    _Atomic(unsigned char) *marks; /* of granules; pages of it appear when used */
    uint64_t end;                  /* granules from here on were never declared or bound */
    struct declared *declared;
    _Atomic uint64_t undeclared; /* the first address touched in vain; 0: none */
} reach;

int sp_virtual_reach_init(const struct sp_backend_setup *setup)
{
    reach.window = setup->window;
    reach.granules = setup->window_bytes / SP_GRANULE_BYTES;
    reach.marks = sp_alloc_array(reach.granules, sizeof *reach.marks);
    return reach.marks ? 0 : -ENOMEM;
}

void sp_virtual_reach_bound(uint64_t end)
{
    if (reach.end < end)
        reach.end = end;
}

int sp_virtual_reach_declare(uint64_t start, uint64_t bytes, uint64_t ticket)
{
    uint64_t first, end;
    if (!ticket || !sp_virtual_granules(start, bytes, &first, &end))
        return -EINVAL;
    struct declared *declared = sp_alloc(sizeof *declared);
    if (!declared)
        return -ENOMEM;
    *declared =
        (struct declared){.next = reach.declared, .ticket = ticket, .first = first, .end = end};
    reach.declared = declared;
    return 0;
}

static void mark(uint64_t granule, unsigned char value)
{
    atomic_store_explicit(&reach.marks[granule], value, memory_order_relaxed);
}

static unsigned char mark_of(uint64_t granule)
{
    return atomic_load_explicit(&reach.marks[granule], memory_order_relaxed);
}

static bool protect(uint64_t first, uint64_t end, int protection)
{
    return mprotect(reach.window + first * SP_GRANULE_BYTES, (end - first) * SP_GRANULE_BYTES,
                    protection) == 0;
}

static bool is_to_hide(uint64_t granule)
{
    return mark_of(granule) == REACHABLE &&
           sp_virtual_memory_is_bound((uintptr_t)reach.window + granule * SP_GRANULE_BYTES,
                                      SP_GRANULE_BYTES);
}

void sp_virtual_reach_limit(uint64_t ticket)
{
    /* Relaxed, as everything here: the threads of the pool get the work behind a lock. */
    atomic_store_explicit(&reach.undeclared, 0, memory_order_relaxed);
    for (const struct declared *declared = reach.declared; declared; declared = declared->next)
        for (uint64_t i = declared->first; declared->ticket == ticket && i < declared->end; i++)
            mark(i, DECLARED);
    for (uint64_t first = 0, end; first < reach.end; first = end) {
        end = first + 1;
        if (!is_to_hide(first))
            continue;
        while (end < reach.end && is_to_hide(end))
            end++;
        for (uint64_t i = first; i < end; i++)
            mark(i, HIDDEN);
        protect(first, end, PROT_NONE);
    }
}

uint64_t sp_virtual_reach_unlimit(uint64_t ticket)
{
    for (uint64_t first = 0, end; first < reach.end; first = end) {
        end = first + 1;
        if (mark_of(first) != HIDDEN)
            continue;
        while (end < reach.end && mark_of(end) == HIDDEN)
            end++;
        protect(first, end, PROT_READ | PROT_WRITE);
        for (uint64_t i = first; i < end; i++)
            mark(i, REACHABLE);
    }
    for (struct declared **link = &reach.declared; *link;) {
        struct declared *declared = *link;
        if (declared->ticket != ticket) {
            link = &declared->next;
            continue;
        }
        for (uint64_t i = declared->first; i < declared->end; i++)
            mark(i, REACHABLE);
        *link = declared->next;
        free(declared);
    }
    return atomic_exchange_explicit(&reach.undeclared, 0, memory_order_relaxed);
}

bool sp_virtual_reach_reveal(uint64_t address)
{
    uint64_t first, end, none = 0;
    if (!reach.marks || !sp_virtual_granules(address, 1, &first, &end) || first >= reach.granules)
        return false;
    /* Another thread may have revealed it meanwhile: then the access is simply made again. */
    bool is_hidden = mark_of(first) == HIDDEN;
    if (!is_hidden && first < reach.end && is_to_hide(first))
        return atomic_load_explicit(&reach.undeclared, memory_order_relaxed) != 0;
    if (!is_hidden)
        return false;
    atomic_compare_exchange_strong_explicit(&reach.undeclared, &none, address, memory_order_relaxed,
                                            memory_order_relaxed);
    if (!protect(first, first + 1, PROT_READ | PROT_WRITE))
        return false;
    mark(first, REACHABLE);
    return true;
}
