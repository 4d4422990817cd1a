/* In place of samepage-device: says hello as it should, and answers the first command with nonsense
 * of the kind that SAMEPAGE_TEST_NONSENSE names. Where SAMEPAGE_TEST_REAL_DEVICE names the real
 * program, only the device with one thread is the fake one. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/process/message.h"
#include "util/futex.h"
#include "util/spawn.h"
#include "util/thread.h"

static struct sp_rings *rings;
static atomic_uint *sleeps; /* of the fence board: the word to sleep on */
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

static void finish_first(uint32_t unexports)
{
    rings->completions[0] =
        (struct sp_completion){.number = 1, .kind = SP_COMPLETION_FINISHED, .unexports = unexports};
    atomic_store(&rings->completion_tail, 1);
    wake();
}

/* The first command is done, and something was said of exports: not as it should be. */
static void export_nonsense(const char *kind, uint64_t start)
{
    enum { BYTES = 2 << 20 };
    struct sp_device_message message = {.kind = SP_MESSAGE_EXPORT, .start = start, .bytes = BYTES};
    int file = memfd_create("fake", MFD_ALLOW_SEALING);
    bool is_sealed = strcmp(kind, "export unsealed") != 0;
    bool is_sent = true;
    uint32_t announced = 0;
    uint64_t bytes = strcmp(kind, "export short") ? BYTES : BYTES - 4096;
    if (ftruncate(file, (off_t)bytes) ||
        (is_sealed && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)))
        _exit(1);
    if (!strcmp(kind, "export outside")) {
        message.start = UINT64_C(0) - BYTES;
    } else if (!strcmp(kind, "export askew")) {
        message.start += 4096;
    } else if (!strcmp(kind, "export nothing")) {
        message.bytes = 0;
    } else if (!strcmp(kind, "export without file")) {
        file = -1;
    } else if (!strcmp(kind, "unexport outside")) {
        message.kind = SP_MESSAGE_UNEXPORT;
        message.unexports = 1;
        message.start -= 4096;
    } else if (!strcmp(kind, "unexport again")) {
        message.kind = SP_MESSAGE_UNEXPORT;
    } else if (!strcmp(kind, "unexport never")) {
        is_sent = false;
        announced = 1;
    }
    if (is_sent && sp_message_send(SP_SPAWN_CONTROL_FD, true, &message, &file, 1))
        _exit(1);
    finish_first(announced);
}

/* One more than there may be, without an end. */
static void complain_too_much(void)
{
    struct sp_device_message message = {.kind = SP_MESSAGE_COMPLAINT};
    memset(message.words, '\n', sizeof message.words);
    for (unsigned i = 0; i <= SP_MAX_COMPLAINTS; i++)
        if (sp_message_send(SP_SPAWN_CONTROL_FD, true, &message, NULL, 0))
            _exit(1);
}

/* The hello is left for it. */
static void be_real_unless_chosen(char **argv)
{
    struct sp_device_message message;
    const char *real = getenv("SAMEPAGE_TEST_REAL_DEVICE");
    if (real && recv(SP_SPAWN_CONTROL_FD, &message, sizeof message, MSG_PEEK) == sizeof message &&
        message.threads != 1)
        execv(real, argv);
}

/* Ends with the application, as a real one does. */
static void *watch(void *unused)
{
    struct pollfd polled = {.fd = SP_SPAWN_CONTROL_FD};
    (void)unused;
    poll(&polled, 1, -1);
    _exit(0);
}

int main(int argc, char **argv)
{
    (void)argc;
    be_real_unless_chosen(argv);
    struct sp_device_message message;
    int files[SP_MAX_MESSAGE_FILES], socket = SP_SPAWN_CONTROL_FD;
    const char *kind = getenv("SAMEPAGE_TEST_NONSENSE");
    if (!kind || sp_message_receive(socket, true, &message, files) ||
        sp_thread_start_detached(watch, NULL, 0))
        return 1;
    rings = mmap(NULL, sizeof *rings, PROT_READ | PROT_WRITE, MAP_SHARED, files[SP_HELLO_RINGS], 0);
    completions = files[SP_HELLO_COMPLETIONS];
    struct sp_fence_board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, files[SP_HELLO_FENCES], 0);
    sleeps = &board->lines[message.slot].process_sleeps;
    message = (struct sp_device_message){.kind = SP_MESSAGE_HELLO};
    if (!strcmp(kind, "hello"))
        message.kind = 99;
    if (!strcmp(kind, "memory")) { /* which its owner could take away from under its peers */
        int file = memfd_create("fake", MFD_ALLOW_SEALING);
        if (sp_message_send(socket, true, &message, &file, 1))
            return 1;
    } else if (sp_message_send(socket, true, &message, NULL, 0)) {
        return 1;
    }
    while (!atomic_load(&rings->command_tail)) {
        atomic_store(sleeps, 1);
        if (!atomic_load(&rings->command_tail))
            sp_futex_wait_shared(sleeps, 1);
    }
    if (!strcmp(kind, "message")) {
        if (write(socket, "nonsense", 8) < 0)
            return 1;
    } else if (!strcmp(kind, "complaints")) {
        complain_too_much();
    } else if (!strcmp(kind, "no answer")) {
        finish_first(0);
    } else if (strstr(kind, "export")) {
        export_nonsense(kind, ((struct sp_command *)rings->commands)->range.start);
    } else {
        write_nonsense(kind);
    }
    for (;;)
        pause();
}
