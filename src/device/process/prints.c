/* What kernels print, on its way to the application's standard output.
 *
 * It has to come from the application's own process: that is where a program redirects its output,
 * and where the text has to be before the command is told as ended. So standard output is here a
 * stream into a ring of text in the shared memory, which the application empties before it reads
 * completions.
 *
 * The lock is the writers': threads of a pool may print at the same time. Who finds the ring full
 * wakes the application and sleeps until there is room.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/process/process.h"
#include "util/futex.h"

static struct {
    pthread_mutex_t lock;
    struct sp_rings *rings;
    uint64_t tail;
} prints = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* How much room there is, once there is some. */
static uint64_t await_room(void)
{
    struct sp_rings *rings = prints.rings;
    for (;;) {
        /* Set before the look at the head: the application moves the head, then looks at this word.
         */
        atomic_store_explicit(&rings->print_waits, 1, memory_order_seq_cst);
        uint64_t used =
            prints.tail - atomic_load_explicit(&rings->print_head, memory_order_seq_cst);
        if (used < SP_PRINT_RING_BYTES) {
            atomic_store_explicit(&rings->print_waits, 0, memory_order_relaxed);
            return SP_PRINT_RING_BYTES - used;
        }
        sp_loop_wake_application();
        sp_futex_wait_shared(&rings->print_waits, 1);
    }
}

static ssize_t write_text(void *unused, const char *text, size_t bytes)
{
    (void)unused;
    pthread_mutex_lock(&prints.lock);
    for (size_t done = 0; done < bytes;) {
        uint64_t room = await_room(), at = prints.tail % SP_PRINT_RING_BYTES;
        uint64_t count = bytes - done < room ? bytes - done : room;
        if (count > SP_PRINT_RING_BYTES - at)
            count = SP_PRINT_RING_BYTES - at;
        memcpy(prints.rings->prints + at, text + done, count);
        done += count;
        prints.tail += count;
        /* A release of the text; and sequentially consistent, before the look at
         * application_sleeps. */
        atomic_store_explicit(&prints.rings->print_tail, prints.tail, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&prints.lock);
    return (ssize_t)bytes;
}

void sp_prints_init(struct sp_rings *rings)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_text});
    prints.rings = rings;
    if (stream)
        stdout = stream; /* else it stays what the application's was when we were started */
}
