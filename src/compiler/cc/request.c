/* See request.h. Bodies are those of protocol.h. Whatever is wrong with a body is
 * SP_CC_BAD_REQUEST; the limits that it starts with hold from the moment they are read. LLVM
 * reports what it cannot survive through a handler, which still answers before the process ends;
 * for a process that dies without, by a signal, the server answers (sp_cc_answer_for).
 *
 * Lack of memory ends LLVM by abort, or by a fault where the stack cannot grow: by no sign of its
 * own. What grows there doubles, as a rule, so it fails while a third of the limit or more is in
 * use: that tells it from a fault of LLVM's (note_memory). */
#include "compiler/cc/request.h"

#include "compiler/cc/code.h"
#include "compiler/cc/front.h"
#include "compiler/cc/link.h"
#include "compiler/cc/target.h"
#include "compiler/kernel_info.h"
#include "util/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <llvm-c/ErrorHandling.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes read before more memory is taken: a header alone cannot make us take a gigabyte. */
#define READ_STEP (UINT64_C(1) << 20)

/* Where the handler of note_memory runs: LLVM may have used up the stack. */
#define SIGNAL_STACK_BYTES (64u << 10)

static struct {
    int fd;
    uint32_t kind;
    struct sp_cc_fate *fate; /* NULL: none */
    uint64_t memory_bytes;   /* its limit; 0: none */
} current = {.fd = -1};      /* the request being served, for the handlers */

static int read_all(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, (char *)bytes + done, size - done, 0);
        if (got == 0)
            return -EPIPE;
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0)
            done += (size_t)got;
    }
    return 0;
}

static int write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t sent = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR)
            return -errno;
        if (sent > 0)
            done += (size_t)sent;
    }
    return 0;
}

static void reply(int fd, uint32_t kind, enum sp_cc_status status, const char *log,
                  const struct sp_wire_writer *result)
{
    struct sp_wire_writer body;
    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, status);
    sp_wire_put_string(&body, log);
    bool whole = status == SP_CC_OK && result;
    if (current.fate)
        atomic_store_explicit(&current.fate->has_answered, true, memory_order_relaxed);
    if (!body.error && !(whole && result->error)) {
        struct sp_cc_header header = {SP_CC_MAGIC, kind,
                                      body.size + (whole ? (uint64_t)result->size : 0)};
        if (!write_all(fd, &header, sizeof(header)) && !write_all(fd, body.bytes, body.size) &&
            whole)
            write_all(fd, result->bytes, result->size);
    }
    sp_wire_writer_finish(&body);
}

static void answer_fatal_error(const char *reason)
{
    bool memory = strstr(reason, "memory") || strstr(reason, "allocat");
    struct sp_cc_text log = {0};
    sp_cc_text_format(&log, "error: the compiler gave up: %s\n", reason);
    if (current.fd >= 0)
        reply(current.fd, current.kind, memory ? SP_CC_NO_MEMORY : SP_CC_INTERNAL, log.bytes, NULL);
    _exit(1);
}

/* The most address space that this process has had; 0: not known. Fit for a signal handler. */
static uint64_t peak_bytes(void)
{
    static const char name[] = "VmPeak:";
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    text[size > 0 ? size : 0] = 0;
    const char *line = strstr(text, name);
    uint64_t kib = 0;
    for (line = line ? line + strlen(name) : ""; *line && *line != '\n'; line++)
        if (*line >= '0' && *line <= '9')
            kib = 10 * kib + (uint64_t)(*line - '0');
    return kib << 10;
}

/* The signal then does what it does by itself: it is blocked until this returns. */
static void note_memory(int signal)
{
    if (peak_bytes() > current.memory_bytes / 3)
        atomic_store_explicit(&current.fate->is_out_of_memory, true, memory_order_relaxed);
    raise(signal);
}

static void watch_memory(void)
{
    static char stack[SIGNAL_STACK_BYTES];
    static const int deaths[] = {SIGABRT, SIGSEGV, SIGBUS};
    struct sigaction action = {.sa_handler = note_memory,
                               .sa_flags = SA_ONSTACK | (int)SA_RESETHAND};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
    for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
        sigaction(deaths[i], &action, NULL);
}

static void set_timer(int which, uint64_t seconds)
{
    struct itimerval timer = {.it_value = {.tv_sec = (time_t)seconds}};
    signal(which == ITIMER_PROF ? SIGPROF : SIGALRM, SIG_DFL);
    setitimer(which, &timer, NULL);
}

