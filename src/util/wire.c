/* See wire.h. The bytes are written one by one, so that the format does not depend on the machine.
 */
#include "util/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/alloc.h"

#define FIRST_CAPACITY 256u

void sp_wire_writer_init(struct sp_wire_writer *writer)
{
    *writer = (struct sp_wire_writer){0};
}

void sp_wire_writer_finish(struct sp_wire_writer *writer)
{
    free(writer->bytes);
    *writer = (struct sp_wire_writer){0};
}

/* Room for `size` more bytes, or NULL with the error set. */
static unsigned char *grow(struct sp_wire_writer *writer, size_t size)
{
    if (writer->error)
        return NULL;
    if (size > writer->capacity - writer->size) {
        size_t capacity = writer->capacity ? writer->capacity : FIRST_CAPACITY;
        while (capacity - writer->size < size) {
            if (capacity > SIZE_MAX / 2) {
                writer->error = -ENOMEM;
                return NULL;
            }
            capacity *= 2;
        }
        unsigned char *bytes = sp_realloc(writer->bytes, capacity);
        if (!bytes) {
            writer->error = -ENOMEM;
            return NULL;
        }
        writer->bytes = bytes;
        writer->capacity = capacity;
    }
    unsigned char *room = writer->bytes + writer->size;
    writer->size += size;
    return room;
}

static void put_integer(struct sp_wire_writer *writer, uint64_t value, unsigned size)
{
    unsigned char *room = grow(writer, size);
    for (unsigned i = 0; room && i < size; i++)
        room[i] = (unsigned char)(value >> (8 * i));
}

void sp_wire_put_u32(struct sp_wire_writer *writer, uint32_t value)
{
    put_integer(writer, value, 4);
}

void sp_wire_put_u64(struct sp_wire_writer *writer, uint64_t value)
{
    put_integer(writer, value, 8);
}

void sp_wire_put_bytes(struct sp_wire_writer *writer, const void *bytes, size_t size)
{
    sp_wire_put_u64(writer, size);
    unsigned char *room = grow(writer, size);
    if (room && size)
        memcpy(room, bytes, size);
}

void sp_wire_put_string(struct sp_wire_writer *writer, const char *string)
{
    sp_wire_put_bytes(writer, string, string ? strlen(string) : 0);
}

void sp_wire_reader_init(struct sp_wire_reader *reader, const void *bytes, size_t size)
{
    *reader = (struct sp_wire_reader){.bytes = bytes, .size = size};
}

/* The next `size` bytes, or NULL with the reader failed. */
static const unsigned char *take(struct sp_wire_reader *reader, size_t size)
{
    if (reader->failed || size > reader->size - reader->position) {
        reader->failed = true;
        return NULL;
    }
    const unsigned char *bytes = reader->bytes + reader->position;
    reader->position += size;
    return bytes;
}

static uint64_t get_integer(struct sp_wire_reader *reader, unsigned size)
{
    const unsigned char *bytes = take(reader, size);
    uint64_t value = 0;
    for (unsigned i = 0; bytes && i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

uint32_t sp_wire_get_u32(struct sp_wire_reader *reader)
{
    return (uint32_t)get_integer(reader, 4);
}

uint64_t sp_wire_get_u64(struct sp_wire_reader *reader)
{
    return get_integer(reader, 8);
}

const void *sp_wire_get_bytes(struct sp_wire_reader *reader, size_t *size)
{
    uint64_t length = sp_wire_get_u64(reader);
    const void *bytes = length > SIZE_MAX ? NULL : take(reader, (size_t)length);
    if (!bytes)
        reader->failed = true;
    *size = bytes ? (size_t)length : 0;
    return bytes;
}

char *sp_wire_get_string(struct sp_wire_reader *reader)
{
    size_t size;
    const char *bytes = sp_wire_get_bytes(reader, &size);
    if (!bytes)
        return NULL;
    if (memchr(bytes, 0, size)) {
        reader->failed = true;
        return NULL;
    }
    return sp_memdup0(bytes, size);
}

bool sp_wire_reader_done(const struct sp_wire_reader *reader)
{
    return !reader->failed && reader->position == reader->size;
}
