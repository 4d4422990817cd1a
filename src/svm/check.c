/* See check.h. What it owns: for each region of a shared arena, who may touch it; and the addresses
 * that were freed, for a while.
 *
 * Invariant: a page of a watched region that the host may not touch is closed, unless a command
 * that runs in this process uses the region (`allowed`), or a touch was reported there since the
 * region was last used (`is_open`). What maps allow is opened when they begin, so that system calls
 * find it open; for commands of this process pages are opened as they are touched.
 *
 * A touch is judged and opened with the lock held, and whatever closes holds it as well; so nothing
 * is opened by what was true before.
 *
 * Lock: sp_check_lock, after an arena's and a region's, before the window's. Nobody who holds it
 * touches memory that is watched.
 */
#include "svm/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "svm/check_internal.h"
#include "svm/window.h"
#include "util/alloc.h"
#include "util/symbol.h"

/* Pages are opened in pieces of this size for who may touch all of a region: a fault costs 10 us,
 * entering a page 0.2 us. */
#define OPEN_BYTES (UINT64_C(1) << 20)

/* Spans that were freed and whose addresses are not given out again. They have no memory, only
 * addresses: at most a quarter of the window, and so many that a look through all of them goes
 * unnoticed beside a report. */
#define MAX_KEPT_SPANS 16384u
#define KEPT_WINDOW_SHARE 4u

bool sp_check_is_on, sp_check_forgives, sp_check_aborts;
bool (*sp_check_found)(const struct sp_finding *finding);
pthread_mutex_t sp_check_lock = PTHREAD_MUTEX_INITIALIZER;

/* A span that was freed, with its region as it was. */
struct kept_span {
    struct kept_span *next; /* younger */
    struct sp_span span;    /* start, granules and is_shared alone */
    struct sp_finding_region was;
};

static struct {
    bool is_watching;
    struct kept_span *oldest, *youngest;
    unsigned num_kept;
    uint64_t kept_granules, max_kept_granules;
} checking;

/* --- Start ------------------------------------------------------------------------------------ */

static void stop_in_child(void)
{
    sp_check_is_on = false;
    pthread_mutex_init(&sp_check_lock, NULL);
}

const char *sp_check_ability(void)
{
    switch (sp_check_watch_try()) {
    case SP_CHECK_WATCH_FULL:
        return "host accesses (userfaultfd) and kernels";
    case SP_CHECK_WATCH_USER:
        return "host accesses (userfaultfd; system calls get EFAULT) and kernels";
    default:
        return "kernels; host accesses need userfaultfd (Linux 5.19 or later)";
    }
}

static void touched(const struct sp_touch *touch);

void sp_check_init(void)
{
    const char *mode = getenv("SAMEPAGE_CHECK");
    uintptr_t window;
    size_t window_bytes;
    if (!mode || !*mode || !strcmp(mode, "0"))
        return;
    if (strcmp(mode, "1") && strcmp(mode, "abort") && strcmp(mode, "forgive")) {
        fprintf(stderr,
                "samepage: SAMEPAGE_CHECK=%s is not known and nothing is checked; it can be 1, "
                "abort or "
                "forgive\n",
                mode);
        return;
    }
    sp_check_aborts = !strcmp(mode, "abort");
    sp_check_forgives = !strcmp(mode, "forgive");
    sp_window_range(&window, &window_bytes);
    checking.max_kept_granules = window_bytes / SP_GRANULE_BYTES / KEPT_WINDOW_SHARE;
    checking.is_watching = sp_check_watch_start(touched) == 0;
    if (!checking.is_watching)
        fprintf(stderr, "samepage: the host's accesses are not checked, since this system lets the "
                        "process have no userfaultfd (Linux 5.19 or later)\n");
    sp_check_is_on = pthread_atfork(NULL, NULL, stop_in_child) == 0;
}

/* --- Regions ---------------------------------------------------------------------------------- */

static uint64_t page_floor(uint64_t bytes)
{
    return bytes & ~(uint64_t)(sp_check_page_bytes() - 1);
}

