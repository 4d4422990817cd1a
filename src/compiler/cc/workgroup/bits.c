/* See bits.h. */
#include "compiler/cc/workgroup/bits.h"

#include "compiler/cc/text.h"

#include <stdlib.h>
#include <string.h>

static uint32_t words(const struct sp_bits *bits)
{
    return (bits->size + 63) / 64;
}

struct sp_bits sp_bits_create(uint32_t size)
{
    struct sp_bits bits = {.size = size};
    bits.words = sp_cc_allocate(words(&bits) * sizeof(uint64_t));
    return bits;
}

void sp_bits_finish(struct sp_bits *bits)
{
    free(bits->words);
    *bits = (struct sp_bits){0};
}

bool sp_bits_has(const struct sp_bits *bits, uint32_t member)
{
    return bits->words[member / 64] >> (member % 64) & 1;
}

void sp_bits_add(struct sp_bits *bits, uint32_t member)
{
    bits->words[member / 64] |= UINT64_C(1) << (member % 64);
}

void sp_bits_fill(struct sp_bits *bits)
{
    memset(bits->words, 0xff, words(bits) * sizeof(uint64_t));
    if (bits->size % 64)
        bits->words[bits->size / 64] &= (UINT64_C(1) << (bits->size % 64)) - 1;
}

void sp_bits_clear(struct sp_bits *bits)
{
    memset(bits->words, 0, words(bits) * sizeof(uint64_t));
}

void sp_bits_copy(struct sp_bits *to, const struct sp_bits *from)
{
    memcpy(to->words, from->words, words(to) * sizeof(uint64_t));
}

uint32_t sp_bits_count(const struct sp_bits *bits)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < words(bits); i++)
        count += (uint32_t)__builtin_popcountll(bits->words[i]);
    return count;
}

bool sp_bits_meet(const struct sp_bits *a, const struct sp_bits *b)
{
    for (uint32_t i = 0; i < words(a); i++)
        if (a->words[i] & b->words[i])
            return true;
    return false;
}

bool sp_bits_unite(struct sp_bits *to, const struct sp_bits *other)
{
    uint64_t changed = 0;
    for (uint32_t i = 0; i < words(to); i++) {
        changed |= other->words[i] & ~to->words[i];
        to->words[i] |= other->words[i];
    }
    return changed;
}

bool sp_bits_intersect(struct sp_bits *to, const struct sp_bits *other)
{
    uint64_t changed = 0;
    for (uint32_t i = 0; i < words(to); i++) {
        changed |= to->words[i] & ~other->words[i];
        to->words[i] &= other->words[i];
    }
    return changed;
}

void sp_bits_subtract(struct sp_bits *to, const struct sp_bits *other)
{
    for (uint32_t i = 0; i < words(to); i++)
        to->words[i] &= ~other->words[i];
}

uint32_t sp_bits_next(const struct sp_bits *bits, uint32_t start)
{
    for (uint32_t word = start / 64; word < words(bits); word++) {
        uint64_t left = bits->words[word];
        if (word == start / 64)
            left &= ~UINT64_C(0) << (start % 64);
        if (left)
            return word * 64 + (uint32_t)__builtin_ctzll(left);
    }
    return bits->size;
}
