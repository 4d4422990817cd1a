/* Host watching by synchronous write-protection: Linux 5.19 and later (shared files), with a
 * privilege.
 *
 * The first write to a protected page waits until our thread, which reads the userfaultfd, has
 * noted the page in its watch and taken the protection off. A write by a system call waits
 * likewise; a descriptor that only serves user mode would let read(2) into the range fail with
 * EFAULT instead, so one of those is never used here, and where no other can be had this method
 * does not work.
 *
 * Invariant: a page of a watch is protected, or noted as written. The range stays registered after
 * collect, without any protection; that a mapping was replaced meanwhile shows when collect takes
 * the protection off.
 *
 * Nobody may wait for ever: when the thread cannot go on it closes the descriptor, which ends all
 * protection and wakes everyone, and all watches count as written. The thread never touches watched
 * memory and allocates nothing.
 *
 * Lock: one over the list of watches, held for short and without touching watched memory; the last
 * in the lock order.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "svm/hostwatch_method.h"
#include "util/alloc.h"
#include "util/thread.h"

/* UFFD_FEATURE_WP_UNPOPULATED of the kernel's include/uapi/linux/userfaultfd.h, Linux 6.4, which
 * older headers lack. Without it only those pages of anonymous memory are protected that are there;
 * of a file all are. */
#define FEATURE_WP_UNPOPULATED (UINT64_C(1) << 13)

#define BITS 64u

/* Faults that one read fetches. */
#define MESSAGES_PER_READ 16u

static struct {
    pthread_mutex_t lock;
    int uffd;                      /* -1: not started, or the thread could not go on */
    bool protects_absent;          /* FEATURE_WP_UNPOPULATED */
    struct sp_hostwatch **watches; /* sorted by address; state: one bit for each page */
    size_t num_watches, max_watches;
} uffd_watching = {.lock = PTHREAD_MUTEX_INITIALIZER, .uffd = -1};

int sp_hostwatch_open_uffd(uint64_t features, bool for_kernel)
{
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | (for_kernel ? 0 : UFFD_USER_MODE_ONLY));
    if (uffd < 0) {
        int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        if (device < 0)
            return -errno;
        uffd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
        int error = -errno;
        close(device);
        if (uffd < 0)
            return error;
    }
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    if (ioctl(uffd, UFFDIO_API, &api)) {
        int error = -errno;
        close(uffd);
        return error;
    }
    return uffd;
}

int sp_hostwatch_register(int uffd, const struct sp_hostwatch *watch)
{
    struct uffdio_register arguments = {
        .range = {.start = (uintptr_t)watch->start, .len = watch->bytes},
        .mode = UFFDIO_REGISTER_MODE_WP,
    };
    return ioctl(uffd, UFFDIO_REGISTER, &arguments) ? -errno : 0;
}

/* UFFDIO_WRITEPROTECT_MODE_WP, or 0 to take the protection off and wake who waits. */
static int set_protection(int uffd, uint64_t start, uint64_t bytes, uint64_t mode)
{
    struct uffdio_writeprotect arguments = {.range = {.start = start, .len = bytes}, .mode = mode};
    int result;
    do
        result = ioctl(uffd, UFFDIO_WRITEPROTECT, &arguments);
    while (result && errno == EAGAIN); /* the address space was just being changed */
    return result ? -errno : 0;
}

/* How many watches start at `address` or below. With the lock held. */
static size_t watches_up_to(uint64_t address)
{
    size_t low = 0, high = uffd_watching.num_watches;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uintptr_t)uffd_watching.watches[middle]->start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* With the lock held. */
static void note_written(uint64_t address)
{
    size_t index = watches_up_to(address);
    if (index > 0) {
        struct sp_hostwatch *watch = uffd_watching.watches[index - 1];
        uint64_t offset = address - (uintptr_t)watch->start;
        if (offset < watch->bytes) {
            uint64_t page = offset / sp_hostwatch_page_bytes();
            ((uint64_t *)watch->state)[page / BITS] |= UINT64_C(1) << page % BITS;
        }
    }
}

/* False: the writers cannot be let go one by one any more. */
static bool resolve(int uffd, const struct uffd_msg *message)
{
    if (message->event != UFFD_EVENT_PAGEFAULT)
        return true; /* none other was asked for */
    uint64_t page_bytes = sp_hostwatch_page_bytes();
    uint64_t page = message->arg.pagefault.address & ~(page_bytes - 1);
    /* In one piece: if a watch ended and another began in between, its page would lose the
     * protection unnoted. */
    pthread_mutex_lock(&uffd_watching.lock);
    note_written(page);
    int error = set_protection(uffd, page, page_bytes, 0);
    pthread_mutex_unlock(&uffd_watching.lock);
    if (!error)
        return true;
    /* The mapping is another one now; who waits tries again. */
    struct uffdio_range range = {.start = page, .len = page_bytes};
    return ioctl(uffd, UFFDIO_WAKE, &range) == 0;
}

