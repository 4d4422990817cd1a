/* Who takes which piece of a work (docs/cpu-scheduler.md).
 *
 * A work has one counter of the pieces that are taken, or, on a machine of several nodes, a share
 * with a counter of its own for each node. Counters only grow; a piece belongs to the thread whose
 * addition took it. Relaxed throughout: pieces are published, and their results handed over, by the
 * pool's lock under which a work is joined and left.
 */
#include "device/cpu/cpu.h"
#include "util/block.h"

/* A line of the cache for each counter: two, since processors fetch them in pairs. */
#define COUNTER_BYTES 128u

struct share {
    _Alignas(COUNTER_BYTES) _Atomic uint64_t next; /* the first piece that nobody took */
    uint64_t end;
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
    unsigned count = sp_cpu_num_nodes(), all = 0, before = 0;
    atomic_init(&work->driver.next_part, 0);
    work->driver.shares = NULL;
    if (count < 2 || device->has_processors || work->driver.parts <= work->driver.chunk)
        return;
    struct sp_cpu_shares *shares = sp_block_alloc(shares_bytes(count));
    if (!shares)
        return; /* less well placed, as right */
    for (unsigned i = 0; i < count; i++)
        all += (unsigned)CPU_COUNT(sp_cpu_node_processors(i));
    for (unsigned i = 0; i < count; i++) {
        struct share *share = &shares->shares[i];
        atomic_init(&share->next, i ? shares->shares[i - 1].end : 0);
        before += (unsigned)CPU_COUNT(sp_cpu_node_processors(i));
        /* No product of both: pieces may be bytes, of which there are up to 2^48. */
        share->end = work->driver.parts / all * before + work->driver.parts % all * before / all;
    }
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

static bool take(_Atomic uint64_t *next, uint64_t limit, uint64_t chunk,
                 struct sp_cpu_pieces *taken)
{
    taken->first = atomic_fetch_add_explicit(next, chunk, memory_order_relaxed);
    if (taken->first >= limit)
        return false;
    taken->end = limit - taken->first > chunk ? taken->first + chunk : limit;
    return true;
}

bool sp_cpu_pieces_take(struct sp_work *work, unsigned node, struct sp_cpu_pieces *taken)
{
    if (!is_shared(work)) {
        bool is_taken =
            take(&work->driver.next_part, work->driver.parts, work->driver.chunk, taken);
        taken->is_begin = is_taken && taken->first == 0;
        return is_taken;
    }
    struct sp_cpu_shares *shares = work->driver.shares;
    for (unsigned i = 0; i < shares->count; i++) {
        struct share *share = &shares->shares[(node + i) % shares->count];
        /* Looked at first, so that a counter at its end is left where it is. */
        if (share_has_pieces(share) && take(&share->next, share->end, work->driver.chunk, taken)) {
            taken->is_begin =
                !atomic_load_explicit(&shares->is_begun, memory_order_relaxed) &&
                !atomic_exchange_explicit(&shares->is_begun, true, memory_order_relaxed);
            return true;
        }
    }
    return false;
}
