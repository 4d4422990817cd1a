/* Sets of small numbers, as bits. All sets that meet in one call have the same size. */
#ifndef SP_COMPILER_CC_WORKGROUP_BITS_H
#define SP_COMPILER_CC_WORKGROUP_BITS_H

#include <stdbool.h>
#include <stdint.h>

struct sp_bits {
    uint64_t *words; /* owned */
    uint32_t size;   /* members are below it */
};

struct sp_bits sp_bits_create(uint32_t size); /* empty */
void sp_bits_finish(struct sp_bits *bits);
bool sp_bits_has(const struct sp_bits *bits, uint32_t member);
void sp_bits_add(struct sp_bits *bits, uint32_t member);
void sp_bits_fill(struct sp_bits *bits);
void sp_bits_clear(struct sp_bits *bits);
void sp_bits_copy(struct sp_bits *to, const struct sp_bits *from);
uint32_t sp_bits_count(const struct sp_bits *bits);
bool sp_bits_meet(const struct sp_bits *a, const struct sp_bits *b); /* have a common member */

/* True where `to` changed. */
bool sp_bits_unite(struct sp_bits *to, const struct sp_bits *other);
bool sp_bits_intersect(struct sp_bits *to, const struct sp_bits *other);
void sp_bits_subtract(struct sp_bits *to, const struct sp_bits *other);

/* The first member from `start`, or size. */
uint32_t sp_bits_next(const struct sp_bits *bits, uint32_t start);
#define SP_BITS_EACH(member, bits)                                                                 \
    for (uint32_t member = sp_bits_next(bits, 0); member < (bits)->size;                           \
         member = sp_bits_next(bits, member + 1))

#endif