static uint64_t page_ceiling(uint64_t bytes)
{
    return page_floor(bytes + sp_check_page_bytes() - 1);
}

size_t sp_check_room_for(size_t bytes)
{
    if (!sp_check_forgives)
        return SIZE_MAX; /* a span of its own */
    /* Blocks of whole pages, which a power of two makes of them. */
    size_t room = bytes < sp_check_page_bytes() ? sp_check_page_bytes() : bytes;
    return (size_t)1 << (64 - __builtin_clzll(room - 1));
}

static uint64_t room_of(const struct sp_region *region)
{
    const struct sp_span *span = region->span;
    return span->blocks ? span->block_bytes : span->granules * SP_GRANULE_BYTES;
}

void sp_check_allocated(struct sp_region *region)
{
    struct sp_check_region *check = sp_alloc(sizeof *check);
    if (!check)
        return; /* the region is not checked */
    check->region = region;
    check->allocated_at = sp_symbol_caller();
    bool is_watched = checking.is_watching && region->path == SP_PATH_PRIVATE &&
                      room_of(region) % sp_check_page_bytes() == 0;
    pthread_mutex_lock(&sp_check_lock);
    if (is_watched && !sp_check_watch_add(region->start, room_of(region)))
        check->watched_bytes = room_of(region);
    region->check = check;
    pthread_mutex_unlock(&sp_check_lock);
}

static void end_check(struct sp_region *region)
{
    struct sp_check_region *check = region->check;
    if (!check)
        return;
    sp_check_watch_close(region->start, check->watched_bytes);
    while (check->maps) {
        struct check_map *map = check->maps;
        check->maps = map->next;
        free(map);
    }
    region->check = NULL;
    free(check);
}

void sp_check_region_ended(struct sp_region *region)
{
    pthread_mutex_lock(&sp_check_lock);
    end_check(region);
    pthread_mutex_unlock(&sp_check_lock);
}

static enum check_right right_at(const struct sp_check_region *check, uint64_t offset)
{
    enum check_right right = CHECK_NOTHING;
    for (const struct check_map *map = check->maps; map && right != CHECK_WRITE; map = map->next)
        if (offset >= page_floor(map->first) && offset < page_ceiling(map->end))
            right = map->may_write ? CHECK_WRITE : CHECK_READ;
    return right;
}

/* Where, behind `offset`, a map begins or ends next. */
static uint64_t next_change(const struct sp_check_region *check, uint64_t offset, uint64_t end)
{
    for (const struct check_map *map = check->maps; map; map = map->next) {
        uint64_t first = page_floor(map->first), last = page_ceiling(map->end);
        if (first > offset && first < end)
            end = first;
        if (last > offset && last < end)
            end = last;
    }
    return end;
}

void sp_check_arrange(struct sp_check_region *check, uint64_t first, uint64_t end, bool is_new)
{
    if (check->allowed) { /* later, by rearm */
        check->is_open = true;
        check->has_new |= is_new;
    }
    if (!check->watched_bytes || check->allowed)
        return;
    first = page_floor(first);
    end = page_ceiling(end);
    if (end > check->watched_bytes)
        end = check->watched_bytes;
    for (uint64_t next; first < end; first = next) {
        next = next_change(check, first, end);
        unsigned char *start = check->region->start + first;
        enum check_right right = right_at(check, first);
        if (right == CHECK_NOTHING)
            sp_check_watch_close(start, next - first);
        else if (is_new)
            sp_check_watch_open(start, next - first, right == CHECK_WRITE);
        else
            sp_check_watch_protect(start, next - first, right == CHECK_WRITE);
    }
}

void sp_check_give_up(struct sp_check_region *check)
{
    if (check->watched_bytes)
        sp_check_watch_remove(check->region->start, check->watched_bytes);
    check->watched_bytes = 0;
}

void sp_check_rearm(struct sp_check_region *check)
{
    if (!check->is_open || check->allowed)
        return;
    bool is_new = check->has_new;
    check->is_open = check->has_new = false;
    sp_check_arrange(check, 0, check->watched_bytes, is_new);
}