static void set_limits(struct sp_wire_reader *reader)
{
    uint32_t seconds = sp_wire_get_u32(reader);
    uint64_t memory_bytes = sp_wire_get_u64(reader);
    if (reader->failed)
        return;
    if (seconds) {
        set_timer(ITIMER_PROF, seconds);
        set_timer(ITIMER_REAL, (uint64_t)seconds * SP_CC_WALL_TIMES);
    }
    if (memory_bytes) {
        struct rlimit limit = {memory_bytes, memory_bytes};
        current.memory_bytes = memory_bytes;
        if (current.fate)
            watch_memory();
        setrlimit(RLIMIT_AS, &limit);
    }
}

static void get_string(struct sp_wire_reader *reader, struct sp_cc_strings *strings)
{
    char *string = sp_wire_get_string(reader);
    if (string)
        sp_cc_strings_add(strings, string);
    else
        reader->failed = true;
    free(string);
}

static void get_strings(struct sp_wire_reader *reader, struct sp_cc_strings *strings)
{
    uint32_t count = sp_wire_get_u32(reader);
    for (uint32_t i = 0; i < count && !reader->failed; i++)
        get_string(reader, strings);
}

static void put_strings(struct sp_wire_writer *writer, const struct sp_cc_strings *strings)
{
    sp_wire_put_u32(writer, (uint32_t)strings->count);
    for (size_t i = 0; i < strings->count; i++)
        sp_wire_put_string(writer, strings->items[i]);
}

static enum sp_cc_status serve_compile(struct sp_wire_reader *body, struct sp_wire_writer *result,
                                       struct sp_cc_text *log)
{
    struct sp_cc_source source = {0};
    struct sp_cc_text bitcode = {0};
    struct sp_cc_strings dependencies = {0};
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    char *text = sp_wire_get_string(body);
    if (!text)
        body->failed = true;
    get_strings(body, &source.options);
    uint32_t headers = sp_wire_get_u32(body);
    for (uint32_t i = 0; i < headers && !body->failed; i++) {
        get_string(body, &source.header_names);
        get_string(body, &source.header_texts);
    }
    if (sp_wire_reader_done(body)) {
        source.text = text;
        source.size = strlen(text);
        status = sp_cc_compile(&source, &bitcode, &dependencies, log);
        sp_wire_put_bytes(result, bitcode.bytes, bitcode.size);
        put_strings(result, &dependencies);
    }
    free(text);
    sp_cc_strings_finish(&source.options);
    sp_cc_strings_finish(&source.header_names);
    sp_cc_strings_finish(&source.header_texts);
    sp_cc_strings_finish(&dependencies);
    sp_cc_text_finish(&bitcode);
    return status;
}

static enum sp_cc_status serve_link(struct sp_wire_reader *body, struct sp_wire_writer *result,
                                    struct sp_cc_text *log)
{
    struct sp_cc_link link = {.flags = sp_wire_get_u32(body)};
    struct sp_program_info info = {0};
    struct sp_cc_text ir = {0};
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    get_strings(body, &link.options);
    uint32_t inputs = sp_wire_get_u32(body);
    for (uint32_t i = 0; i < inputs && !body->failed; i++) {
        link.inputs = sp_cc_reallocate(link.inputs, (link.num_inputs + 1) * sizeof(*link.inputs));
        struct sp_cc_blob *input = &link.inputs[link.num_inputs++];
        input->bytes = sp_wire_get_bytes(body, &input->size);
    }
    if (sp_wire_reader_done(body) && !(link.flags & ~(uint32_t)SP_CC_LINK_LIBRARY)) {
        status = sp_cc_link(&link, &ir, &info, log);
        sp_wire_put_bytes(result, ir.bytes, ir.size);
        sp_program_info_encode(&info, result);
    }
    sp_cc_program_info_finish(&info);
    sp_cc_text_finish(&ir);
    sp_cc_strings_finish(&link.options);
    free(link.inputs);
    return status;
}

static enum sp_cc_status serve_code(struct sp_wire_reader *body, struct sp_wire_writer *result,
                                    struct sp_cc_text *log)
{
    struct sp_cc_code code = {0};
    struct sp_cc_text object = {0};
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    code.ir.bytes = sp_wire_get_bytes(body, &code.ir.size);
    get_strings(body, &code.kernels);
    for (int d = 0; d < 3; d++)
        code.local_size[d] = sp_wire_get_u64(body);
    get_strings(body, &code.options);
    char *target = sp_wire_get_string(body);
    code.target = target;
    if (!target)
        body->failed = true;
    struct sp_kernel_code *kernels = sp_cc_allocate(code.kernels.count * sizeof(*kernels));
    if (sp_wire_reader_done(body)) {
        status = sp_cc_code(&code, &object, kernels, log);
        sp_wire_put_bytes(result, object.bytes, object.size);
        sp_wire_put_u32(result, (uint32_t)code.kernels.count);
        for (size_t i = 0; i < code.kernels.count; i++) {
            sp_wire_put_string(result, kernels[i].name);
            sp_wire_put_u64(result, kernels[i].context_fixed_bytes);
            sp_wire_put_u64(result, kernels[i].context_item_bytes);
            sp_wire_put_u32(result, kernels[i].preferred_multiple);
        }
    }
    free(kernels);
    free(target);
    sp_cc_text_finish(&object);
    sp_cc_strings_finish(&code.kernels);
    sp_cc_strings_finish(&code.options);
    return status;
}