static void *resolve_writes(void *argument)
{
    struct uffd_msg messages[MESSAGES_PER_READ];
    int uffd = (int)(intptr_t)argument;
    bool goes_on = true;
    while (goes_on) {
        ssize_t count = read(uffd, messages, sizeof messages);
        if (count < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        goes_on = count > 0;
        for (size_t i = 0; goes_on && i < (size_t)count / sizeof messages[0]; i++)
            goes_on = resolve(uffd, &messages[i]);
    }
    pthread_mutex_lock(&uffd_watching.lock);
    uffd_watching.uffd = -1;
    close(uffd);
    pthread_mutex_unlock(&uffd_watching.lock);
    return NULL;
}

static int start_uffd(void)
{
    uint64_t features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
    int uffd = sp_hostwatch_open_uffd(features | FEATURE_WP_UNPOPULATED, true);
    uffd_watching.protects_absent = uffd >= 0;
    if (uffd < 0)
        uffd = sp_hostwatch_open_uffd(features, true);
    if (uffd < 0)
        return uffd;
    int error = sp_thread_start_detached(resolve_writes, (void *)(intptr_t)uffd, 0);
    if (error) {
        close(uffd);
        return error;
    }
    uffd_watching.uffd = uffd;
    return 0;
}

/* Room for one watch more. With the lock held. */
static int reserve_watch(void)
{
    if (uffd_watching.num_watches < uffd_watching.max_watches)
        return 0;
    size_t max = 2 * uffd_watching.max_watches + 16;
    struct sp_hostwatch **watches = sp_realloc(uffd_watching.watches, max * sizeof *watches);
    if (!watches)
        return -ENOMEM;
    uffd_watching.watches = watches;
    uffd_watching.max_watches = max;
    return 0;
}

static int add_watch(struct sp_hostwatch *watch)
{
    pthread_mutex_lock(&uffd_watching.lock);
    int error = uffd_watching.uffd < 0 ? -ENOTSUP : reserve_watch();
    if (!error) {
        size_t index = watches_up_to((uintptr_t)watch->start);
        struct sp_hostwatch **place = uffd_watching.watches + index;
        memmove(place + 1, place, (uffd_watching.num_watches - index) * sizeof *place);
        *place = watch;
        uffd_watching.num_watches++;
    }
    pthread_mutex_unlock(&uffd_watching.lock);
    return error;
}

static void remove_watch(struct sp_hostwatch *watch)
{
    pthread_mutex_lock(&uffd_watching.lock);
    size_t index = watches_up_to((uintptr_t)watch->start) - 1;
    struct sp_hostwatch **place = uffd_watching.watches + index;
    uffd_watching.num_watches--;
    memmove(place, place + 1, (uffd_watching.num_watches - index) * sizeof *place);
    pthread_mutex_unlock(&uffd_watching.lock);
}

/* The thread closes the descriptor under the lock, so that its number cannot mean something else
 * here. */
static int protect(const struct sp_hostwatch *watch)
{
    pthread_mutex_lock(&uffd_watching.lock);
    int uffd = uffd_watching.uffd;
    int error = uffd < 0 ? -ENOTSUP : sp_hostwatch_register(uffd, watch);
    if (!error)
        error = set_protection(uffd, (uintptr_t)watch->start, watch->bytes,
                               UFFDIO_WRITEPROTECT_MODE_WP);
    if (error && uffd >= 0) /* part of it may be protected */
        set_protection(uffd, (uintptr_t)watch->start, watch->bytes, 0);
    pthread_mutex_unlock(&uffd_watching.lock);
    return error;
}

static int unprotect(const struct sp_hostwatch *watch)
{
    pthread_mutex_lock(&uffd_watching.lock);
    int uffd = uffd_watching.uffd;
    int error =
        uffd < 0 ? -ENOTSUP : set_protection(uffd, (uintptr_t)watch->start, watch->bytes, 0);
    pthread_mutex_unlock(&uffd_watching.lock);
    return error;
}

static void forget_uffd(struct sp_hostwatch *watch)
{
    free(watch->state);
    watch->state = NULL;
}

static int arm_uffd(struct sp_hostwatch *watch)
{
    size_t pages = watch->bytes / sp_hostwatch_page_bytes();
    watch->state = sp_alloc_array((pages + BITS - 1) / BITS, sizeof(uint64_t));
    if (!watch->state)
        return -ENOMEM;
    int error = 0;
    if (!uffd_watching.protects_absent && madvise(watch->start, watch->bytes, MADV_POPULATE_READ))
        error = -errno;
    if (error)
        goto forget;
    error = add_watch(watch); /* before the protection: a write may come at once */
    if (error)
        goto forget;
    error = protect(watch);
    if (error)
        goto remove;
    return 0;
remove:
    remove_watch(watch);
forget:
    forget_uffd(watch);
    return error;
}

static void collect_uffd(struct sp_hostwatch *watch, struct sp_hostwatch_runs *runs)
{
    int error = unprotect(watch);
    remove_watch(watch);
    if (error) {
        sp_hostwatch_runs_add(runs, 0, watch->given_bytes);
        return;
    }
    uint64_t page_bytes = sp_hostwatch_page_bytes();
    uint64_t pages = watch->bytes / page_bytes;
    const uint64_t *bits = watch->state;
    for (uint64_t word = 0; word * BITS < pages; word++)
        for (uint64_t left = bits[word]; left; left &= left - 1) {
            uint64_t page = word * BITS + (unsigned)__builtin_ctzll(left);
            sp_hostwatch_runs_add(runs, page * page_bytes, (page + 1) * page_bytes);
        }
}

/* No `stop`: a trial that fails leaves a thread that sleeps. */
const struct sp_hostwatch_ops sp_hostwatch_uffd_ops = {
    .start = start_uffd,
    .arm = arm_uffd,
    .collect = collect_uffd,
    .forget = forget_uffd,
};
