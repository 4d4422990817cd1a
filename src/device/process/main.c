/* samepage-device: the process of one device with memory of its own (docs/device-process.md).
 *
 *     samepage-device START BYTES BACKEND      (hexadecimal: the window)
 *     samepage-device --drm-nodes              (for `samepage devices`)
 *
 * Started by the library, never by hand. The main thread reserves the window before anything else
 * can lie there, says hello, starts the loop and the watcher, and is then the control thread: it
 * serves messages until the socket ends. Owns the rings' mapping and the host's pages; both stay
 * until the process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/process/message.h"
#include "device/process/process.h"
#include "util/alloc.h"
#include "util/spawn.h"
#include "util/thread.h"
#include "util/wire.h"

/* As the CPU device's threads: room for kernels' private memory. */
#define LOOP_STACK_BYTES ((size_t)8 << 20)

static const struct sp_backend *const backends[] = {&sp_virtual_backend, &sp_cuda_backend};

#define NUM_BACKENDS (sizeof backends / sizeof backends[0])

/* Code as it came, with what the backend made of it. */
struct loaded {
    void *code;
    struct sp_program_info *info;
    struct sp_kernel_code *codes;
    uint32_t num_codes;
};

static struct {
    const struct sp_backend *backend;
    struct sp_backend_setup setup;
    struct loaded *loaded[SP_MAX_CODE_SLOTS];
    char refusal[SP_WORDS_BYTES];
    unsigned complaints; /* the loop thread's */
} process;

static int find_backend(const char *name)
{
    for (size_t i = 0; i < NUM_BACKENDS; i++)
        if (!strcmp(backends[i]->name, name))
            process.backend = backends[i];
    return process.backend ? 0 : -ENODEV;
}

/* --- Start ---------------------------------------------------------------------------------------
 */

int sp_process_refuse(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!*process.refusal)
        vsnprintf(process.refusal, sizeof process.refusal, format, arguments);
    va_end(arguments);
    return error;
}

static int reserve(uintptr_t start, size_t bytes)
{
    void *at = mmap((void *)start, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == (void *)start)
        return 0;
    if (at != MAP_FAILED)
        munmap(at, bytes);
    return -EADDRNOTAVAIL;
}

/* The window's addresses, which nothing may have taken yet. Where something has, it is by the luck
 * of address space randomisation: the program starts again without. */
static int reserve_window(char **argv)
{
    struct sp_backend_setup *setup = &process.setup;
    char *end;
    uintptr_t start = strtoull(argv[1], &end, 16);
    setup->window = (unsigned char *)start;
    setup->window_bytes = strtoull(argv[2], &end, 16);
    int error = process.backend->reserve ? process.backend->reserve(start, setup->window_bytes)
                                         : reserve(start, setup->window_bytes);
    if (error != -EADDRNOTAVAIL)
        return error;
    int persona = personality(0xffffffff);
    if (persona >= 0 && !(persona & ADDR_NO_RANDOMIZE) &&
        personality((unsigned long)persona | ADDR_NO_RANDOMIZE) >= 0)
        execv("/proc/self/exe", argv);
    return sp_process_refuse(-EADDRNOTAVAIL,
                             "something else lies at addresses of the window, 0x%" PRIxPTR
                             " to 0x%" PRIxPTR ", in its process",
                             start, start + setup->window_bytes);
}

/* A core would hold all mapped memory of the window; what matters is reported without one. */
static void forbid_core(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    int filter = open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC);
    if (filter >= 0) {
        if (write(filter, "0x31", 4) < 0)
            errno = 0; /* then the limit alone must do */
        close(filter);
    }
}

/* Each exported part is a file. */
static void allow_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int map_files(const int files[SP_HELLO_FILES], struct sp_rings **rings, uint32_t index)
{
    struct sp_backend_setup *setup = &process.setup;
    struct sp_fence_board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, files[SP_HELLO_FENCES], 0);
    if (board == MAP_FAILED)
        return -errno;
    sp_park_init(board, index);
    *rings =
        mmap(NULL, sizeof **rings, PROT_READ | PROT_WRITE, MAP_SHARED, files[SP_HELLO_RINGS], 0);
    if (*rings == MAP_FAILED)
        return -errno;
    /* From here on what ends the process is known, by the first thread as well. */
    sp_fault_report_to(*rings, process.backend->reveal);
    sp_fault_prepare_thread();
    setup->unit = (*rings)->unit;
    setup->host_file = files[SP_HELLO_WINDOW];
    setup->host = mmap(NULL, setup->window_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, setup->host_file, 0);
    if (setup->host == MAP_FAILED)
        return -errno;
    madvise(setup->host, setup->window_bytes, MADV_HUGEPAGE); /* a wish */
    return 0;
}

