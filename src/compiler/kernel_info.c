/* See kernel_info.h. The wire form is the members in order; arrays are preceded by their count.
 *
 * A decoded info lives in one arena: a list of blocks, the first of which holds the info itself.
 * Nothing in the bytes decides an allocation larger than the bytes themselves could fill: a count
 * is checked against the least that so many entries would take. */
#include "compiler/kernel_info.h"

#include "util/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The least bytes that an encoded argument or kernel takes: its fixed members. */
#define ARG_LEAST_BYTES 40u
#define KERNEL_LEAST_BYTES 68u

/* An argument block is at most this large: CL_DEVICE_MAX_PARAMETER_SIZE is far below. */
#define MAX_ARGS_BYTES (1u << 20)

struct block {
    struct block *next;
    max_align_t bytes[];
};

static void *arena_take(struct sp_program_info *info, size_t size)
{
    struct block *block = calloc(1, sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = info->arena;
    info->arena = block;
    return block->bytes;
}

static void put_arg(const struct sp_arg_info *arg, struct sp_wire_writer *writer)
{
    sp_wire_put_u32(writer, arg->kind);
    sp_wire_put_u32(writer, arg->size);
    sp_wire_put_u32(writer, arg->align);
    sp_wire_put_u32(writer, arg->offset);
    sp_wire_put_u32(writer, arg->type_qualifiers);
    sp_wire_put_u32(writer, arg->effect);
    sp_wire_put_string(writer, arg->name);
    sp_wire_put_string(writer, arg->type_name);
}

static void put_kernel(const struct sp_kernel_info *kernel, struct sp_wire_writer *writer)
{
    sp_wire_put_string(writer, kernel->name);
    sp_wire_put_string(writer, kernel->attributes);
    sp_wire_put_u32(writer, kernel->num_args);
    for (uint32_t i = 0; i < kernel->num_args; i++)
        put_arg(&kernel->args[i], writer);
    sp_wire_put_u32(writer, kernel->args_bytes);
    for (int d = 0; d < 3; d++)
        sp_wire_put_u32(writer, kernel->reqd_local_size[d]);
    for (int d = 0; d < 3; d++)
        sp_wire_put_u32(writer, kernel->hint_local_size[d]);
    sp_wire_put_u64(writer, kernel->local_static_bytes);
    sp_wire_put_u64(writer, kernel->private_bytes);
    sp_wire_put_u32(writer, (kernel->has_barrier ? 1u : 0) | (kernel->uses_globals ? 2u : 0) |
                                (kernel->follows_pointers ? 4u : 0) |
                                (kernel->writes_followed ? 8u : 0) |
                                (kernel->has_shared_atomics ? 16u : 0) |
                                (kernel->loops_over_private ? 32u : 0));
}

void sp_program_info_encode(const struct sp_program_info *info, struct sp_wire_writer *writer)
{
    sp_wire_put_u32(writer, info->num_kernels);
    for (uint32_t i = 0; i < info->num_kernels; i++)
        put_kernel(&info->kernels[i], writer);
    sp_wire_put_u64(writer, info->globals_bytes);
}

/* A string in the arena; 0, -EBADMSG or -ENOMEM. */
static int get_string(struct sp_program_info *info, struct sp_wire_reader *reader,
                      const char **string)
{
    size_t size;
    const char *bytes = sp_wire_get_bytes(reader, &size);
    if (reader->failed || (size && memchr(bytes, 0, size)))
        return -EBADMSG;
    char *copy = arena_take(info, size + 1);
    if (!copy)
        return -ENOMEM;
    if (size)
        memcpy(copy, bytes, size);
    *string = copy;
    return 0;
}

/* A count of entries that take at least `least` bytes each, and a zeroed array for them. */
static int get_array(struct sp_program_info *info, struct sp_wire_reader *reader, size_t least,
                     size_t entry_size, uint32_t *count, void **array)
{
    *count = sp_wire_get_u32(reader);
    if (reader->failed || *count > (reader->size - reader->position) / least) {
        *count = 0;
        return -EBADMSG;
    }
    *array = arena_take(info, entry_size * *count);
    return *array ? 0 : -ENOMEM;
}

static bool is_power_of_two(uint32_t value)
{
    return value && !(value & (value - 1));
}

static int get_arg(struct sp_program_info *info, struct sp_wire_reader *reader,
                   struct sp_arg_info *arg)
{
    uint32_t kind = sp_wire_get_u32(reader);
    arg->kind = (enum sp_arg_kind)kind;
    arg->size = sp_wire_get_u32(reader);
    arg->align = sp_wire_get_u32(reader);
    arg->offset = sp_wire_get_u32(reader);
    arg->type_qualifiers = sp_wire_get_u32(reader);
    arg->effect = sp_wire_get_u32(reader);
    int error = get_string(info, reader, &arg->name);
    if (!error)
        error = get_string(info, reader, &arg->type_name);
    if (error)
        return error;
    bool known =
        kind <= SP_ARG_LOCAL && is_power_of_two(arg->align) && arg->align <= 128 &&
        !(arg->offset & (arg->align - 1)) &&
        !(arg->type_qualifiers &
          ~(uint32_t)(SP_ARG_TYPE_CONST | SP_ARG_TYPE_RESTRICT | SP_ARG_TYPE_VOLATILE)) &&
        !(arg->effect & ~(uint32_t)(SP_EFFECT_READ | SP_EFFECT_WRITE | SP_EFFECT_UNKNOWN)) &&
        (kind == SP_ARG_VALUE || arg->size == 8);
    return known ? 0 : -EBADMSG;
}

static int get_kernel(struct sp_program_info *info, struct sp_wire_reader *reader,
                      struct sp_kernel_info *kernel)
{
    void *args = NULL;
    int error = get_string(info, reader, &kernel->name);
    if (!error)
        error = get_string(info, reader, &kernel->attributes);
    if (!error)
        error = get_array(info, reader, ARG_LEAST_BYTES, sizeof(*kernel->args), &kernel->num_args,
                          &args);
    kernel->args = args;
    for (uint32_t i = 0; !error && i < kernel->num_args; i++)
        error = get_arg(info, reader, &kernel->args[i]);
    if (error)
        return error;
    kernel->args_bytes = sp_wire_get_u32(reader);
    for (int d = 0; d < 3; d++)
        kernel->reqd_local_size[d] = sp_wire_get_u32(reader);
    for (int d = 0; d < 3; d++)
        kernel->hint_local_size[d] = sp_wire_get_u32(reader);
    kernel->local_static_bytes = sp_wire_get_u64(reader);
    kernel->private_bytes = sp_wire_get_u64(reader);
    uint32_t flags = sp_wire_get_u32(reader);
    kernel->has_barrier = flags & 1u;
    kernel->uses_globals = flags & 2u;
    kernel->follows_pointers = flags & 4u;
    kernel->writes_followed = flags & 8u;
    kernel->has_shared_atomics = flags & 16u;
    kernel->loops_over_private = flags & 32u;
    if (reader->failed || flags > 63u || kernel->args_bytes > MAX_ARGS_BYTES || !kernel->name[0])
        return -EBADMSG;
    for (uint32_t i = 0; i < kernel->num_args; i++) {
        const struct sp_arg_info *arg = &kernel->args[i];
        if (arg->size > kernel->args_bytes || arg->offset > kernel->args_bytes - arg->size)
            return -EBADMSG;
    }
    return 0;
}

int sp_program_info_decode(struct sp_wire_reader *reader, struct sp_program_info **out)
{
    void *kernels = NULL;
    struct sp_program_info *info = calloc(1, sizeof(*info));
    if (!info)
        return -ENOMEM;
    int error = get_array(info, reader, KERNEL_LEAST_BYTES, sizeof(*info->kernels),
                          &info->num_kernels, &kernels);
    info->kernels = kernels;
    for (uint32_t i = 0; !error && i < info->num_kernels; i++) {
        error = get_kernel(info, reader, &info->kernels[i]);
        if (!error && i && strcmp(info->kernels[i - 1].name, info->kernels[i].name) >= 0)
            error = -EBADMSG;
    }
    if (error)
        goto err;
    info->globals_bytes = sp_wire_get_u64(reader);
    error = reader->failed ? -EBADMSG : 0;
    if (error)
        goto err;
    *out = info;
    return 0;
err:
    sp_program_info_destroy(info);
    return error;
}

void sp_program_info_destroy(struct sp_program_info *info)
{
    if (!info)
        return;
    for (struct block *block = info->arena; block;) {
        struct block *next = block->next;
        free(block);
        block = next;
    }
    free(info);
}

const struct sp_kernel_info *sp_program_info_find(const struct sp_program_info *info,
                                                  const char *name)
{
    for (uint32_t low = 0, high = info->num_kernels; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, info->kernels[middle].name);
        if (order == 0)
            return &info->kernels[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}