/* The live region whose room holds `address`; NULL: none. A region is freed only after its end was
 * told of here, and is not found from before that on; so it stays as long as the lock is held. */
static struct sp_region *find_region(uintptr_t address)
{
    struct sp_region *region = NULL;
    sp_window_lock_shared();
    struct sp_span *span = sp_window_find_locked((const void *)address);
    if (span && span->blocks) {
        size_t index = (address - (uintptr_t)span->start) / span->block_bytes;
        if (index < span->capacity)
            region = __atomic_load_n(&span->blocks[index].region, __ATOMIC_RELAXED);
    } else if (span) {
        region = __atomic_load_n(&span->region, __ATOMIC_RELAXED);
    }
    sp_window_unlock_shared();
    return region && region->check ? region : NULL;
}

void sp_check_allow(const void *address)
{
    pthread_mutex_lock(&sp_check_lock);
    struct sp_region *region = find_region((uintptr_t)address);
    if (region)
        region->check->allowed++;
    pthread_mutex_unlock(&sp_check_lock);
}

void sp_check_disallow(const void *address)
{
    pthread_mutex_lock(&sp_check_lock);
    struct sp_region *region = find_region((uintptr_t)address);
    if (region && region->check->allowed) {
        region->check->allowed--;
        sp_check_rearm(region->check);
    }
    pthread_mutex_unlock(&sp_check_lock);
}

/* --- What was freed --------------------------------------------------------------------------- */

/* Takes out the oldest spans that are too many. */
static struct kept_span *take_surplus(void)
{
    struct kept_span *first = checking.oldest, *last = NULL;
    while (checking.oldest && (checking.num_kept > MAX_KEPT_SPANS ||
                               checking.kept_granules > checking.max_kept_granules)) {
        last = checking.oldest;
        checking.num_kept--;
        checking.kept_granules -= last->span.granules;
        checking.oldest = last->next;
    }
    if (!checking.oldest)
        checking.youngest = NULL;
    if (last)
        last->next = NULL;
    return last ? first : NULL;
}

/* All regions of a span that is about to lose its addresses. */
static void end_checks(struct sp_span *span)
{
    pthread_mutex_lock(&sp_check_lock);
    for (uint32_t i = 0; span->blocks && i < span->capacity; i++)
        if (span->blocks[i].region)
            end_check(span->blocks[i].region);
    if (span->region)
        end_check(span->region);
    pthread_mutex_unlock(&sp_check_lock);
}

bool sp_check_keep(struct sp_span *span)
{
    bool may_keep = !sp_check_forgives && !span->blocks && span->region;
    struct kept_span *kept = may_keep ? sp_alloc(sizeof *kept) : NULL;
    if (!kept) {
        end_checks(span);
        return false;
    }
    kept->span.start = span->start;
    kept->span.granules = span->granules;
    kept->span.is_shared = span->is_shared;
    kept->span.path = span->path;
    const void *freed_at = sp_symbol_caller();

    pthread_mutex_lock(&sp_check_lock);
    sp_check_describe_region(&kept->was, span->region);
    if (!kept->was.freed_at)
        kept->was.freed_at = freed_at;
    if (checking.is_watching && sp_path_is_home(span->region->path))
        sp_check_watch_add(span->start, span->granules * SP_GRANULE_BYTES);
    end_check(span->region);
    sp_window_retire(span);
    if (checking.youngest)
        checking.youngest->next = kept;
    else
        checking.oldest = kept;
    checking.youngest = kept;
    checking.num_kept++;
    checking.kept_granules += span->granules;
    struct kept_span *surplus = take_surplus();
    pthread_mutex_unlock(&sp_check_lock);

    while (surplus) {
        struct kept_span *next = surplus->next;
        sp_window_give_back(&surplus->span);
        free(surplus);
        surplus = next;
    }
    return true;
}

static const struct kept_span *find_kept(uintptr_t address)
{
    const struct kept_span *kept = checking.oldest;
    while (kept && address - (uintptr_t)kept->span.start >= kept->span.granules * SP_GRANULE_BYTES)
        kept = kept->next;
    return kept;
}

