/* The disk cache: bytes by key, kept from one process to the next.
 *
 * It may always say no. A folder that cannot be made, belongs to somebody else, is full, read-only
 * or holds garbage means that nothing is found or kept; no function reports more than that. What is
 * found was written under this very key and is whole: both are checked, and a damaged entry is
 * removed.
 *
 * Callable from any thread, and by any number of processes on one folder.
 */
#ifndef SP_COMPILER_CACHE_H
#define SP_COMPILER_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Space for the programs of a workstation for months, and a small part of its disk. */
#define SP_CACHE_MIB_DEFAULT 1024u

struct sp_digest {
    uint64_t low, high;
};

/* The digest of `bytes`. `seed` distinguishes uses. Good against accident, not against malice: the
 * folder is the user's own. */
struct sp_digest sp_digest(const void *bytes, size_t size, uint64_t seed);

struct sp_cache;

/* A cache in `folder`, made with its parents where it is missing, which keeps at most about
 * `max_bytes`. 0 and *cache; -ENOMEM; or another negative errno where no cache can be there. */
int sp_cache_create(const char *folder, uint64_t max_bytes, struct sp_cache **cache);

/* Entries stay. Takes NULL. */
void sp_cache_destroy(struct sp_cache *cache);

/* The process's cache, opened at the first call; NULL where there is none:
 *   SAMEPAGE_CACHE=0       none
 *   SAMEPAGE_CACHE_DIR     its folder; else $XDG_CACHE_HOME/samepage, else ~/.cache/samepage
 *   SAMEPAGE_CACHE_SIZE    its limit in MiB
 * Lives as long as the process. */
struct sp_cache *sp_cache_shared(void);

/* Finds what was stored under `key`: 0 and fresh memory with a zero behind it, to be freed with
 * free(); -ENOENT; -ENOMEM. */
int sp_cache_load(struct sp_cache *cache, struct sp_digest key, void **bytes, size_t *size);

/* Keeps a copy under `key`, if it can. */
void sp_cache_store(struct sp_cache *cache, struct sp_digest key, const void *bytes, size_t size);

/* Removes `key`'s entry, if there is one. */
void sp_cache_remove(struct sp_cache *cache, struct sp_digest key);

/* Removes the entries used longest ago until the rest is well below the limit, if they are above
 * it. Storing does this by itself, now and then. */
void sp_cache_trim(struct sp_cache *cache);

#endif
