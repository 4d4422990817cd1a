/* In place of samepage-device: says hello as it should, and answers the first command with nonsense
 * of the kind that SAMEPAGE_TEST_NONSENSE names. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/process/message.h"
#include "util/futex.h"
#include "util/spawn.h"
#include "util/thread.h"

static struct sp_rings *rings;
static int completions;

static void wake(void)
{
    uint64_t one = 1;
    if (write(completions, &one, sizeof one) < 0)
        _exit(1);
}

static void write_nonsense(const char *kind)
{
    struct sp_completion *record = &rings->completions[0];
    memset(rings->completions, 0xff, sizeof rings->completions);
    uint64_t tail = 1;
    if (!strcmp(kind, "tail"))
        tail = UINT64_C(1) << 40;
    else if (!strcmp(kind, "number"))
        *record = (struct sp_completion){.number = 12345, .kind = SP_COMPLETION_FINISHED};
    else if (!strcmp(kind, "kind"))
        *record = (struct sp_completion){.number = 1, .kind = 77};
    else if (!strcmp(kind, "twice")) {
        record[0] = record[1] =
            (struct sp_completion){.number = 1, .kind = SP_COMPLETION_FINISHED, .error = 1 << 30};
        tail = 2;
    }
    /* "rings": all of the shared memory, with the words that wake. */
    if (!strcmp(kind, "rings"))
        memset(rings, 0xff, sizeof *rings);
    else
        atomic_store(&rings->completion_tail, tail);
    wake();
}

/* Ends with the application, as a real one does. */
static void *watch(void *unused)
{
    struct pollfd polled = {.fd = SP_SPAWN_CONTROL_FD};
    (void)unused;
    poll(&polled, 1, -1);
    _exit(0);
}

int main(void)
{
    struct sp_device_message message;
    int files[SP_MAX_MESSAGE_FILES], socket = SP_SPAWN_CONTROL_FD;
    const char *kind = getenv("SAMEPAGE_TEST_NONSENSE");
    if (!kind || sp_message_receive(socket, true, &message, files) ||
        sp_thread_start_detached(watch, NULL, 0))
        return 1;
    rings = mmap(NULL, sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED, files[SP_HELLO_RINGS], 0);
    completions = files[SP_HELLO_COMPLETIONS];
    message = (struct sp_device_message){.kind = SP_MESSAGE_HELLO};
    if (!strcmp(kind, "hello"))
        message.kind = 99;
    if (!strcmp(kind, "memory")) { /* which its owner could take away from under its peers */
        int file = memfd_create("fake", MFD_ALLOW_SEALING);
        if (sp_message_send(socket, &message, &file, 1))
            return 1;
    } else if (sp_message_send(socket, &message, NULL, 0)) {
        return 1;
    }
    while (!atomic_load(&rings->command_tail)) {
        atomic_store(&rings->process_sleeps, 1);
        if (!atomic_load(&rings->command_tail))
            sp_futex_wait_shared(&rings->process_sleeps, 1);
    }
    if (!strcmp(kind, "message")) {
        if (write(socket, "nonsense", 8) < 0)
            return 1;
    } else {
        write_nonsense(kind);
    }
    for (;;)
        pause();
}
