/* The virtual backend's own seam: a device whose kernels run on CPU threads and whose memory is a
 * memory file that only it binds at the shared addresses.
 *
 * virtual.c   kernels, copies and fills through the CPU driver
 * memory.c    what is bound where, and the aliases for transfers
 */
#ifndef SP_DEVICE_PROCESS_VIRTUAL_H
#define SP_DEVICE_PROCESS_VIRTUAL_H

#include "device/process/backend.h"

/* memory.c; all but peer only on the loop thread. */

/* 0, with the device's memory file, or a negative errno. */
int sp_virtual_memory_init(const struct sp_backend_setup *setup, int *memory_file);

void sp_virtual_memory_peer(uint32_t index, uint32_t generation, int file);

/* 0; -ENOMEM beyond the device's memory; -EINVAL for what are no whole granules of the window. */
int sp_virtual_memory_bind(uint64_t start, uint64_t bytes, bool is_home);
int sp_virtual_memory_unbind(uint64_t start, uint64_t bytes);

/* Whether all of [address, address + bytes) is bound. */
bool sp_virtual_memory_is_bound(uint64_t address, uint64_t bytes);

/* The two ends of a transfer, in aliases, until end_use. 0; -EFAULT where this device's end has no
 * private backing; -EIO where the other device has lost that memory; -ENODEV where it cannot be
 * reached; -EINVAL. After an error nothing is in use. */
int sp_virtual_memory_ends(const struct sp_command *transfer, void **dst, const void **src);
void sp_virtual_memory_end_use(const struct sp_command *transfer);

#endif
