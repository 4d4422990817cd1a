/* Between the checking mode (check.c) and what catches the host's accesses (check_watch.c): a
 * userfaultfd.
 *
 * A watched range lies in the window's file. Closed pages of it are in no page table of the
 * application, so that the first access waits until our thread has judged it; their content stays
 * in the file, where devices and other processes reach it. Ranges are whole pages. Thread-safe; the
 * caller orders its calls.
 */
#ifndef SP_SVM_CHECK_WATCH_H
#define SP_SVM_CHECK_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum sp_check_watch_level {
    SP_CHECK_WATCH_NONE, /* no userfaultfd for us */
    SP_CHECK_WATCH_USER, /* a system call that is given closed memory fails with EFAULT */
    SP_CHECK_WATCH_FULL, /* it waits like anybody else */
};

/* One access that waits. */
struct sp_touch {
    uintptr_t address;
    bool is_write;
    pid_t thread;
};

/* What this process may do, found out by trying; opens nothing that stays. */
enum sp_check_watch_level sp_check_watch_try(void);

/* Starts the thread, which calls `touched` for each access. The access goes on when the page is
 * opened, and may be reported more than once. 0 or a negative errno. */
int sp_check_watch_start(void (*touched)(const struct sp_touch *touch));

/* Watches a range; all of it is closed. 0 or a negative errno. */
int sp_check_watch_add(void *start, size_t bytes);

/* Ends the watch: everything goes through for good. */
void sp_check_watch_remove(void *start, size_t bytes);

/* Closes; opens for reading, or for writing, too, and lets go who waits there. */
void sp_check_watch_close(void *start, size_t bytes);
void sp_check_watch_open(void *start, size_t bytes, bool may_write);

/* Changes what pages that are open may be used for. */
void sp_check_watch_protect(void *start, size_t bytes, bool may_write);

/* Where the thread is that waits: its instruction and the top of its stack, as many words as can be
 * had. */
unsigned sp_check_watch_locate(pid_t thread, uintptr_t *instruction, uintptr_t *stack,
                               unsigned max_words);

size_t sp_check_page_bytes(void);

#endif
