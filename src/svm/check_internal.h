/* What the checking mode's files share: check.c (regions, touches, what was freed), check_use.c
 * (commands and maps) and check_forgive.c (mapping on touch). Nobody else includes this.
 *
 * All of it is under sp_check_lock.
 */
#ifndef SP_SVM_CHECK_INTERNAL_H
#define SP_SVM_CHECK_INTERNAL_H

#include <pthread.h>

#include "svm/check.h"
#include "svm/check_watch.h"
#include "svm/coherence.h"
#include "svm/region.h"

/* A map of the host's, in force. */
struct check_map {
    struct check_map *next;
    uint64_t first, end; /* bytes of the region */
    bool may_write;
};

/* One range that a command under way uses. */
struct check_use {
    struct check_use *next; /* of the region */
    struct sp_check_command *command;
    struct sp_region *region; /* the command holds a use of it */
    uint64_t first, end;
    bool is_read, is_write; /* for sure; neither: it might be */
    bool is_undeclared;     /* what might be reached by pointers (forgive) */
    bool is_contended;      /* undeclared, and somebody else used the region meanwhile */
};

struct sp_check_command {
    struct sp_check_command *next, *previous; /* of all under way, newest first */
    struct sp_finding_actor actor;
    uint32_t agent;
    bool has_work;
    bool is_map; /* neither: it only moves data */
    unsigned count;
    struct check_use uses[];
};

struct sp_check_region {
    struct sp_region *region;
    const void *allocated_at;
    bool is_freed; /* but still used by commands */
    const void *freed_at;
    /* Whole pages from the region's start on; 0: its accesses are not watched */
    size_t watched_bytes;
    struct check_map *maps;
    struct check_use *uses;
    unsigned allowed; /* commands that run in this process, and the library itself */
    bool is_open;     /* pages may be open for more than maps allow */
    bool has_new;     /* and some of a map may not be entered */
};

extern pthread_mutex_t sp_check_lock;

/* What the host may do with a page that holds byte `offset`, by its maps alone. */
enum check_right { CHECK_NOTHING, CHECK_READ, CHECK_WRITE };

/* Brings pages of [first, end) to what maps allow, which outside of them is nothing. `is_new`:
 * pages that are to be open may not be entered yet. Nothing while somebody is allowed. */
void sp_check_arrange(struct sp_check_region *check, uint64_t first, uint64_t end, bool is_new);

/* Out of memory it is not known any more who may touch the region: it is not watched from here on.
 */
void sp_check_give_up(struct sp_check_region *check);

/* The same for all of a region that may be open. */
void sp_check_rearm(struct sp_check_region *check);

/* Fills in what findings say of a region. */
void sp_check_describe_region(struct sp_finding_region *described, const struct sp_region *region);

/* The region, or the region that was, which holds `address`; false: there is none. */
bool sp_check_describe_address(struct sp_finding_region *described, uintptr_t address,
                               bool *was_freed);

/* Names the kernel that runs in this process now, the newest of several: what touched may be one.
 * Or nothing. */
void sp_check_name_host_kernel(struct sp_finding_actor *actor);

/* Tells; true: the process is to stop. */
bool sp_check_tell(const struct sp_finding *finding);

/* check_forgive.c: makes a chunk of the region current for the host and opens it, at once or later.
 * Called without the lock. */
void sp_check_forgive(struct sp_arena *arena, const struct sp_touch *touch);

#endif
