/* Coherence: makes sure that what a command uses is current where the command runs.
 *
 * For the regions of shared arenas (svm/heap.h). A command says what ranges it uses; before it
 * starts, each is bound on the agent, and the copies that the region's directory asks for are made
 * by the devices concerned; after its end the uses are dropped. Devices are reached through
 * driver.h alone.
 *
 * Locks, in order: the bindings' (one), an arena's, a region's. Works are submitted with them held,
 * so that a device's ring has them in the order in which the directory changed; none is held while
 * a device works.
 */
#ifndef SP_SVM_COHERENCE_H
#define SP_SVM_COHERENCE_H

#include <stdatomic.h>

#include "device/driver.h"
#include "svm/directory.h"
#include "svm/heap.h"
#include "svm/room_line.h"

struct sp_binding;
struct sp_coherence;
struct sp_copy;
struct sp_span;
struct sp_waiter;

/* Registers a device with memory of its own under device->agent. Before its first use. */
void sp_coherence_add_agent(struct sp_device *device);

/* One range that a command uses. */
struct sp_range_use {
    struct sp_region *region; /* with a use */
    uint64_t first, end;      /* bytes of the region */
    enum sp_access access;
    /* For the checking mode: what of this is sure, and whether the program declared it at all. */
    bool is_read, is_written, is_undeclared;
    bool has_moved;             /* copies were needed */
    struct sp_binding *binding; /* of its span on the agent, with a reference and a pin; or NULL */
    /* From begin on. */
    uint32_t
        memory; /* the agent in whose memory it is used: the command's own, but where is_pooled */
    bool is_pooled;       /* one part of a pooled region, used by a member of the pool */
    uint32_t part;        /* is_pooled: which */
    uint32_t memory_life; /* is_pooled: of `memory`, in which it is bound there */
    /* is_pooled, and `memory` is another agent: of the part there; as `binding` */
    struct sp_binding *home;
    /* While the command is under way and is going to change it: in the region's list, under its
     * lock. */
    bool is_listed;
    bool is_noted; /* the directory knows of the change */
    uint32_t agent;
    uint64_t listed_at;         /* counts all that are listed */
    struct sp_coherence *owner; /* the command's */
    struct sp_range_use *next_change;
    struct sp_range_use **change_link; /* what points to this one */
    struct sp_copy *promised;          /* of what it will have changed (copies.c) */
    struct sp_waiter *waiters;         /* commands that need what it writes */
    struct sp_copy *promise; /* what brings it, where that was promised; with a reference */
};

/* In sp_coherence.shortages_before: all that ever were count for the command. */
#define SP_ALL_SHORTAGES 1u

/* Commands that one can follow without that they have ended. */
#define SP_MAX_FOLLOWED 4u

/* What one command uses, and how far its start has come. Zeroed at first, but for `work`. */
struct sp_coherence {
    struct sp_range_use *ranges; /* owned */
    unsigned count, capacity;
    uint32_t agent;
    /* Waits for its bindings, and for the copies that the agent itself makes, too: its work relies
     * on nothing that is under way */
    bool is_strict;
    bool reaches_home;       /* its work may reach regions of the home path that it does not name */
    bool is_migration;       /* the application says where it wants the ranges */
    bool is_map;             /* the host changes the ranges after the end, until it unmaps them */
    unsigned next;           /* the range to acquire next */
    atomic_uint waiting_for; /* copies that must end first, plus one while the start goes on */
    atomic_int error;        /* 0 or the first error */
    /* While it waits for room on the agent (bindings.c). */
    struct sp_arena *arena;
    struct sp_line_place line;
    int pin_error;
    uint64_t shortages_before; /* when it first began: of any device's memory (bindings.c) */
    /* Bindings that were asked for before it began, or left the line (sp_binding.asked) */
    uint64_t asked_before;
    atomic_bool binds_again; /* one of those has failed that it waited for */
    uint32_t agents;         /* bit a: it needs agent a's memory */
    bool has_run;            /* its work has ended well, whatever became of what it wrote */
    uint32_t after; /* SP_BESIDE_: copies that the agent itself makes, and that the command has to
                       come after */
    /* The command's, set by the caller before it begins; for the host it may be NULL. Begin sets
     * `life`, that of the agent's device in which the ranges are bound. It has the command's
     * fences, whose life docs/ahead.md has. While a range is listed, others read `life` and `fence`
     * under the region's lock. */
    struct sp_work *work;
    /* Begun while commands that it comes after are still under way: the first num_followed fences
     * of work->after are those commands' ends, the rest are copies. */
    unsigned num_followed;
    uint32_t failures_seen, failures_life; /* of the agent's device (sp_coherence_note_failures) */
    uint64_t began_at;                     /* what is listed later is nothing that it comes after */
    atomic_bool is_handed; /* to its device, or is about to be. Relaxed: who comes after it was
                              told of that */
    /* Called exactly once after begin, when all is current or `error` says why not. No lock is
     * held. */
    void (*ready)(struct sp_coherence *coherence);
};