/* The body, grown as it arrives. NULL where the peer went away. */
static unsigned char *read_body(int fd, uint64_t size)
{
    unsigned char *body = NULL;
    uint64_t have = 0;
    do {
        uint64_t step = size - have < READ_STEP + have ? size - have : READ_STEP + have;
        body = sp_cc_reallocate(body, (size_t)(have + step));
        if (read_all(fd, body + have, (size_t)step)) {
            free(body);
            return NULL;
        }
        have += step;
    } while (have < size);
    return body;
}

/* The child's end in words, where that is no limit's. */
static void describe_end(int status, struct sp_cc_text *log)
{
    if (!WIFSIGNALED(status))
        sp_cc_text_format(log, "error: the compiler ended without an answer (status %d)\n",
                          WEXITSTATUS(status));
    else if (WTERMSIG(status) == SIGKILL)
        sp_cc_text_format(log, "error: the compiler was killed, by somebody or since the machine "
                               "had no memory left: build again, with less beside it\n");
    else
        sp_cc_text_format(log,
                          "error: the compiler crashed (signal %d, %s); other options or "
                          "another form of the source may avoid it\n",
                          WTERMSIG(status), strsignal(WTERMSIG(status)));
}

void sp_cc_answer_for(int fd, const struct sp_cc_fate *fate, int status)
{
    uint32_t kind = atomic_load_explicit(&fate->kind, memory_order_relaxed);
    if (!kind || atomic_load_explicit(&fate->has_answered, memory_order_relaxed))
        return;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    enum sp_cc_status answer = SP_CC_CRASHED;
    struct sp_cc_text log = {0};
    if (atomic_load_explicit(&fate->is_out_of_memory, memory_order_relaxed))
        answer = SP_CC_NO_MEMORY;
    else if (signal == SIGPROF)
        answer = SP_CC_NO_TIME;
    else if (signal == SIGALRM)
        answer = SP_CC_HUNG;
    else
        describe_end(status, &log);
    /* Short enough for the empty socket: this does not wait. */
    reply(fd, kind, answer, log.size ? log.bytes : "", NULL);
    sp_cc_text_finish(&log);
}

void sp_cc_serve(int fd, struct sp_cc_fate *fate)
{
    struct sp_cc_header header;
    current.fate = fate;
    if (read_all(fd, &header, sizeof(header)))
        return;
    current.fd = fd;
    current.kind = header.kind;
    if (fate)
        atomic_store_explicit(&fate->kind, header.kind, memory_order_relaxed);
    LLVMInstallFatalErrorHandler(answer_fatal_error);
    if (header.magic != SP_CC_MAGIC || header.body_bytes > SP_CC_MAX_BODY_BYTES) {
        reply(fd, header.kind, SP_CC_BAD_REQUEST, "error: not a request of this version\n", NULL);
        return;
    }
    unsigned char *body = read_body(fd, header.body_bytes);
    if (!body)
        return;
    struct sp_wire_reader reader;
    struct sp_wire_writer result;
    struct sp_cc_text log = {0};
    enum sp_cc_status status = SP_CC_BAD_REQUEST;
    sp_wire_reader_init(&reader, body, (size_t)header.body_bytes);
    sp_wire_writer_init(&result);
    set_limits(&reader);
    if (header.kind != SP_CC_CODE &&
        sp_cc_target_problem()) { /* said early, where there is a log */
        sp_cc_text_format(&log, "%s", sp_cc_target_problem());
        status = SP_CC_SOURCE_ERROR;
    } else if (header.kind == SP_CC_COMPILE)
        status = serve_compile(&reader, &result, &log);
    else if (header.kind == SP_CC_LINK)
        status = serve_link(&reader, &result, &log);
    else if (header.kind == SP_CC_CODE)
        status = serve_code(&reader, &result, &log);
    reply(fd, header.kind, status, log.bytes, &result);
    sp_cc_text_finish(&log);
    sp_wire_writer_finish(&result);
    free(body);
}
