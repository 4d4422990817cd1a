/* See transfer.h. */
#include "api/transfer.h"

#include <string.h>

#include "api/range.h"

void sp_command_copy(struct sp_command *command, void *dst, const void *src, size_t bytes)
{
    command->has_work = bytes != 0 && dst != src;
    command->work.kind = SP_WORK_COPY;
    command->work.copy.dst = dst;
    command->work.copy.src = src;
    command->work.copy.bytes = bytes;
    if (command->has_work) {
        sp_command_touch(command, src, bytes, SP_ACCESS_READ);
        sp_command_touch(command, dst, bytes, SP_ACCESS_DISCARD);
    }
}

void sp_command_fill(struct sp_command *command, void *dst, size_t bytes, const void *pattern,
                     size_t pattern_bytes)
{
    command->has_work = bytes != 0;
    command->work.kind = SP_WORK_FILL;
    command->work.fill.dst = dst;
    command->work.fill.bytes = bytes;
    command->work.fill.pattern_bytes = pattern_bytes;
    memcpy(command->work.fill.pattern, pattern, pattern_bytes);
    if (command->has_work)
        sp_command_touch(command, dst, bytes, SP_ACCESS_DISCARD);
}

cl_int sp_pattern_check(const void *pattern, size_t pattern_bytes, uintptr_t start, size_t bytes)
{
    if (!pattern || !sp_is_power_of_two(pattern_bytes) || pattern_bytes > SP_MAX_PATTERN_BYTES)
        return CL_INVALID_VALUE;
    return start % pattern_bytes || bytes % pattern_bytes ? CL_INVALID_VALUE : CL_SUCCESS;
}

cl_int sp_map_flags_check(cl_map_flags flags)
{
    const cl_map_flags shared = CL_MAP_READ | CL_MAP_WRITE;
    if (flags & ~(shared | CL_MAP_WRITE_INVALIDATE_REGION))
        return CL_INVALID_VALUE;
    return flags & CL_MAP_WRITE_INVALIDATE_REGION && flags & shared ? CL_INVALID_VALUE : CL_SUCCESS;
}

void sp_command_migrate(struct sp_command *command, const void *address, size_t bytes,
                        cl_mem_migration_flags flags)
{
    command->is_for_host = flags & CL_MIGRATE_MEM_OBJECT_HOST;
    sp_command_touch(command, address, bytes,
                     flags & CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED ? SP_ACCESS_DISCARD
                                                                     : SP_ACCESS_READ);
}

enum sp_access sp_map_access(cl_map_flags flags)
{
    if (flags & CL_MAP_WRITE_INVALIDATE_REGION)
        return SP_ACCESS_DISCARD;
    return flags & CL_MAP_WRITE ? SP_ACCESS_READ_WRITE : SP_ACCESS_READ;
}

cl_int sp_migration_flags_check(cl_mem_migration_flags flags)
{
    const cl_mem_migration_flags known =
        CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
    return flags & ~known ? CL_INVALID_VALUE : CL_SUCCESS;
}
