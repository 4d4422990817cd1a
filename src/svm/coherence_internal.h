/* What the parts of the coherence layer know of each other: coherence.c (the uses of a command),
 * ahead.c (uses that begin before others have ended), bindings.c (spans on agents), copies.c
 * (transfers under way), path.c (which path a region is on for now).
 *
 * Uses go down from coherence to bindings to path, and all of them start copies; what ends tells
 * those above that wait for it (sp_coherence_settle, sp_coherence_pinned, sp_bindings_retry), with
 * no lock held. The locks and their order are those of coherence.h.
 */
#ifndef SP_SVM_COHERENCE_INTERNAL_H
#define SP_SVM_COHERENCE_INTERNAL_H

#include "svm/coherence.h"
#include "svm/region.h"
#include "svm/window.h"

/* --- ahead.c
 * ---------------------------------------------------------------------------------------- */

/* A device is there. Before its first use. */
void sp_coherence_note_agent(const struct sp_device *device);

/* The work, which is not submitted yet, waits for the fence, too, with a reference of its own. */
void sp_fence_await(struct sp_work *work, sp_fence fence);

/* Where what a range needs comes from, of what commands under way are going to change. */
enum sp_supplied {
    SP_NOT_OVERWRITTEN,   /* as the directory says */
    SP_SUPPLIED_IN_ORDER, /* it will be there when the work runs */
    SP_MUST_WAIT,         /* something was told to wake the command */
};

struct sp_supply;

/* How many changes were ever listed. */
uint64_t sp_changes_listed(void);

/* The command is going to change the range. With the region's lock held. */
void sp_change_list(struct sp_coherence *coherence, struct sp_range_use *range);

/* Takes the range off the list, if it is in it; those who wait for it go on. The promise that
 * brought it is not needed any more: as sp_promise_end. Takes the region's lock. */
int sp_change_unlist(struct sp_range_use *range);

/* For a command that began ahead: what is still being changed is there in its device's order, is
 * promised, or is waited for. With the region's lock held, and a copy in the supply. -ENOMEM. */
int sp_ahead_find_changes(struct sp_supply *supply, struct sp_coherence *coherence,
                          struct sp_range_use *range, enum sp_supplied *found);

/* Waits for promises that were dropped, until it is known whether they came all the same and
 * damaged what somebody has. With the region's lock held. -ENOMEM. */
int sp_ahead_wait_for_dropped(struct sp_supply *supply, struct sp_coherence *coherence,
                              const struct sp_range_use *range, bool *is_blocked);

/* Waits for promises that will bring something to the memory of the range: what is there now is not
 * to overtake it. With the region's lock held. -ENOMEM. */
int sp_ahead_wait_for_promises(struct sp_supply *supply, struct sp_coherence *coherence,
                               const struct sp_range_use *range, bool *is_blocked);

static inline bool sp_ranges_overlap(const struct sp_range_use *a, const struct sp_range_use *b)
{
    return a->first < b->end && b->first < a->end;
}

/* --- coherence.c
 * ------------------------------------------------------------------------------------ */

/* A command that waits for something: a copy, or another command that overwrites. */
struct sp_waiter {
    struct sp_waiter *next;
    struct sp_coherence *coherence;
    bool needs_it; /* its error is the command's; else the command looks again when it has ended */
};

/* How many of the command's own ranges are going to change the region. */
unsigned sp_coherence_writers(const struct sp_coherence *coherence, const struct sp_region *region);

/* One thing less to wait for. No lock is held. */
void sp_coherence_settle(struct sp_coherence *coherence);

/* The first error counts. */
void sp_coherence_note_error(struct sp_coherence *coherence, int error);

/* Its ranges are bound and pinned, or `error` says why not: it goes on from there. No lock is held.
 */
void sp_coherence_pinned(struct sp_coherence *coherence, int error);

/* --- copies.c
 * --------------------------------------------------------------------------------------- */

/* Pieces of some copies that were started together; the last of these frees them. */
struct sp_pieces {
    atomic_uint references;
    struct sp_piece list[];
};

enum sp_copy_state {
    SP_COPY_KNOWN,    /* the directory says that it was made */
    SP_COPY_PROMISED, /* it waits for a command that is to change what it copies; the directory
                         knows nothing of either */
    SP_COPY_DROPPED,  /* that command failed */
};

/* A copy under way; it holds a use of its region. Of [first, end) it copies all, or the pieces of
 * its work. */
