/* Blocks of one size for what is allocated on one thread and freed on another, again and again:
 * commands.
 *
 * malloc gives each thread memory of its own, so that a block freed elsewhere takes that thread's
 * lock, and gives back to the system what the next burst wants again: two thirds of a launch into a
 * long stream, measured. Here freed blocks wait in a list that needs no lock. Thread-safe.
 */
#ifndef SP_UTIL_BLOCK_H
#define SP_UTIL_BLOCK_H

#include <stddef.h>

/* What is kept: a command with a few waits, objects and arguments. What is larger is malloc's. */
#define SP_BLOCK_BYTES ((size_t)1536)

/* Zeroed, aligned for any type, of at least `size` bytes; NULL when out of memory. Counts as one
 * allocation (alloc.h). */
void *sp_block_alloc(size_t size);

/* What sp_block_alloc(size) gave, with the same size. */
void sp_block_free(void *block, size_t size);

#endif
