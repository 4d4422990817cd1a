/* What one kind of device implements inside its device process: the only thing that the process's
 * own code (main.c, loop.c) knows of it. A backend knows nothing of rings, sockets or the
 * application.
 *
 * Threads: start is called first, alone. load, unload and what tells of peers are called by the
 * control thread; submit and progress by the loop thread; so a backend locks what those two share.
 * No work that uses a code is there when it is unloaded.
 *
 * Memory for peers is one file for all of the device's memory (start), or one for each binding
 * (sp_process_export).
 */
#ifndef SP_DEVICE_PROCESS_BACKEND_H
#define SP_DEVICE_PROCESS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/kernel_info.h"
#include "device/process/protocol.h"

/* Memory that comes in buffers which can be mapped, one for each binding. The loop thread. */
struct sp_buffers {
    /* A zeroed buffer of whole granules, a number for it other than 0, and a file that stands for
     * it and is the caller's. 0 or a negative errno: -ENOMEM where there is no more memory. */
    int (*create)(uint64_t bytes, uint32_t *buffer, int *file);

    /* What is still mapped, or open as a file, stays whole. */
    void (*destroy)(uint32_t buffer);

    uint64_t max_bytes; /* of one buffer: whole granules */
};

/* What a backend works with; lives as long as the process. */
struct sp_backend_setup {
    unsigned char *window; /* the shared addresses: reserved here, and inaccessible until bound */
    size_t window_bytes;
    int host_file;                       /* byte n is byte n of the window: the host's pages */
    unsigned char *host;                 /* all of it, mapped elsewhere */
    uint64_t memory_bytes;               /* what may be bound to memory of the device at a time */
    uint32_t threads;                    /* 0: as many as there are processors */
    uint32_t ordinal;                    /* which of the devices of this kind */
    uint64_t atomic_start, atomic_bytes; /* the part of the window for atomics of all agents */
    struct sp_unit_slot *unit; /* SP_UNIT_SLOTS of the atomic unit, on pages of their own, served
                                  by the application while a kernel with SP_COMMAND_ATOMICS is
                                  under way */
    const struct sp_buffers *buffers; /* where the memory comes from; NULL: as the backend likes */
};

struct sp_backend {
    const char *name;

    /* Reserves the window's addresses, called before all else where a library of the backend's must
     * be the one to do it: -EADDRNOTAVAIL where others lie there, or another negative errno, from
     * sp_process_refuse. NULL: main.c reserves them. */
    int (*reserve)(uintptr_t start, size_t bytes);

    /* Makes the device ready. *memory_file: the device's memory for its peers, byte n for byte n of
     * the window; -1 where peers cannot reach it so. *description: what the device is, where the
     * application cannot know. 0 or a negative errno, from sp_process_refuse where there is more to
     * say than its name: then the process ends. */
    int (*start)(const struct sp_backend_setup *setup, int *memory_file,
                 struct sp_device_description *description);

    /* Loads what samepage-cc made. `image` is only there during the call; `info` and `codes` stay
     * until unload. *log, NULL before: what the device's compiler said, to be freed. 0 or a
     * negative errno. */
    int (*load)(const void *image, size_t bytes, const struct sp_program_info *info,
                const struct sp_kernel_code *codes, uint32_t num_codes, char **log, void **code);
    void (*unload)(void *code);

    /* Another device's process, the newest of device `index`, with its memory file, which is now
     * the backend's; -1 where it exports its memory in parts. What was known of the processes
     * before can be forgotten, when no transfer uses it any more. Never fails here; a transfer from
     * there does, where it cannot be reached. */
    void (*peer)(uint32_t index, uint32_t generation, int file);

    /* A part of the memory of that process, which was fetched (sp_process_fetch_part): byte 0 of
     * the file, now the backend's, is the window's address `start`. And any part, fetched or not,
     * is gone: what a transfer uses stays until its end. Whole granules. NULL: parts cannot be
     * reached. */
    void (*peer_part)(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                      int file);
    void (*peer_part_gone)(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes);