/* --- Findings --------------------------------------------------------------------------------- */

bool sp_check_tell(const struct sp_finding *finding)
{
    return sp_check_found && sp_check_found(finding);
}

void sp_check_describe_region(struct sp_finding_region *described, const struct sp_region *region)
{
    *described = (struct sp_finding_region){
        .arena = region->arena,
        .start = (uintptr_t)region->start,
        .bytes = region->bytes,
        .flags = region->flags,
        .allocated_at = region->check ? region->check->allocated_at : NULL,
        .freed_at = region->check ? region->check->freed_at : NULL,
    };
}

bool sp_check_describe_address(struct sp_finding_region *described, uintptr_t address,
                               bool *was_freed)
{
    const struct sp_region *region = find_region(address);
    const struct kept_span *kept = region ? NULL : find_kept(address);
    *was_freed = kept;
    if (region)
        sp_check_describe_region(described, region);
    if (kept)
        *described = kept->was;
    return region || kept;
}

/* --- Touches ---------------------------------------------------------------------------------- */

static void open_around(struct sp_check_region *check, uint64_t offset, uint64_t piece,
                        bool may_write)
{
    uint64_t first = offset & ~(piece - 1), end = first + piece;
    if (end > check->watched_bytes)
        end = check->watched_bytes;
    sp_check_watch_open(check->region->start + first, end - first, may_write);
}

/* Says what happened. False: the process is to stop, and who touched is not to go on. */
static bool tell_touch(struct sp_finding *finding, const struct sp_touch *touch)
{
    finding->address = touch->address;
    finding->is_write = touch->is_write;
    finding->thread = touch->thread;
    sp_check_name_host_kernel(&finding->actor);
    finding->num_words = sp_check_watch_locate(touch->thread, &finding->instruction, finding->stack,
                                               SP_CHECK_STACK_WORDS);
    return !sp_check_tell(finding);
}

/* A touch of a live region. True: it is to be forgiven. */
static bool judge(struct sp_check_region *check, const struct sp_touch *touch)
{
    uint64_t page = sp_check_page_bytes();
    uint64_t offset = touch->address - (uintptr_t)check->region->start;
    enum check_right right = right_at(check, offset);
    if (check->allowed) {
        check->is_open = true;
        open_around(check, offset, OPEN_BYTES, true);
    } else if (right == CHECK_WRITE || (right == CHECK_READ && !touch->is_write)) {
        open_around(check, offset, page, right == CHECK_WRITE);
    } else if (sp_check_forgives) {
        return true;
    } else {
        struct sp_finding finding = {.kind = check->is_freed       ? SP_FINDING_FREED
                                             : right == CHECK_READ ? SP_FINDING_READ_ONLY
                                                                   : SP_FINDING_UNMAPPED};
        sp_check_describe_region(&finding.region, check->region);
        if (tell_touch(&finding, touch)) {
            check->is_open = true;
            open_around(check, offset, page, touch->is_write);
        }
    }
    return false;
}

static void touched(const struct sp_touch *touch)
{
    struct sp_arena *forgiving = NULL;
    pthread_mutex_lock(&sp_check_lock);
    struct sp_region *region = find_region(touch->address);
    if (region && touch->address - (uintptr_t)region->start < region->check->watched_bytes) {
        if (judge(region->check, touch))
            forgiving = region->arena;
    } else {
        const struct kept_span *kept = region ? NULL : find_kept(touch->address);
        bool goes_on = true, may_write = !kept || touch->is_write;
        if (kept) {
            struct sp_finding finding = {.kind = SP_FINDING_FREED, .region = kept->was};
            goes_on = tell_touch(&finding, touch);
        }
        if (goes_on)
            sp_check_watch_open((void *)(uintptr_t)page_floor(touch->address),
                                sp_check_page_bytes(), may_write);
    }
    pthread_mutex_unlock(&sp_check_lock);
    if (forgiving)
        sp_check_forgive(forgiving, touch);
}
