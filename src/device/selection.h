/* Which devices SAMEPAGE_DEVICES asks for.
 *
 *     SAMEPAGE_DEVICES=cpu,cuda,virtual:2,mem=256M
 *
 * A list of words separated by commas: `cpu`; `cuda`, all NVIDIA GPUs, or `cuda:N`, the one of that
 * number, in the order of their PCI addresses; `virtual` or `virtual:N`, so many of them; `mem=N`
 * (bytes, or K, M, G), `threads=N` and `parts` (a buffer for each allocation, exported alone, as
 * GPUs have it), which hold for the virtual devices before them that have no such word yet. What is
 * not understood is named on stderr and ignored. Without the variable: the CPU device and all
 * NVIDIA GPUs.
 */
#ifndef SP_DEVICE_SELECTION_H
#define SP_DEVICE_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

/* With the host, as many as there can be agents (SP_MAX_AGENTS). */
#define SP_MAX_CLIENT_DEVICES 15u

/* With the zero behind it: a driver of the kernel, or the path of a node. */
#define SP_MEMORY_NAME_BYTES 64u

struct sp_selected {
    uint64_t memory_bytes;             /* 0: not said */
    uint32_t threads;                  /* 0: not said */
    char memory[SP_MEMORY_NAME_BYTES]; /* "parts"; "drm=NAME"; "": not said */
};

struct sp_selection {
    bool has_cpu;
    bool has_all_cuda;
    uint32_t num_cuda; /* named by number, in that order */
    uint32_t cuda[SP_MAX_CLIENT_DEVICES];
    uint32_t num_virtual;
    struct sp_selected virtuals[SP_MAX_CLIENT_DEVICES];
};

/* Reads `text`; NULL or "" stands for the variable not being set. */
void sp_selection_parse(const char *text, struct sp_selection *selection);

/* What the environment said at the first call. Any thread. */
const struct sp_selection *sp_selection(void);

#endif
