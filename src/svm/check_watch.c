/* See check_watch.h. One userfaultfd in the modes MISSING, MINOR and WP over shared memory, and the
 * thread that reads it.
 *
 * A page that is closed has no entry in the application's page tables (MADV_DONTNEED on a shared
 * mapping takes the entry, never the page). Opening enters the page again with UFFDIO_CONTINUE,
 * after making sure that the file has one; for reading only, write-protected. Whatever cannot be
 * done so is unregistered, so that nobody ever waits for good.
 *
 * No lock: check.c's orders everything. The thread touches no watched memory.
 */
#include "svm/check_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "svm/heap.h"
#include "util/thread.h"

/* Linux 5.18 (include/uapi/linux/userfaultfd.h), which older headers lack: the address that was
 * touched, not its page. */
#define FEATURE_EXACT_ADDRESS (UINT64_C(1) << 11)

/* Linux 6.4: enter a page write-protected. */
#define CONTINUE_MODE_WP (UINT64_C(1) << 1)

#define FEATURES                                                                                   \
    (UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |              \
     UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM | FEATURE_EXACT_ADDRESS)

#define THREAD_STACK_BYTES ((size_t)256 << 10)

/* After so long without a touch, all who wait are woken. Seen on Linux 6.18, under load: of two
 * threads that touched pages of one range at the same time, one stayed asleep though its page was
 * there. The cause was not found. */
#define LOST_WAKE_MILLISECONDS 100

static struct {
    int uffd;
    void (*touched)(const struct sp_touch *touch);
    uintptr_t window;
    size_t window_bytes;
} watching = {.uffd = -1};

size_t sp_check_page_bytes(void)
{
    static size_t bytes;
    if (!bytes)
        bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

static int open_uffd(bool for_kernel)
{
    int flags = O_CLOEXEC | O_NONBLOCK | (for_kernel ? 0 : UFFD_USER_MODE_ONLY);
    int uffd = (int)syscall(SYS_userfaultfd, flags);
    if (uffd < 0 && for_kernel) {
        int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        if (device < 0)
            return -errno;
        uffd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
        close(device);
    }
    if (uffd < 0)
        return -errno;
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
    if (ioctl(uffd, UFFDIO_API, &api)) {
        close(uffd);
        return -ENOTSUP;
    }
    return uffd;
}

static enum sp_check_watch_level open_best(int *uffd)
{
    *uffd = open_uffd(true);
    if (*uffd >= 0)
        return SP_CHECK_WATCH_FULL;
    *uffd = open_uffd(false);
    return *uffd >= 0 ? SP_CHECK_WATCH_USER : SP_CHECK_WATCH_NONE;
}

enum sp_check_watch_level sp_check_watch_try(void)
{
    int uffd;
    enum sp_check_watch_level level = open_best(&uffd);
    if (uffd >= 0)
        close(uffd);
    return level;
}

/* Whoever waits looks again, and is told of again where its page is still closed. */
static void wake_all(void)
{
    struct uffdio_range range = {.start = watching.window, .len = watching.window_bytes};
    ioctl(watching.uffd, UFFDIO_WAKE, &range);
}

static void *read_touches(void *unused)
{
    (void)unused;
    struct uffd_msg message;
    for (;;) {
        struct pollfd polled = {.fd = watching.uffd, .events = POLLIN};
        if (poll(&polled, 1, LOST_WAKE_MILLISECONDS) == 0) {
            wake_all();
            continue;
        }
        ssize_t count = read(watching.uffd, &message, sizeof message);
        if (count != sizeof message) {
            if (count < 0 && (errno == EINTR || errno == EAGAIN))
                continue;
            break;
        }
        if (message.event != UFFD_EVENT_PAGEFAULT)
            continue; /* none other was asked for */
        struct sp_touch touch = {
            .address = message.arg.pagefault.address,
            .is_write =
                message.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP),
            .thread = (pid_t)message.arg.pagefault.feat.ptid,
        };
        watching.touched(&touch);
    }
    /* Nobody is to wait for ever: without the descriptor everything goes through. */
    int uffd = watching.uffd;
    watching.uffd = -1;
    close(uffd);
    return NULL;
}

int sp_check_watch_start(void (*touched)(const struct sp_touch *touch))
{
    int uffd;
    if (open_best(&uffd) == SP_CHECK_WATCH_NONE)
        return uffd;
    sp_window_range(&watching.window, &watching.window_bytes);
    watching.touched = touched;
    watching.uffd = uffd;
    int error = sp_thread_start_detached(read_touches, NULL, THREAD_STACK_BYTES);
    if (error) {
        close(uffd);
        watching.uffd = -1;
    }
    return error;
}

