/* What one kind of device implements inside its device process: the only thing that the process's
 * own code (main.c, loop.c) knows of it. A backend knows nothing of rings, sockets or the
 * application.
 *
 * Threads: start is called first, alone. load, unload and peer are called by the control thread;
 * submit and progress by the loop thread; so a backend locks what those two share. No work that
 * uses a code is there when it is unloaded.
 */
#ifndef SP_DEVICE_PROCESS_BACKEND_H
#define SP_DEVICE_PROCESS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/kernel_info.h"
#include "device/process/protocol.h"

/* What a backend works with; lives as long as the process. */
struct sp_backend_setup {
    unsigned char *window; /* the shared addresses: reserved here, and inaccessible until bound */
    size_t window_bytes;
    int host_file;         /* byte n is byte n of the window: the host's pages */
    unsigned char *host;   /* all of it, mapped elsewhere */
    uint64_t memory_bytes; /* what may be bound to memory of the device at a time */
    uint32_t threads;      /* 0: as many as there are processors */
};

struct sp_backend {
    const char *name;

    /* Makes the device ready. *memory_file: the device's memory for its peers, byte n for byte n of
     * the window; -1 where peers cannot reach it so. 0 or a negative errno: then the process ends.
     */
    int (*start)(const struct sp_backend_setup *setup, int *memory_file);

    /* Loads what samepage-cc made. `image` is only there during the call; `info` and `codes` stay
     * until unload. 0 or a negative errno. */
    int (*load)(const void *image, size_t bytes, const struct sp_program_info *info,
                const struct sp_kernel_code *codes, uint32_t num_codes, void **code);
    void (*unload)(void *code);

    /* Another device's memory file, now the backend's: the newest of device `index`. Never fails
     * here; a transfer from there does, where it cannot be reached. */
    void (*peer)(uint32_t index, uint32_t generation, int file);

    /* Begins one command; `code` is that of kernels and INIT_GLOBALS, else NULL. Commands take
     * effect in the order of these calls. sp_process_began and sp_process_ended are called for
     * each, here or in progress. `command` is only there during the call. */
    void (*submit)(const struct sp_command *command, void *code);

    /* Sees to commands under way: false when there are none. NULL where submit ends them all. */
    bool (*progress)(void);
};

extern const struct sp_backend sp_virtual_backend;

/* What a backend tells, on the loop thread. `is_quick`: the end follows within microseconds, so
 * that the application need not be woken twice. */
void sp_process_began(const struct sp_command *command, bool is_quick);

/* The times matter where the command is timed. */
void sp_process_ended(uint64_t number, int error, uint64_t start_ns, uint64_t end_ns);

#endif
