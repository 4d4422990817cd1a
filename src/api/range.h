/* Ranges of bytes: the one place where an offset and a size are added up, so that no sum
 * overflows. Used by all of src/api. No state.
 */
#ifndef SP_API_RANGE_H
#define SP_API_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether `bytes` bytes from `offset` on lie within the first `limit` bytes. */
static inline bool sp_range_fits(size_t offset, size_t bytes, size_t limit)
{
    return offset <= limit && bytes <= limit - offset;
}

/* Whether two ranges, which do not wrap around, have a byte in common. */
static inline bool sp_ranges_overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes)
{
    return a <= b ? b - a < a_bytes && b_bytes != 0 : a - b < b_bytes && a_bytes != 0;
}

static inline bool sp_is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

#endif
