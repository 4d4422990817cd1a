/* Who takes which piece of a work (docs/cpu-scheduler.md).
 *
 * A work has a share for each place (a processor, nodes.c), a run of pieces with a counter of its
 * own, so that the launches of a program find in a processor's caches what the launch before left
 * there; or just one counter, where there is one place or no memory. Counters only grow; a piece
 * belongs to the thread whose addition or exchange took it. Relaxed throughout: pieces are
 * published, and their results handed over, by the pool's lock under which a work is joined and
 * left.
 */
#include "device/cpu/cpu.h"
#include "util/block.h"

/* A line of the cache for each counter: two, since processors fetch them in pairs. */
#define COUNTER_BYTES 128u

/* Of what is left of a share at most this part is taken at a time, so that all threads end
 * together. */
#define LEFT_PER_CHUNK 4u

struct share {
    _Alignas(COUNTER_BYTES) _Atomic uint64_t next; /* the first piece that nobody took */
    uint64_t end;
    atomic_bool is_claimed; /* a thread has begun with it */
};

struct sp_cpu_shares {
    unsigned count;
    atomic_bool is_begun;
    struct share shares[];
};

static size_t shares_bytes(unsigned count)
{
    return sizeof(struct sp_cpu_shares) + count * sizeof(struct share);
}

static bool is_shared(const struct sp_work *work)
{
    return work->driver.shares != NULL;
}

void sp_cpu_pieces_init(struct sp_work *work)
{
    const struct cpu_device *device = sp_cpu_device(work->driver.device);
    unsigned count = sp_cpu_num_places(), all = 0, before = 0;
    atomic_init(&work->driver.next_part, 0);
    work->driver.shares = NULL;
    if (count < 2 || device->has_processors || work->driver.parts <= work->driver.chunk ||
        work->driver.parts < count)
        return;
    struct sp_cpu_shares *shares = sp_block_alloc(shares_bytes(count));
    if (!shares)
        return; /* less well placed, as right */
    for (unsigned i = 0; i < count; i++)
        all += sp_cpu_place(i)->processors;
    for (unsigned i = 0; i < count; i++) {
        struct share *share = &shares->shares[i];
        atomic_init(&share->next, i ? shares->shares[i - 1].end : 0);
        atomic_init(&share->is_claimed, false);
        before += sp_cpu_place(i)->processors;
        /* No product of both: pieces may be bytes, of which there are up to 2^48. */
        share->end = work->driver.parts / all * before + work->driver.parts % all * before / all;
    }
    atomic_init(&shares->is_begun, false);
    shares->count = count;
    work->driver.shares = shares;
}

void sp_cpu_pieces_finish(struct sp_work *work)
{
    if (is_shared(work))
        sp_block_free(work->driver.shares, shares_bytes(work->driver.shares->count));
    work->driver.shares = NULL;
}

static bool share_has_pieces(const struct share *share)
{
    return atomic_load_explicit(&share->next, memory_order_relaxed) < share->end;
}

bool sp_cpu_pieces_left(const struct sp_work *work)
{
    if (!is_shared(work))
        return atomic_load_explicit(&work->driver.next_part, memory_order_relaxed) <
               work->driver.parts;
    const struct sp_cpu_shares *shares = work->driver.shares;
    for (unsigned i = 0; i < shares->count; i++)
        if (share_has_pieces(&shares->shares[i]))
            return true;
    return false;
}

/* The share that comes `turn` turns after `place`: first those of its own node. */
static unsigned share_after(const struct sp_cpu_shares *shares, unsigned place, unsigned turn)
{
    const struct sp_cpu_place *own = sp_cpu_place(place);
    unsigned near = own->end_of_node - own->first_of_node;
    if (turn < near)
        return own->first_of_node + (place - own->first_of_node + turn) % near;
    return (own->first_of_node + turn) % shares->count;
}

unsigned sp_cpu_pieces_claim(struct sp_work *work, unsigned place)
{
    struct sp_cpu_shares *shares = work->driver.shares;
    for (unsigned i = 0; shares && i < shares->count; i++) {
        unsigned s = share_after(shares, place, i);
        if (!atomic_load_explicit(&shares->shares[s].is_claimed, memory_order_relaxed) &&
            !atomic_exchange_explicit(&shares->shares[s].is_claimed, true, memory_order_relaxed))
            return s;
    }
    return place;
}

static bool take_of_all(struct sp_work *work, struct sp_cpu_pieces *taken)
{
    uint64_t limit = work->driver.parts, chunk = work->driver.chunk;
    taken->first = atomic_fetch_add_explicit(&work->driver.next_part, chunk, memory_order_relaxed);
    if (taken->first >= limit)
        return false;
    taken->end = limit - taken->first > chunk ? taken->first + chunk : limit;
    return true;
}

static bool take_of_share(const struct sp_work *work, struct share *share,
                          struct sp_cpu_pieces *taken)
{
    uint64_t first = atomic_load_explicit(&share->next, memory_order_relaxed), chunk;
    do {
        if (first >= share->end)
            return false;
        chunk = (share->end - first) / LEFT_PER_CHUNK;
        chunk = chunk > work->driver.chunk   ? work->driver.chunk
                : chunk < work->driver.least ? work->driver.least
                                             : chunk;
        chunk = chunk > share->end - first ? share->end - first : chunk ? chunk : 1;
    } while (!atomic_compare_exchange_weak_explicit(&share->next, &first, first + chunk,
                                                    memory_order_relaxed, memory_order_relaxed));
    taken->first = first;
    taken->end = first + chunk;
    return true;
}

bool sp_cpu_pieces_take(struct sp_work *work, unsigned share, struct sp_cpu_pieces *taken)
{
    if (!is_shared(work)) {
        bool is_taken = take_of_all(work, taken);
        taken->is_begin = is_taken && taken->first == 0;
        return is_taken;
    }
    struct sp_cpu_shares *shares = work->driver.shares;
    for (unsigned i = 0; i < shares->count; i++) {
        if (!take_of_share(work, &shares->shares[share_after(shares, share, i)], taken))
            continue;
        taken->is_begin = !atomic_load_explicit(&shares->is_begun, memory_order_relaxed) &&
                          !atomic_exchange_explicit(&shares->is_begun, true, memory_order_relaxed);
        return true;
    }
    return false;
}
