/* The part of the window for atomics of all agents (docs/atomic-unit.md): which of its granules an
 * agent has bound, for those who perform atomic operations in an agent's name.
 *
 * Invariant: while somebody is inside, and finds a granule marked, that granule's pages stay. Marks
 * are set and cleared under the bindings' lock, and clearing one waits until whoever was inside has
 * left. Nobody stays inside for longer than a batch of operations takes, and waits for nothing
 * there.
 */
#ifndef SP_SVM_ATOMIC_PART_H
#define SP_SVM_ATOMIC_PART_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part's addresses; 0 bytes before the window is there. */
void sp_atomic_part(uintptr_t *start, size_t *bytes);

/* Whether regions lie there at all. Who was given one sees that it does. */
bool sp_atomic_part_is_used(void);

/* One that performs operations. Added once, for good. */
struct sp_atomic_visitor {
    struct sp_atomic_visitor *next;
    atomic_uint is_inside;
};

void sp_atomic_visitor_add(struct sp_atomic_visitor *visitor);

void sp_atomic_enter(struct sp_atomic_visitor *visitor);
void sp_atomic_leave(struct sp_atomic_visitor *visitor);

/* Inside: whether the agent has bound the granule of this address. */
bool sp_atomic_is_bound(uintptr_t address, uint32_t agent);

/* For bindings.c. Whole granules; what lies outside of the part is nobody's business. */
void sp_atomic_mark(uintptr_t start, size_t bytes, uint32_t agent);
void sp_atomic_unmark(uintptr_t start, size_t bytes, uint32_t agent);

/* For window.c: the part, once, and how many granules of it have spans. -ENOMEM. */
int sp_atomic_part_init(uintptr_t start, size_t bytes);
void sp_atomic_part_count(ptrdiff_t granules);

#endif