    /* Begins one command; `code` is that of kernels and INIT_GLOBALS, else NULL. Commands take
     * effect in the order of these calls, but for those that may run beside one another
     * (SP_COMMAND_BESIDE_). sp_process_began and sp_process_ended are called for each, here or in
     * progress. `command` is only there during the call. */
    void (*submit)(const struct sp_command *command, void *code);

    /* In the handler of a fault at `address`, on a thread that runs a kernel: true where the access
     * can be made again, for it was only kept from the kernel (DECLARE). NULL: the backend keeps
     * nothing from kernels. */
    bool (*reveal)(uint64_t address);

    /* Sees to commands under way: false when there are none. `has_more`: another command comes at
     * once. NULL where submit ends them all. */
    bool (*progress)(bool has_more);

    /* Commands have been under way for a while without an end, and the loop is about to sleep: from
     * now on sp_process_wake is to be called when progress has something to do. NULL as progress.
     */
    void (*rest)(void);
};

extern const struct sp_backend sp_virtual_backend;
extern const struct sp_backend sp_cuda_backend;

/* What reserve or start return where the device cannot be used: `error`, which is -ENOTSUP where
 * that is the device's own nature, and no matter of what else is there. What was wrong, with which
 * value, and what is needed or can be done, is kept for people: a clause that follows "cannot be
 * used: ". The first counts. */
__attribute__((format(printf, 2, 3))) int sp_process_refuse(int error, const char *format, ...);

/* What a backend tells, on the loop thread. `is_quick`: the end follows within microseconds, so
 * that the application need not be woken twice. */
void sp_process_began(const struct sp_command *command, bool is_quick);

/* While it serves a BIND, before its end: peers can reach that memory through `file`, which stays
 * the backend's (its kind is what the backends agree on: a file that can be mapped, or a handle of
 * a vendor). Whole granules that are not exported. Costs nothing until a peer fetches the part.
 * Never fails: at worst peers cannot reach it. */
void sp_process_export(uint64_t start, uint64_t bytes, int file);

/* Before the end of what takes memory away: all exported parts in the range, which cuts none, are
 * gone. Nothing where there are none. */
void sp_process_unexport(uint64_t start, uint64_t bytes);

/* Before a transfer from another device, or a binding of its memory: waits until this process knows
 * all that it must of the memory there: no part that the backend has is an old one, and peer_part
 * was called for all that the range needs. 0; -ENODEV where there is no such device, or part; -EIO
 * where that memory is gone for good; -ETIMEDOUT. All can be replaced when this returns:
 * `generation` tells. */
int sp_process_await_peer(const struct sp_command *transfer);

/* The backend has given up what peer_part gave it there: it is fetched again when it is needed. */
void sp_process_forget_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes);

/* Before the end of a kernel with a ticket: the first address that it touched undeclared, or 0. */
void sp_process_undeclared(uint64_t address);

/* Lets the loop call progress. Any thread. */
void sp_process_wake(void);

/* What went wrong with a command, for people: the rest of a sentence that begins with the device's
 * name. The first SP_MAX_COMPLAINTS are told. The loop thread. */
void sp_process_complain(const char *words);

/* The device can do nothing more: ends the process, with a sentence for the application that says
 * why, and the command that was to blame (0: not known). */
_Noreturn void sp_process_fault(uint64_t number, const char *reason);

/* A command that others may rely on by their place alone (sp_command_is_relied_on) has failed, or
 * will be told of as failed: those behind it are cancelled from now on, until the application has
 * been told. Before its end is told; a second time changes nothing. */
void sp_process_failed(uint64_t number);

/* Whether the command is to end with -ECANCELED, untouched: something has failed that it may rely
 * on. A backend asks before the command takes effect, when it is known of all in front of it
 * whether they fail; and tells the end behind theirs, as far as they are of one kind. */
bool sp_process_is_stale(const struct sp_command *command);

/* The end of such a command, where nothing in front of it is still to be told. */
void sp_process_cancel(const struct sp_command *command);

/* The times matter where the command is timed. */
void sp_process_ended(uint64_t number, int error, uint64_t start_ns, uint64_t end_ns);

#endif