/* Adds a range: `bytes` from `address` on, or with bytes 0 the whole region that holds it. What is
 * not in a region of the arena needs nothing and is ignored. -ENOMEM. */
int sp_coherence_touch(struct sp_coherence *coherence, struct sp_arena *arena, const void *address,
                       size_t bytes, enum sp_access access);

/* What was known of works that failed on the device (sp_device.failures), where the command is to
 * run: to be called before the caller looks at anything that the command's work relies on by its
 * place in the device's order, other commands above all. Without it the work counts as one that
 * relies on nothing. */
static inline void sp_coherence_note_failures(struct sp_coherence *coherence,
                                              const struct sp_device *device)
{
    coherence->failures_life = atomic_load_explicit(&device->life, memory_order_acquire);
    coherence->failures_seen = atomic_load_explicit(&device->failures, memory_order_acquire);
}

/* Makes all ranges current on `agent` (and, with reaches_home, all regions of the arena's home path
 * reachable there), then calls ready: at once, or later on a thread of a device. For an agent that
 * is a device, copies that it makes itself may still be under way: its works come after them. */
void sp_coherence_begin(struct sp_coherence *coherence, struct sp_arena *arena, uint32_t agent);

/* Whether commands can begin while others on other devices are under way that they come after:
 * there are two devices that know fences, and nobody switched it off (SAMEPAGE_AHEAD=0). */
bool sp_coherence_is_ahead_on(void);

/* Before begin: whether this command can. */
bool sp_coherence_may_be_ahead(const struct sp_coherence *coherence);

/* Before begin: the command comes after one whose work has this fence, and which was submitted. Its
 * work waits for it, with a reference of its own. SP_MAX_AFTER - 1 of them at most, since a promise
 * waits for one more. sp_coherence_unfollow undoes all of these. */
void sp_coherence_follow(struct sp_coherence *coherence, sp_fence fence);
void sp_coherence_unfollow(struct sp_coherence *coherence);

/* A fence for a work of that agent, with a reference, or 0. */
sp_fence sp_fence_take(uint32_t agent);

/* Drops the fences of a work, which are its own and those that it waits for. The driver does not
 * have it, and nobody else can look at them any more. */
void sp_fences_drop(struct sp_work *work);

/* The work of a command was cancelled, or not submitted because something that it needed was: it is
 * as before begin, holds nothing, and begin may be called again. -EIO where it is not to be done
 * again, because what it reads could not be copied from a device that has died. */
int sp_coherence_restart(struct sp_coherence *coherence);

/* Begins to move what the command will read to `agent`, which is a device, ahead of its start:
 * where there is room, and nobody is going to change it. Before sp_coherence_begin, which then
 * finds it there. */
void sp_coherence_prefetch(const struct sp_coherence *coherence, uint32_t agent);

/* The host wrote `bytes` bytes from `address` on outside of any command: a region's first content.
 * Nothing in an arena that is not shared. */
void sp_region_written(struct sp_arena *arena, const void *address, size_t bytes);

/* From ready on: what the command's work may run beside (sp_work.beside). */
static inline uint32_t sp_coherence_beside(const struct sp_coherence *coherence)
{
    return (SP_BESIDE_ARRIVALS | SP_BESIDE_DEPARTURES) & ~coherence->after;
}

/* From ready on: what the command's work has to say of failures (sp_work.failures_seen). What was
 * known of another life is nothing that is known of this one: then the work is cancelled. */
static inline uint32_t sp_coherence_failures_seen(const struct sp_coherence *coherence)
{
    if (coherence->is_strict || !coherence->failures_seen)
        return 0;
    return coherence->failures_life == coherence->work->life ? coherence->failures_seen
                                                             : UINT32_MAX;
}

/* The command's work has ended with `error` (0: well): what that means for the command. -EIO where
 * it wrote to the memory of another device that has died since. */
int sp_coherence_outcome(struct sp_coherence *coherence, int error);

/* The command has ended (is_done: well, so what it was to change is changed), or was never begun.
 * Before anybody is told of the end. Afterwards `coherence` is as zeroed. */
void sp_coherence_end(struct sp_coherence *coherence, bool is_done);

/* How much memory the host has: what a command of the host needs of one range of a pooled region
 * must fit into that. Before the first use; as good as endless without. */
void sp_coherence_set_host_bytes(uint64_t bytes);

/* Takes a span off every device. Called by the heap when none of its regions is used, with no lock
 * held. */
void sp_coherence_unbind(struct sp_span *span);

/* Who is told of a device's death: begin, a range for each that was on that device alone, end. May
 * be called with the list of arenas locked and a region's lock held: they note what they have to
 * say. */
struct sp_loss_reports {
    void (*begin)(struct sp_device *device, const char *reason);
    void (*range)(struct sp_region *region, uint64_t first, uint64_t end, struct sp_device *device);
    void (*end)(struct sp_device *device);
};

/* `reports` must stay; NULL: nobody. */
void sp_coherence_set_loss_reports(const struct sp_loss_reports *reports);

#endif