int sp_check_watch_add(void *start, size_t bytes)
{
    struct uffdio_register arguments = {
        .range = {.start = (uintptr_t)start, .len = bytes},
        .mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP,
    };
    if (ioctl(watching.uffd, UFFDIO_REGISTER, &arguments))
        return -errno;
    sp_check_watch_close(start, bytes);
    return 0;
}

void sp_check_watch_close(void *start, size_t bytes)
{
    if (bytes)
        madvise(start, bytes, MADV_DONTNEED);
}

/* Who waits goes on as well. */
void sp_check_watch_remove(void *start, size_t bytes)
{
    struct uffdio_range range = {.start = (uintptr_t)start, .len = bytes};
    if (ioctl(watching.uffd, UFFDIO_UNREGISTER, &range))
        ioctl(watching.uffd, UFFDIO_WAKE, &range);
}

static int set_protection(uintptr_t start, size_t bytes, bool may_write)
{
    struct uffdio_writeprotect arguments = {
        .range = {.start = start, .len = bytes},
        /* Without waking: open does that itself. */
        .mode = may_write ? UFFDIO_WRITEPROTECT_MODE_DONTWAKE : UFFDIO_WRITEPROTECT_MODE_WP,
    };
    int result;
    do
        result = ioctl(watching.uffd, UFFDIO_WRITEPROTECT, &arguments);
    while (result && errno == EAGAIN); /* the address space was just being changed */
    return result ? -errno : 0;
}

/* Enters all pages that are not there. An older kernel does not know CONTINUE_MODE_WP: there, pages
 * for reading are open for writing until set_protection follows. */
static int enter_pages(uintptr_t start, size_t bytes, bool may_write)
{
    static bool no_wp;
    uintptr_t end = start + bytes;
    while (start < end) {
        struct uffdio_continue arguments = {
            .range = {.start = start, .len = end - start},
            .mode = UFFDIO_CONTINUE_MODE_DONTWAKE | (may_write || no_wp ? 0 : CONTINUE_MODE_WP),
        };
        if (!ioctl(watching.uffd, UFFDIO_CONTINUE, &arguments))
            return 0;
        if (errno == EINVAL && !may_write && !no_wp)
            no_wp = true;
        else if (errno == EEXIST)
            start += sp_check_page_bytes();
        else if (errno == EAGAIN)
            start += arguments.mapped > 0 ? (size_t)arguments.mapped : 0;
        else
            return -errno;
    }
    return 0;
}

void sp_check_watch_open(void *start, size_t bytes, bool may_write)
{
    uintptr_t first = (uintptr_t)start;
    int error = 0;
    if (!bytes)
        return;
    if (fallocate(sp_window_file(), FALLOC_FL_KEEP_SIZE, (off_t)(first - watching.window),
                  (off_t)bytes))
        error = -errno;
    if (!error)
        error = enter_pages(first, bytes, may_write);
    if (!error)
        error = set_protection(first, bytes, may_write);
    struct uffdio_range range = {.start = first, .len = bytes};
    if (error || ioctl(watching.uffd, UFFDIO_WAKE, &range))
        sp_check_watch_remove(start, bytes);
}

void sp_check_watch_protect(void *start, size_t bytes, bool may_write)
{
    if (bytes)
        set_protection((uintptr_t)start, bytes, may_write);
}

unsigned sp_check_watch_locate(pid_t thread, uintptr_t *instruction, uintptr_t *stack,
                               unsigned max_words)
{
    char path[64], text[256];
    *instruction = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return 0;
    text[length] = 0;
    /* "-1 SP PC", or in a system call its number and six arguments before these two. */
    char *last = strrchr(text, ' ');
    if (!last)
        return 0; /* "running" */
    *instruction = strtoull(last + 1, NULL, 16);
    *last = 0;
    last = strrchr(text, ' ');
    uintptr_t pointer = last ? strtoull(last + 1, NULL, 16) : 0;
    /* As much as there is: near its end a stack has fewer words. */
    for (unsigned words = max_words; pointer && words > 0; words /= 2) {
        struct iovec to = {stack, words * sizeof *stack};
        struct iovec from = {(void *)pointer, words * sizeof *stack};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)to.iov_len)
            return words;
    }
    return 0;
}