struct sp_copy {
    struct sp_copy *next; /* of the region's copies, the promiser's, or the region's dropped ones */
    struct sp_copy **link; /* what points to this one */
    struct sp_work work;
    struct sp_region *region;
    uint64_t first, end;
    uint32_t source, destination, executor; /* agents */
    uint64_t start_ns;                      /* when it was asked for; with the trace only */
    const char *reason; /* "use", "prefetch", "eviction", "path" or "way through the host" */
    struct sp_waiter *waiters;
    struct sp_pieces *pieces; /* NULL: it copies all */
    enum sp_copy_state state;
    struct sp_range_use *promiser; /* PROMISED: the range whose change it waits for */
    unsigned references; /* promises: of the region's list, and of ranges (sp_range_use.promise) */
    bool is_finished;
    int error; /* is_finished */
};

/* Copies and waiters that an acquire may need, taken before the directory changes so that nothing
 * can fail afterwards. All zero at first. */
struct sp_supply {
    struct sp_copy *copies;
    struct sp_waiter *waiters;
    struct sp_pieces *pieces; /* room for as many as there may be transfers; NULL: for one */
    size_t pieces_used;
};

/* How many copies so many transfers are at most: those from one source are one, as far as that
 * holds as many. */
size_t sp_copies_for(size_t transfers);

/* For so many transfers that the directory asks for. -ENOMEM: what was taken is still the supply's.
 */
int sp_supply_fill(struct sp_supply *supply, size_t transfers, size_t waiters);
void sp_supply_finish(struct sp_supply *supply);

/* `coherence` waits for whoever has this list of waiters. */
void sp_supply_wait(struct sp_supply *supply, struct sp_waiter **waiters,
                    struct sp_coherence *coherence);

/* The same with a waiter more in the supply for it. -ENOMEM. */
int sp_supply_wait_also(struct sp_supply *supply, struct sp_waiter **waiters,
                        struct sp_coherence *coherence);

/* Whether a use must wait for a copy: a device's ring keeps the order of its own copies and works,
 * but not the death of another device. */
bool sp_copy_must_end_before(const struct sp_copy *copy, const struct sp_coherence *coherence);

/* Whether a copy under way copies anything of [first, end). */
bool sp_copy_overlaps(const struct sp_copy *copy, uint64_t first, uint64_t end);

/* Whether a copy under way touches the memory of `agent` so that a use of the same range may not
 * begin beside it: it brings something there, or takes from there what the use is going to change.
 */
bool sp_copy_concerns(const struct sp_copy *copy, uint32_t agent, enum sp_access access);

/* Starts what the directory asked for. With the region's lock held. `coherence` (may be NULL) waits
 * for those copies that must end before it. */
void sp_copies_start(struct sp_supply *supply, struct sp_region *region,
                     const struct sp_transfers *transfers, const char *reason,
                     struct sp_coherence *coherence);

/* Promises a range that `supplier`, which covers it, is going to have changed: starts a copy of it
 * from there that waits for all that `coherence` follows, and for the supplier's command; or takes
 * one that another command has started, where `may_share`. With the region's lock held, and a copy
 * in the supply. False: it cannot be promised now. */
bool sp_copy_promise(struct sp_supply *supply, struct sp_coherence *coherence,
                     struct sp_range_use *range, struct sp_range_use *supplier, bool may_share);

/* The directory knows now of what the supplier's command changed (is_good), or that will not be
 * changed: what it promised is given, or dropped. With the region's lock held. */
void sp_promises_settle(struct sp_range_use *supplier, bool is_good);

/* The range needs its promise no more: 0, or -EIO where that copy failed since a device had died.
 * What failed while the devices live can be copied anew. With the region's lock held. */
int sp_promise_end(struct sp_range_use *range);

/* The copies from an agent that died will not bring anything. Calls `lost` for ranges that nobody
 * has now. With the region's lock held. */
void sp_copies_cancel(struct sp_region *region, uint32_t agent,
                      void (*lost)(void *data, uint64_t first, uint64_t end), void *data);

/* Brings to the host what only `agent` holds of [first, end) of a region, and takes the rest from
 * it. Afterwards nobody will copy that from it. -EBUSY while another device does, or something else
 * changes the host's pages there; -ENOMEM. Takes the region's lock. */
int sp_region_evict(struct sp_region *region, uint32_t agent, uint64_t first, uint64_t end,
                    const char *reason);

