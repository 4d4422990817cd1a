/* Memory for the library's own structures, with a way to let it fail.
 *
 * Every allocation of the library goes through here, so that a test can let the n-th one fail and
 * all after it succeed (SQLite's way): SAMEPAGE_FAIL_ALLOC=n in the environment, read once, counted
 * from 1. Mappings and file descriptors that stand for memory count as well, through
 * sp_alloc_may_fail(). Free with free().
 */
#ifndef SP_UTIL_ALLOC_H
#define SP_UTIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory, or NULL. size 0 gives a pointer that can be freed. */
void *sp_alloc(size_t size);

/* As calloc: NULL as well where count * size overflows. */
void *sp_alloc_array(size_t count, size_t size);

/* As realloc; the new part is not zeroed. */
void *sp_realloc(void *memory, size_t size);

/* Copies of a string, and of bytes with a zero behind them. NULL when out of memory. */
char *sp_strdup(const char *string);
char *sp_memdup0(const void *bytes, size_t size);

/* printf into fresh memory; NULL when out of memory. */
char *sp_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For tests: lets the n-th allocation from now on fail, counted from 1, in place of what the
 * environment says. 0: none. */
void sp_alloc_fail_at(unsigned n);

/* Counts one allocation made by other means; true where the test wants it to fail. */
bool sp_alloc_may_fail(void);

#endif
