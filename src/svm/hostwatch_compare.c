/* Host watching by a copy that is compared: works everywhere, and costs the most.
 *
 * Arm copies the range, collect compares page by page. A page that was written with what it had is
 * not found, and need not be. A page of zeroes is not copied: the copy's page in that place was
 * never touched and reads as zeroes. No lock: each watch has its own copy.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "svm/hostwatch_method.h"
#include "util/alloc.h"

static int start_compare(void)
{
    return 0;
}

static bool is_zero(const unsigned char *page, size_t page_bytes)
{
    return page[0] == 0 && memcmp(page, page + 1, page_bytes - 1) == 0;
}

static int arm_compare(struct sp_hostwatch *watch)
{
    size_t page_bytes = sp_hostwatch_page_bytes();
    if (sp_alloc_may_fail())
        return -ENOMEM;
    unsigned char *copy = mmap(NULL, watch->bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return -ENOMEM;
    for (size_t at = 0; at < watch->bytes; at += page_bytes)
        if (!is_zero(watch->start + at, page_bytes))
            memcpy(copy + at, watch->start + at, page_bytes);
    watch->state = copy;
    return 0;
}

static void collect_compare(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs)
{
    size_t page_bytes = sp_hostwatch_page_bytes();
    const unsigned char *copy = watch->state;
    for (size_t at = 0; at < watch->bytes; at += page_bytes)
        if (memcmp(copy + at, watch->start + at, page_bytes) != 0)
            sp_hostwatch_runs_add(runs, at, at + page_bytes);
}

static void forget_compare(struct sp_hostwatch *watch)
{
    if (watch->state)
        munmap(watch->state, watch->bytes);
    watch->state = NULL;
}

const struct sp_hostwatch_ops sp_hostwatch_compare_ops = {
    .start = start_compare,
    .arm = arm_compare,
    .collect = collect_compare,
    .forget = forget_compare,
};
