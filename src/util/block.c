/* See block.h. A stack of free blocks.
 *
 * Invariant: only one thread takes blocks off at a time (`is_taking`); so the top can change under
 * it only by pushes, and the block below the top stays the one below it: there is no ABA problem.
 * Who finds another thread taking uses malloc, as for a block that is larger.
 *
 * With AddressSanitizer every block is malloc's own, so that a use after its end is seen.
 */
#include "util/block.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"

/* Kept at most: a burst of so many commands finds its memory again. 12 MiB. */
#define MAX_FREE 8192u

#ifdef __SANITIZE_ADDRESS__
#define KEEPS_BLOCKS 0
#else
#define KEEPS_BLOCKS 1
#endif

struct block {
    struct block *below;
};

static struct {
    _Atomic(struct block *) top;
    atomic_uint count; /* about: blocks on their way count already */
    atomic_flag is_taking;
} blocks = {.is_taking = ATOMIC_FLAG_INIT};

static bool is_kept(size_t size)
{
    return KEEPS_BLOCKS && size <= SP_BLOCK_BYTES;
}

static struct block *take(void)
{
    if (!atomic_load_explicit(&blocks.top, memory_order_relaxed) ||
        atomic_flag_test_and_set_explicit(&blocks.is_taking, memory_order_acquire))
        return NULL;
    /* Acquire: `below` was written before the block was pushed. */
    struct block *top = atomic_load_explicit(&blocks.top, memory_order_acquire);
    while (top && !atomic_compare_exchange_weak_explicit(
                      &blocks.top, &top, top->below, memory_order_acquire, memory_order_acquire))
        continue;
    atomic_flag_clear_explicit(&blocks.is_taking, memory_order_release);
    if (top)
        atomic_fetch_sub_explicit(&blocks.count, 1, memory_order_relaxed);
    return top;
}

void *sp_block_alloc(size_t size)
{
    if (!is_kept(size))
        return sp_alloc(size);
    if (sp_alloc_may_fail())
        return NULL;
    void *block = take();
    if (!block)
        return calloc(1, SP_BLOCK_BYTES);
    memset(block, 0, size);
    return block;
}

void sp_block_free(void *memory, size_t size)
{
    if (!memory || !is_kept(size)) {
        free(memory);
        return;
    }
    if (atomic_fetch_add_explicit(&blocks.count, 1, memory_order_relaxed) >= MAX_FREE) {
        atomic_fetch_sub_explicit(&blocks.count, 1, memory_order_relaxed);
        free(memory);
        return;
    }
    struct block *block = memory;
    struct block *top = atomic_load_explicit(&blocks.top, memory_order_relaxed);
    do
        block->below = top;
    /* Release: `below`, and all that was done with the block. */
    while (!atomic_compare_exchange_weak_explicit(&blocks.top, &top, block, memory_order_release,
                                                  memory_order_relaxed));
}