static int start_threads(int socket, const int files[SP_HELLO_FILES], struct sp_rings *rings,
                         uint32_t spin_us)
{
    int error = sp_fault_watch(socket, files[SP_HELLO_APPLICATION]);
    if (error)
        return error;
    sp_loop_init(process.backend, rings, files[SP_HELLO_COMPLETIONS], spin_us);
    sp_peers_init(process.backend, socket);
    sp_prints_init(rings);
    return sp_thread_start_detached(sp_loop_run, NULL, LOOP_STACK_BYTES);
}

static int choose_buffers(const char *memory)
{
    if (!strcmp(memory, "parts"))
        process.setup.buffers = &sp_memory_file_buffers;
    else if (!strncmp(memory, "drm=", 4))
        return sp_drm_choose(memory + 4, &process.setup.buffers);
    else if (*memory)
        return sp_process_refuse(-ENODEV, "there is no memory of the kind '%s'", memory);
    return 0;
}

/* Takes the first message and answers it. */
static int say_hello(int socket, int window_error)
{
    struct sp_device_message message;
    struct sp_rings *rings = NULL;
    int files[SP_MAX_MESSAGE_FILES], memory_file = -1;
    int error = sp_message_receive(socket, true, &message, files);
    if (error)
        return error;
    process.setup.memory_bytes = message.memory_bytes;
    process.setup.threads = message.threads;
    message.memory[sizeof message.memory - 1] = 0;
    process.setup.ordinal = message.ordinal;
    process.setup.atomic_start = message.atomic_start;
    process.setup.atomic_bytes = message.atomic_bytes;
    error = window_error;
    if (!error)
        error = map_files(files, &rings, message.slot);
    struct sp_device_message reply = {.kind = SP_MESSAGE_HELLO};
    if (!error)
        error = choose_buffers(message.memory);
    if (!error)
        error = process.backend->start(&process.setup, &memory_file, &reply.description);
    if (!error)
        error = start_threads(socket, files, rings, message.spin_us);
    if (error)
        sp_process_refuse(error, "its process could not be set up (%s)", strerror(-error));
    reply.error = error;
    memcpy(reply.words, process.refusal, sizeof reply.words);
    int sent = sp_message_send(socket, true, &reply, &memory_file, 1);
    return error ? error : sent;
}

void sp_process_complain(const char *words)
{
    struct sp_device_message message = {.kind = SP_MESSAGE_COMPLAINT};
    if (process.complaints++ >= SP_MAX_COMPLAINTS)
        return;
    snprintf(message.words, sizeof message.words, "%s", words);
    sp_message_send(SP_SPAWN_CONTROL_FD, true, &message, NULL, 0);
}

/* --- Messages ------------------------------------------------------------------------------------
 */

static void unload(struct loaded *loaded)
{
    if (!loaded)
        return;
    if (loaded->code)
        process.backend->unload(loaded->code);
    for (uint32_t i = 0; loaded->codes && i < loaded->num_codes; i++)
        free((char *)loaded->codes[i].name);
    free(loaded->codes);
    sp_program_info_destroy(loaded->info);
    free(loaded);
}

static int decode(struct loaded *loaded, struct sp_wire_reader *reader)
{
    int error = sp_program_info_decode(reader, &loaded->info);
    if (error)
        return error;
    uint32_t count = sp_wire_get_u32(reader);
    if (count > loaded->info->num_kernels)
        return -EBADMSG;
    loaded->codes = sp_alloc_array(count, sizeof *loaded->codes);
    if (!loaded->codes)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct sp_kernel_code *code = &loaded->codes[i];
        loaded->num_codes = i + 1;
        code->name = sp_wire_get_string(reader);
        code->context_fixed_bytes = sp_wire_get_u64(reader);
        code->context_item_bytes = sp_wire_get_u64(reader);
        code->preferred_multiple = sp_wire_get_u32(reader);
        if (!code->name)
            return reader->failed ? -EBADMSG : -ENOMEM;
    }
    return sp_wire_reader_done(reader) ? 0 : -EBADMSG;
}

