/* The virtual backend's own seam: a device whose kernels run on CPU threads and whose memory is a
 * memory file, or buffers, that only it binds at the shared addresses.
 *
 * virtual.c   kernels, copies and fills through the CPU driver
 * memory.c    what is bound where, and the ends of transfers
 * peers.c     the memory of other devices, at aliases
 * loose.c     commands in another order, for tests
 * fails.c     commands that fail, for tests
 * reach.c     what a kernel may reach, in the checking mode
 */
#ifndef SP_DEVICE_PROCESS_VIRTUAL_H
#define SP_DEVICE_PROCESS_VIRTUAL_H

#include "device/process/backend.h"

/* virtual.c: runs a command to its end, and tells that. The loop thread. */
void sp_virtual_run(const struct sp_command *command, void *code);

/* loose.c; the loop thread. take: true where the command will be run later. The others are as in
 * backend.h, and cost nothing where it is not switched on. */
void sp_virtual_loose_init(void);
bool sp_virtual_loose_take(const struct sp_command *command, void *code);
bool sp_virtual_loose_progress(bool has_more);
void sp_virtual_loose_rest(void);

/* fails.c; the loop thread. Whether the command is to fail, with -ENOMEM, in place of being done.
 * `ordinal`: which of the virtual devices this is. */
void sp_virtual_fails_init(uint32_t ordinal);
bool sp_virtual_fails(const struct sp_command *command);

/* How many of the granules that the device says it has it really has. */
uint64_t sp_virtual_fails_beyond(uint64_t granules);

/* memory.c; only on the loop thread. */

/* 0, with the device's memory file or -1, or a negative errno. */
int sp_virtual_memory_init(const struct sp_backend_setup *setup, int *memory_file);

/* 0; -ENOMEM beyond the device's memory; -EINVAL for what are no whole granules of the window. */
int sp_virtual_memory_bind(uint64_t start, uint64_t bytes, bool is_home);

/* The same, to the memory that another device has bound there, and which is no part of this one's.
 * Also the errors of sp_process_await_peer. */
int sp_virtual_memory_bind_peer(const struct sp_command *command);
int sp_virtual_memory_unbind(uint64_t start, uint64_t bytes);

/* Granules of the window: [*first, *end) are those that [address, address + bytes) touches; false
 * where that is not inside the window. */
bool sp_virtual_granules(uint64_t address, uint64_t bytes, uint64_t *first, uint64_t *end);

/* The same, and false too where they are not whole ones, or none. */
bool sp_virtual_whole_granules(uint64_t start, uint64_t bytes, uint64_t *first, uint64_t *end);

/* Whether all of [address, address + bytes) is bound. */
bool sp_virtual_memory_is_bound(uint64_t address, uint64_t bytes);

/* The two ends of a transfer, in aliases, until end_use. 0; -EFAULT where this device's end has no
 * private backing; -EIO where the other device has lost that memory; -ENODEV where it cannot be
 * reached; -EINVAL. After an error nothing is in use. */
int sp_virtual_memory_ends(const struct sp_command *transfer, void **dst, const void **src);
void sp_virtual_memory_end_use(const struct sp_command *transfer);

/* reach.c; the loop thread. */

int sp_virtual_reach_init(const struct sp_backend_setup *setup);

/* Granules below `end` may be bound. */
void sp_virtual_reach_bound(uint64_t end);

/* The kernel with this ticket may reach the granules of the range. 0, -EINVAL, -ENOMEM. */
int sp_virtual_reach_declare(uint64_t start, uint64_t bytes, uint64_t ticket);

/* From now on only what was declared under `ticket` is accessible; and all again. Returns the first
 * address that was touched though it was not declared, or 0; the ticket is used up. */
void sp_virtual_reach_limit(uint64_t ticket);
uint64_t sp_virtual_reach_unlimit(uint64_t ticket);

/* In the handler of a fault at `address`: true where that was such a touch, which can now be made
 * again. */
bool sp_virtual_reach_reveal(uint64_t address);

/* peers.c */

void sp_virtual_peers_init(const struct sp_backend_setup *setup);

/* backend.h; the control thread. */
void sp_virtual_peer(uint32_t index, uint32_t generation, int file);
void sp_virtual_peer_part(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes,
                          int file);
void sp_virtual_peer_part_gone(uint32_t index, uint32_t generation, uint64_t start, uint64_t bytes);

/* Takes a peer's memory into use for a transfer from there: *alias is where the window begins. The
 * errors of sp_virtual_memory_ends. The loop thread. */
int sp_virtual_peer_use(const struct sp_command *transfer, unsigned char **alias);
void sp_virtual_peer_end_use(const struct sp_command *transfer);

/* Maps the peer's memory at the range's own addresses. 0, -ENOMEM, or an error of
 * sp_virtual_memory_ends; then something may be mapped. The loop thread. */
int sp_virtual_peer_map(const struct sp_command *command);

#endif
