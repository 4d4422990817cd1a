/* Commands that move bytes, as buffers and SVM share them: checking a queue and a pattern, and
 * filling in the work of a copy or a fill. No state, no lock.
 */
#ifndef SP_API_TRANSFER_H
#define SP_API_TRANSFER_H

#include <CL/cl.h>

#include "runtime/command.h"

/* Makes the command copy; nothing where there is nothing to copy, or where source and destination
 * are the same memory (a buffer over the application's own). */
void sp_command_copy(struct sp_command *command, void *dst, const void *src, size_t bytes);

/* Makes the command fill; the pattern was checked and is copied. */
void sp_command_fill(struct sp_command *command, void *dst, size_t bytes, const void *pattern,
                     size_t pattern_bytes);

/* The specification's rules for a fill of `bytes` bytes at `start`, an offset or an address:
 * CL_INVALID_VALUE. */
cl_int sp_pattern_check(const void *pattern, size_t pattern_bytes, uintptr_t start, size_t bytes);

/* Lets a command without work bring `bytes` bytes from `address` on (0: the whole region) to its
 * queue's device, or to the host. */
void sp_command_migrate(struct sp_command *command, const void *address, size_t bytes,
                        cl_mem_migration_flags flags);

/* What the host is going to do with memory mapped so. */
enum sp_access sp_map_access(cl_map_flags flags);

/* The rules for map flags: CL_INVALID_VALUE. */
cl_int sp_map_flags_check(cl_map_flags flags);

/* The rules for migration flags: CL_INVALID_VALUE. */
cl_int sp_migration_flags_check(cl_mem_migration_flags flags);

#endif
