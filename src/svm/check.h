/* The checking mode: finds what a program does with shared memory that it must not
 * (docs/checking-mode.md).
 *
 * SAMEPAGE_CHECK=1 reports, =abort stops at the first finding, =forgive makes careless programs
 * right instead. Off, every hook here costs the test of one constant. What was found is handed to
 * sp_check_found, which puts it into words.
 *
 * Names: a *touch* is an access by the host that was caught; memory is *open* while such an access
 * goes through, else *closed*.
 *
 * Locks: one of the mode's own, after an arena's and a region's, before the window's. None of its
 * functions may be called with a lock held that is taken while the application's memory is touched.
 */
#ifndef SP_SVM_CHECK_H
#define SP_SVM_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "svm/heap.h"

struct sp_check_command;
struct sp_coherence;
struct sp_device;
struct sp_region;
struct sp_span;
struct sp_work;

/* Set by sp_check_init, constant afterwards; false in a forked child. */
#define SP_CHECK_OWN __attribute__((visibility("hidden"))) /* read without an indirection */
extern bool sp_check_is_on SP_CHECK_OWN;
extern bool sp_check_forgives; /* only where it is on */
extern bool sp_check_aborts;   /* likewise */

/* --- Start ------------------------------------------------------------------------------------ */

/* Reads SAMEPAGE_CHECK, and starts to watch the host's accesses. Called once, before the first
 * arena. Never fails: what cannot be checked is said once, on standard error. */
void sp_check_init(void);

/* What can be watched here, in words, whether the mode is on or not: for people. */
const char *sp_check_ability(void);

/* --- The heap --------------------------------------------------------------------------------- */

/* How much room a region of `bytes` bytes takes that is to be checked: a span of its own, or whole
 * pages. */
size_t sp_check_room_for(size_t bytes);
static inline size_t sp_check_room(size_t bytes)
{
    return sp_check_is_on ? sp_check_room_for(bytes) : bytes;
}

/* A region of a shared arena was made: closed from now on. With no lock held. */
void sp_check_allocated(struct sp_region *region);

/* A span of a shared arena ends. True: its addresses are kept for a while, closed, and are given
 * back to the window later; the caller must not. With no lock held. */
bool sp_check_keep(struct sp_span *span);

/* The program has freed a region that commands still use; it ends with the last of them. With the
 * arena's lock held. */
void sp_check_freed_in_use(struct sp_region *region);

/* The program frees what is not allocated: told of where it was. With no lock held. */
void sp_check_freed_again(const void *address);

/* A region ends. With its arena's lock held, or none. */
void sp_check_region_ended(struct sp_region *region);

/* --- Commands --------------------------------------------------------------------------------- */

/* Who uses memory: for the reports. Strings live as long as the command is under way. */
struct sp_check_actor {
    const char *what;   /* "kernel", "copy", "map", ... */
    const char *kernel; /* its name, or NULL */
    const char *device;
    const void *site; /* where it was enqueued; NULL: not known */
};

/* A command is about to start: its ranges are known, and all that it waits for has ended. `agent`
 * is where it runs; `has_work`: it reads and writes what its ranges say. Before sp_coherence_begin,
 * with no lock held. NULL when out of memory: then it is not checked. */
struct sp_check_command *sp_check_begin(struct sp_coherence *coherence, uint32_t agent,
                                        const struct sp_check_actor *actor, bool has_work);

/* It has ended, and `coherence` still has its ranges; `opens`: they are mapped for the host from
 * now on. `undeclared`: an address that its kernel used though it was not declared, or 0. With no
 * lock held. */
void sp_check_end(struct sp_check_command *command, struct sp_coherence *coherence,
                  uintptr_t undeclared, bool opens);

/* The kernel `work` is about to be submitted to a device with memory of its own: says to that what
 * the kernel may reach. */
void sp_check_declare(const struct sp_coherence *coherence, struct sp_device *device,
                      struct sp_work *work);

/* A device with memory of its own may die; is told of before anybody else. After
 * sp_coherence_add_agent. */
void sp_check_add_agent(struct sp_device *device);

/* The host's map that began at byte `first` of the region has ended. With no lock held. */
void sp_check_unmapped(struct sp_region *region, uint64_t first);

/* The library itself is about to touch the region that holds `address` outside of any command, and
 * has done so. With no lock held. */
void sp_check_allow(const void *address);
void sp_check_disallow(const void *address);

/* --- Findings --------------------------------------------------------------------------------- */

enum sp_finding_kind {
    SP_FINDING_UNMAPPED,    /* the host touched memory that is not mapped */
    SP_FINDING_READ_ONLY,   /* the host wrote to memory that is mapped for reading */
    SP_FINDING_FREED,       /* the host, or a kernel, touched memory that was freed */
    SP_FINDING_FREED_AGAIN, /* the program freed memory that was freed */
    SP_FINDING_AT_ONCE,     /* two used the same bytes at once, and one wrote */
    SP_FINDING_UNDECLARED,  /* a kernel followed a pointer to memory that was not declared */
};

/* Words of the stack that are kept for finding the caller of what touched: a few frames of the C
 * library, which are larger than 2 KiB where a sanitizer stands before it. */
#define SP_CHECK_STACK_WORDS 1024u

/* How long the names in a finding may be. */
#define SP_CHECK_NAME_BYTES 96u

struct sp_finding_actor {
    char what[24], kernel[SP_CHECK_NAME_BYTES], device[SP_CHECK_NAME_BYTES]; /* "": none */
    const void *site;
};

/* A region as it is, or was. */
struct sp_finding_region {
    struct sp_arena *arena; /* for comparing only */
    uintptr_t start;
    size_t bytes;
    uint64_t flags;
    const void *allocated_at, *freed_at; /* code addresses; NULL: not known */
};

struct sp_finding {
    enum sp_finding_kind kind;
    bool is_write;
    uintptr_t address; /* that was used */
    struct sp_finding_region region;
    /* A touch by the host: the instruction, and the top of its thread's stack. */
    uintptr_t instruction; /* 0: none, or not known */
    pid_t thread;          /* who waits there; 0: nobody */
    unsigned num_words;
    uintptr_t stack[SP_CHECK_STACK_WORDS];
    /* Kernels and other commands: who did it; AT_ONCE: and who else. */
    struct sp_finding_actor actor, other;
    bool is_other_map; /* the other is the host, which has it mapped */
};

/* Called for each finding, which is only there during the call; may be called with the mode's lock
 * held, so it only takes note. True where nothing of the kind was told of before and the process is
 * to stop: who touched stays where it is. NULL: nobody cares. */
extern bool (*sp_check_found)(const struct sp_finding *finding);

#endif
