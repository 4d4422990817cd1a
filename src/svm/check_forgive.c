/* SAMEPAGE_CHECK=forgive: a touch of memory that is not mapped maps it.
 *
 * A chunk around the touch is acquired for the host as a map would be: to read, or for a write to
 * change; what devices have comes over first. When it is current, the chunk is opened, and who
 * touched goes on. The next command that uses the region closes it again (sp_check_begin), so that
 * later touches are seen.
 *
 * Nobody waits here: the thread that sees touches must be free for those that a device's thread
 * makes while it ends the very transfers that are needed.
 */
#include <stdlib.h>

#include "svm/check_internal.h"
#include "util/alloc.h"

/* Large enough that walking through memory costs few faults (10 us each), small enough that one
 * word written moves little. */
#define CHUNK_BYTES (UINT64_C(64) << 10)

struct forgiven {
    struct sp_coherence coherence;
    uintptr_t start; /* of the chunk */
    size_t bytes;
    bool is_write;
};

static uintptr_t chunk_start(uintptr_t address)
{
    return address & ~(uintptr_t)(CHUNK_BYTES - 1);
}

/* Also where something went wrong: nobody may wait for ever. */
static void open_chunk(uintptr_t start, size_t bytes, bool is_write)
{
    pthread_mutex_lock(&sp_check_lock);
    sp_check_watch_open((void *)start, bytes, is_write);
    pthread_mutex_unlock(&sp_check_lock);
}

static void chunk_is_current(struct sp_coherence *coherence)
{
    struct forgiven *forgiven =
        (struct forgiven *)((char *)coherence - offsetof(struct forgiven, coherence));
    int error = atomic_load_explicit(&coherence->error, memory_order_relaxed);
    sp_coherence_end(coherence, error == 0);
    open_chunk(forgiven->start, forgiven->bytes, forgiven->is_write);
    free(forgiven);
}

void sp_check_forgive(struct sp_arena *arena, const struct sp_touch *touch)
{
    struct forgiven *forgiven = sp_alloc(sizeof *forgiven);
    struct sp_region *region = forgiven ? sp_arena_use(arena, (void *)touch->address) : NULL;
    uintptr_t page = touch->address & ~(uintptr_t)(sp_check_page_bytes() - 1);
    if (!region)
        goto fail;
    uintptr_t first = (uintptr_t)region->start;
    forgiven->start = chunk_start(touch->address);
    if (forgiven->start < first)
        forgiven->start = first;
    size_t left = region->bytes - (forgiven->start - first);
    uintptr_t end = chunk_start(touch->address) + CHUNK_BYTES;
    size_t bytes = end - forgiven->start < left ? end - forgiven->start : left;
    forgiven->bytes = (bytes + sp_check_page_bytes() - 1) & ~(sp_check_page_bytes() - 1);
    forgiven->is_write = touch->is_write;
    forgiven->coherence.is_strict = true;
    forgiven->coherence.ready = chunk_is_current;
    int error = sp_coherence_touch(&forgiven->coherence, arena, (void *)forgiven->start, bytes,
                                   touch->is_write ? SP_ACCESS_READ_WRITE : SP_ACCESS_READ);

    pthread_mutex_lock(&sp_check_lock);
    if (region->check) {
        region->check->is_open = true;
        for (struct check_use *use = region->check->uses; use; use = use->next)
            use->is_contended |= use->is_undeclared;
    }
    pthread_mutex_unlock(&sp_check_lock);
    sp_arena_end_use(region);
    if (error)
        goto fail;
    sp_coherence_begin(&forgiven->coherence, arena, SP_AGENT_HOST);
    return;
fail:
    free(forgiven);
    open_chunk(page, sp_check_page_bytes(), touch->is_write);
}