/* --- bindings.c
 * ------------------------------------------------------------------------------------- */

enum sp_backing {
    SP_BACKING_PRIVATE, /* memory of the device */
    SP_BACKING_HOME,    /* the host's pages */
    SP_BACKING_PEER,    /* memory of another device: a part of a pooled region */
};

/* Of a binding to a whole span. */
#define SP_ALL_PARTS UINT32_MAX

/* A span on an agent; of a pooled region one part of it, but outside of the pool. */
struct sp_binding {
    struct sp_binding *next;          /* of the span */
    struct sp_binding *newer, *older; /* of the agent, by last use */
    struct sp_span *span;             /* NULL once taken off */
    unsigned char *start;
    uint64_t bytes;
    uint32_t part; /* of the pool, or SP_ALL_PARTS */
    uint32_t agent;
    enum sp_backing backing;
    uint64_t asked; /* counts all bindings, as they were asked for */
    unsigned pins;  /* commands that need it; not evicted meanwhile */
    /* One while it is linked, one for each work under way, and one for each peer */
    atomic_uint references;
    struct sp_work bind, unbind;
    uint64_t asked_ns; /* parts, with the trace only: when it was asked for */
    bool is_ready;     /* bound, or `error` says why not */
    bool has_memory;   /* a private backing that counts as bound: of its agent */
    bool is_orphan;    /* it is no good any more, and is taken off when no command needs it */
    int error;
    struct sp_waiter *waiters; /* until it is ready */
    /* Parts only. */
    struct sp_binding *home;  /* peer: the binding of the same part at its home */
    unsigned peers;           /* home: peers that may still have its memory mapped */
    struct sp_binding *seers; /* home: peers that are bound when it is ready */
    struct sp_binding *next_seer;
};

/* The device of an agent, or NULL. */
struct sp_device *sp_agent_device(uint32_t agent);

/* The life that the device of an agent other than the host is in. */
uint32_t sp_agent_life(uint32_t agent);

/* Hands a work to the agent's device. */
void sp_agent_submit(uint32_t agent, struct sp_work *work);

/* Before the device is used. `lost` becomes what it calls when its process has died. */
void sp_bindings_add_agent(struct sp_device *device,
                           void (*lost)(struct sp_device *device, const char *reason));

/* Binds and pins the spans of all ranges of `coherence`, and binds those of the home path that it
 * may reach. True: it is done, or coherence->error says why not. False: there is no room until
 * other commands have ended; then sp_coherence_pinned is called. */
bool sp_bindings_pin(struct sp_coherence *coherence, struct sp_arena *arena);

/* The same for a command that has waited for bindings which failed and were not asked for on its
 * account (sp_coherence.binds_again): lets go of what it has pinned first. */
bool sp_bindings_pin_again(struct sp_coherence *coherence);

/* The pins of a command that has ended; what waited for the room that it took goes on. */
void sp_bindings_unpin(struct sp_coherence *coherence);

/* Something has ended that may have stood in the way of an eviction. */
void sp_bindings_retry(void);

/* Binds a span that is not bound there yet, without evicting anything for it: 0, -ENOSPC, -ENOMEM.
 * With the bindings' lock held. */
int sp_bindings_bind_if_room(struct sp_span *span, uint32_t agent);

/* How much of an agent's memory no binding has. With the bindings' lock held. */
uint64_t sp_agent_free_bytes(uint32_t agent);

/* Unlinks a binding and lets the device forget it. With the bindings' lock held. */
void sp_binding_take_off(struct sp_binding *binding);

/* An agent died: it has nothing any more, and nobody uses its memory until the directories know of
 * that, too. */
void sp_bindings_forget(uint32_t agent);
void sp_bindings_recover(uint32_t agent);

void sp_bindings_lock(void);
void sp_bindings_unlock(void);

/* --- path.c: all with the bindings' lock held
 * ----------------------------------------------------------- */

/* Before `agent` uses a region: moves its span home, or back, where the uses so far say so, or
 * where the application asks for it to be with the agent (is_migration). */
void sp_path_decide(struct sp_region *region, uint32_t agent, bool is_migration);

/* `agent` used a region, and copies were needed for that or not. */
void sp_path_count(struct sp_region *region, uint32_t agent, bool has_moved);

/* The application has said itself where the region is to be: what was counted does not matter. */
void sp_path_reset(struct sp_region *region);

#endif
