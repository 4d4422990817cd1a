/* Reading and writing flat messages: little-endian integers, and byte strings with their length.
 *
 * The same few functions serve the compiler's protocol, program binaries, the disk cache and,
 * later, whatever a device process sends. A reader never trusts: a value that does not fit what is
 * left makes the reader fail for good, and every later read then gives 0 or NULL, so that a decoder
 * checks once at its end. A writer likewise keeps its first error. Neither is shared between
 * threads.
 */
#ifndef SP_UTIL_WIRE_H
#define SP_UTIL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sp_wire_writer {
    unsigned char *bytes; /* owned */
    size_t size;          /* bytes written */
    size_t capacity;
    int error; /* 0, or -ENOMEM: then bytes are incomplete */
};

void sp_wire_writer_init(struct sp_wire_writer *writer);
void sp_wire_writer_finish(struct sp_wire_writer *writer);

void sp_wire_put_u32(struct sp_wire_writer *writer, uint32_t value);
void sp_wire_put_u64(struct sp_wire_writer *writer, uint64_t value);

/* A u64 length, then the bytes. */
void sp_wire_put_bytes(struct sp_wire_writer *writer, const void *bytes, size_t size);

/* A string as bytes without its zero; NULL is written as "". */
void sp_wire_put_string(struct sp_wire_writer *writer, const char *string);

struct sp_wire_reader {
    const unsigned char *bytes; /* not owned */
    size_t size;
    size_t position;
    bool failed;
};

void sp_wire_reader_init(struct sp_wire_reader *reader, const void *bytes, size_t size);

uint32_t sp_wire_get_u32(struct sp_wire_reader *reader);
uint64_t sp_wire_get_u64(struct sp_wire_reader *reader);

/* The bytes in place (they live as long as the reader's input), their length in *size. NULL and 0
 * on failure. */
const void *sp_wire_get_bytes(struct sp_wire_reader *reader, size_t *size);

/* A fresh copy with a zero behind it, to be freed with free(); NULL when out of memory or when the
 * reader failed. A zero inside the bytes is a failure. */
char *sp_wire_get_string(struct sp_wire_reader *reader);

/* True when nothing failed and nothing is left. */
bool sp_wire_reader_done(const struct sp_wire_reader *reader);

#endif
