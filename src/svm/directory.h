/* The directory of one region: who holds which bytes, and what must be copied before a use.
 *
 * A sorted list of runs, each an address range with one MOESI state for each agent
 * (docs/directory.md has the states, the protocol, and the rules that callers keep while transfers
 * are on their way). Pure: it copies nothing, knows no addresses but offsets into the region, calls
 * nobody. It has no lock of its own: the region's lock is held by whoever calls. Cost: a binary
 * search, the runs that a range touches, and, where their number changes, one memmove of the runs
 * behind it.
 */
#ifndef SP_SVM_DIRECTORY_H
#define SP_SVM_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Agents are numbered from 0; 0 is the host. Their states, 4 bits each, are one word. */
#define SP_MAX_AGENTS 16u
#define SP_AGENT_HOST 0u

enum sp_moesi {
    SP_INVALID = 0,
    SP_SHARED = 1,
    SP_EXCLUSIVE = 2,
    SP_OWNED = 3,
    SP_MODIFIED = 4,
};

/* How a range is going to be used. */
enum sp_access {
    SP_ACCESS_READ = 1,       /* what is there must be current */
    SP_ACCESS_READ_WRITE = 2, /* the same, and it is going to be changed */
    SP_ACCESS_DISCARD = 3,    /* it is going to be written before it is read: nothing moves */
};

/* One copy that the directory asks for, in bytes from the region's start. */
struct sp_transfer {
    uint64_t first, end;
    uint32_t source, destination; /* agents */
};

/* A growing list of transfers, reused from call to call; all zero at first, emptied by count = 0.
 */
struct sp_transfers {
    struct sp_transfer *list; /* owned */
    size_t count, capacity;
    uint64_t asked[SP_MAX_AGENTS]; /* bytes in the list for each source; valid while count > 0 */
};

void sp_transfers_finish(struct sp_transfers *transfers);

/* How near two agents are: the source with the least distance is chosen; ties go to the one with
 * the least load (bytes of the transfers asked for so far in this list), then to the lowest number.
 * It is asked where more than one agent has a copy. */
typedef uint32_t sp_distance(void *data, uint32_t source, uint32_t destination);

struct sp_run {
    uint64_t first;  /* it ends where the next one begins */
    uint64_t states; /* agent a: bits 4a to 4a + 3 */
};

/* The first run is stored in place: most regions have just one. */
struct sp_directory {
    uint64_t bytes;    /* of the region */
    uint32_t count;    /* runs, at least 1 */
    uint32_t capacity; /* of `runs`; 0: the run is `single` */
    union {
        struct sp_run single;
        struct sp_run *runs; /* owned */
    };
};

/* Nobody holds anything. bytes > 0. */
void sp_directory_init(struct sp_directory *directory, uint64_t bytes);
void sp_directory_finish(struct sp_directory *directory);

/* Prepares a use of [first, end) by `agent`: appends the transfers that must be done before it, and
 * updates the states as if they were done. Those of this call are in order of address, and merged
 * where they touch and have the same source; with earlier ones in the list, which may be of other
 * regions, they are not. distance may be NULL (all are equally near). -ENOMEM: nothing has changed,
 * and no transfer was appended. */
int sp_directory_acquire(struct sp_directory *directory, uint64_t first, uint64_t end,
                         uint32_t agent, enum sp_access access, sp_distance *distance, void *data,
                         struct sp_transfers *transfers);

/* `agent` wrote [first, end) though it was acquired for reading or not at all (pages that the host
 * was found to have written): it becomes the only holder. -ENOMEM: nothing has changed. */
int sp_directory_written(struct sp_directory *directory, uint64_t first, uint64_t end,
                         uint32_t agent);

/* Takes a copy away without writing it back: `agent` becomes invalid in [first, end). Content that
 * only it held is forgotten, and nobody is told. -ENOMEM: nothing has changed. */
int sp_directory_forget(struct sp_directory *directory, uint64_t first, uint64_t end,
                        uint32_t agent);

/* Whether somebody has each byte of [first, end). */
bool sp_directory_is_held(const struct sp_directory *directory, uint64_t first, uint64_t end);

/* What `agent` has in [first, end) may be damaged: it becomes invalid where others have a copy.
 * -ENOMEM: nothing has changed. */
int sp_directory_distrust(struct sp_directory *directory, uint64_t first, uint64_t end,
                          uint32_t agent);

/* Transfers that bring to `to` what only `agent` holds in [first, end); then `agent` is invalid
 * there. -ENOMEM: nothing has changed, and no transfer was appended. */
int sp_directory_evict(struct sp_directory *directory, uint64_t first, uint64_t end, uint32_t agent,
                       uint32_t to, struct sp_transfers *transfers);

/* `agent` died. Calls `lost` (may be NULL) for each range that it alone held, in order of address
 * and as large as can be; all else stays with the others. `lost` must leave the directory alone.
 * Never fails: runs are only changed and merged, never split. */
void sp_directory_drop(struct sp_directory *directory, uint32_t agent,
                       void (*lost)(void *data, uint64_t first, uint64_t end), void *data_of_lost);

/* The state of `agent` at `offset`. */
enum sp_moesi sp_directory_state(const struct sp_directory *directory, uint64_t offset,
                                 uint32_t agent);

/* Whether `agent` holds a current copy of all of [first, end) that anyone has written. */
bool sp_directory_is_current(const struct sp_directory *directory, uint64_t first, uint64_t end,
                             uint32_t agent);

/* `distance` says this of a source that the destination cannot copy from at all. */
#define SP_OUT_OF_REACH UINT32_MAX

/* Whether `agent` has the only current copy of some of [first, end). */
bool sp_directory_is_alone(const struct sp_directory *directory, uint64_t first, uint64_t end,
                           uint32_t agent);

/* The next part of [*first, *end) that `agent` needs and that only agents have which are out of its
 * reach: true, and its ends. It must come by way of another agent. */
bool sp_directory_out_of_reach(const struct sp_directory *directory, uint64_t *first, uint64_t *end,
                               uint32_t agent, sp_distance *distance, void *data);

/* The next part of [*first, *end) that nobody has: true, and its ends. */
bool sp_directory_unheld(const struct sp_directory *directory, uint64_t *first, uint64_t *end);

/* How many runs [first, end) touches: no acquire of it asks for more transfers. */
size_t sp_directory_runs_in(const struct sp_directory *directory, uint64_t first, uint64_t end);

#endif