static int load(const struct sp_device_message *message, int file, char **log)
{
    struct sp_wire_reader reader;
    size_t bytes = message->info_bytes + message->bytes;
    if (message->slot >= SP_MAX_CODE_SLOTS || file < 0)
        return -EBADMSG;
    struct loaded *loaded = sp_alloc(sizeof *loaded);
    unsigned char *memory = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    int error = loaded ? 0 : -ENOMEM;
    if (!error && memory == MAP_FAILED)
        error = -errno;
    if (!error) {
        sp_wire_reader_init(&reader, memory, message->info_bytes);
        error = decode(loaded, &reader);
    }
    if (!error)
        error = process.backend->load(memory + message->info_bytes, message->bytes, loaded->info,
                                      loaded->codes, loaded->num_codes, log, &loaded->code);
    if (memory != MAP_FAILED)
        munmap(memory, bytes);
    if (error) {
        unload(loaded);
        return error;
    }
    process.loaded[message->slot] = loaded;
    sp_loop_set_code(message->slot, loaded->code);
    return 0;
}

/* A file with the text, and how much there is; -1 and 0 where there is none, or no memory for it:
 * losing it is no error. */
static int log_file(const char *log, uint64_t *bytes)
{
    size_t length = log ? strnlen(log, SP_MAX_LOAD_LOG_BYTES) : 0;
    *bytes = 0;
    int file = length ? memfd_create("samepage-log", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (file < 0)
        return -1;
    if (write(file, log, length) != (ssize_t)length ||
        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL)) {
        close(file);
        return -1;
    }
    *bytes = length;
    return file;
}

static int serve_load(int socket, const struct sp_device_message *message, int file)
{
    char *log = NULL;
    struct sp_device_message reply = {.kind = SP_MESSAGE_LOAD,
                                      .slot = message->slot,
                                      .generation = message->generation,
                                      .error = load(message, file, &log)};
    int text = log_file(log, &reply.bytes);
    int error = sp_message_send(socket, true, &reply, &text, 1);
    if (text >= 0)
        close(text);
    free(log);
    return error;
}

static void serve_unload(uint32_t slot)
{
    if (slot >= SP_MAX_CODE_SLOTS)
        return;
    sp_loop_set_code(slot, NULL);
    unload(process.loaded[slot]);
    process.loaded[slot] = NULL;
}

static void serve(int socket)
{
    struct sp_device_message message;
    int files[SP_MAX_MESSAGE_FILES];
    while (sp_message_receive(socket, true, &message, files) == 0) {
        if (sp_peers_serve(&message, files)) {
            /* done */
        } else if (message.kind == SP_MESSAGE_UNLOAD) {
            serve_unload(message.slot);
        } else if (message.kind == SP_MESSAGE_LOAD) {
            if (serve_load(socket, &message, files[0]))
                return;
        }
        for (unsigned i = 0; i < SP_MAX_MESSAGE_FILES; i++)
            if (files[i] >= 0)
                close(files[i]);
    }
}

int main(int argc, char **argv)
{
    int socket = SP_SPAWN_CONTROL_FD;
    struct stat status;
    if (argc == 2 && !strcmp(argv[1], "--drm-nodes"))
        return sp_drm_print_nodes();
    if (argc != 4 || fstat(socket, &status) || !S_ISSOCK(status.st_mode)) {
        fprintf(stderr,
                "samepage-device %s: the process of one OpenCL device of Samepage. The library "
                "starts it; SAMEPAGE_DEVICES says which devices there are.\n",
                SP_VERSION);
        return 2;
    }
    int error = find_backend(argv[3]);
    if (!error)
        error = reserve_window(argv);
    forbid_core();
    allow_files();
    fcntl(socket, F_SETFD, FD_CLOEXEC);
    if (say_hello(socket, error))
        return 1;
    serve(socket);
    return 0;
}
