/* The server: requests over the control socket, replies, limits, rubbish, and its end. */
#include "compiler/kernel_info.h"
#include "compiler/protocol.h"
#include "util/wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Code generation works within it. The sanitizers' shadow takes more address space than any
 * limit. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CODE_MEMORY_BYTES 0
#else
#define CODE_MEMORY_BYTES (UINT64_C(2) << 30)
#endif

static int control;
static pid_t server;

static int start(void **state)
{
    int pair[2];
    (void)state;
    setenv("SAMEPAGE_BUILTINS", SP_TEST_BUILTINS, 0); /* or a test's own */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -1;
    server = fork();
    if (server == 0) {
        dup2(pair[1], SP_CC_CONTROL_FD);
        execl(SP_TEST_CC, SP_TEST_CC, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    control = pair[0];
    return server < 0;
}

static int stop(void **state)
{
    int status;
    (void)state;
    close(control);
    return waitpid(server, &status, 0) == server && WIFEXITED(status) && !WEXITSTATUS(status) ? 0
                                                                                              : -1;
}

/* A connection to a fresh child. */
static int connect_child(void)
{
    int pair[2];
    struct sp_cc_hello hello = {SP_CC_MAGIC, SP_CC_VERSION};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } ancillary = {0};
    struct iovec data = {&hello, sizeof(hello)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &ancillary,
                             .msg_controllen = sizeof(ancillary)};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &pair[1], sizeof(int));
    assert_int_equal(sendmsg(control, &message, 0), sizeof(hello));
    close(pair[1]);
    return pair[0];
}

static bool receive(int fd, void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = recv(fd, (char *)bytes + done, size - done, 0);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

/* Sends a body; the reply's body in *reply, to be freed, and its size, or false at the socket's
 * end. */
static bool ask(uint32_t kind, const struct sp_wire_writer *body, unsigned char **reply,
                size_t *size)
{
    int fd = connect_child();
    struct sp_cc_header header = {SP_CC_MAGIC, kind, body->size};
    assert_int_equal(send(fd, &header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
    if (body->size)
        assert_int_equal(send(fd, body->bytes, body->size, MSG_NOSIGNAL), body->size);
    bool whole = receive(fd, &header, sizeof(header));
    if (whole) {
        assert_int_equal(header.magic, SP_CC_MAGIC);
        assert_int_equal(header.kind, kind);
        *size = header.body_bytes;
        *reply = malloc(*size + 1);
        whole = receive(fd, *reply, *size);
    }
    close(fd);
    return whole;
}

static void put_source(struct sp_wire_writer *body, uint32_t seconds, uint64_t memory,
                       const char *source)
{
    sp_wire_writer_init(body);
    sp_wire_put_u32(body, seconds);
    sp_wire_put_u64(body, memory);
    sp_wire_put_string(body, source);
    sp_wire_put_u32(body, 1);
    sp_wire_put_string(body, "-DN=3");
    sp_wire_put_u32(body, 2);
    sp_wire_put_string(body, "folder/given.h");
    sp_wire_put_string(body, "#define GIVEN N\n");
    sp_wire_put_string(body, "other.h");
    sp_wire_put_string(body, "#warning seen\n");
}

static void test_whole_way(void **state)
{
    struct sp_wire_writer body;
    struct sp_wire_reader reader;
    struct sp_program_info *info = NULL;
    unsigned char *compiled, *linked, *coded;
    size_t size, bitcode_size, ir_size, object_size;
    (void)state;
    put_source(&body, 60, 0,
               "#include \"folder/given.h\"\n#include \"other.h\"\n"
               "kernel void k(global int *a) { a[get_global_id(0)] = GIVEN; }\n");
    assert_true(ask(SP_CC_COMPILE, &body, &compiled, &size));
    sp_wire_writer_finish(&body);
    sp_wire_reader_init(&reader, compiled, size);
    assert_int_equal(sp_wire_get_u32(&reader), SP_CC_OK);
    char *log = sp_wire_get_string(&reader);
    assert_non_null(strstr(log, "other.h:1:2: warning: seen"));
    free(log);
    const void *bitcode = sp_wire_get_bytes(&reader, &bitcode_size);
    assert_int_equal(sp_wire_get_u32(&reader), 0);
    assert_true(sp_wire_reader_done(&reader));

    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, 60);
    sp_wire_put_u64(&body, 0);
    sp_wire_put_u32(&body, 0);
    sp_wire_put_u32(&body, 0);
    sp_wire_put_u32(&body, 1);
    sp_wire_put_bytes(&body, bitcode, bitcode_size);
    assert_true(ask(SP_CC_LINK, &body, &linked, &size));
    sp_wire_writer_finish(&body);
    sp_wire_reader_init(&reader, linked, size);
    assert_int_equal(sp_wire_get_u32(&reader), SP_CC_OK);
    free(sp_wire_get_string(&reader));
    const void *ir = sp_wire_get_bytes(&reader, &ir_size);
    assert_int_equal(sp_program_info_decode(&reader, &info), 0);
    assert_true(sp_wire_reader_done(&reader));
    assert_int_equal(info->num_kernels, 1);
    assert_int_equal(sp_program_info_find(info, "k")->args[0].effect, SP_EFFECT_WRITE);
    sp_program_info_destroy(info);

    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, 60);
    sp_wire_put_u64(&body, CODE_MEMORY_BYTES);
    sp_wire_put_bytes(&body, ir, ir_size);
    sp_wire_put_u32(&body, 1);
    sp_wire_put_string(&body, "k");
    for (int d = 0; d < 3; d++)
        sp_wire_put_u64(&body, 0);
    sp_wire_put_u32(&body, 0);
    sp_wire_put_string(&body, "");
    assert_true(ask(SP_CC_CODE, &body, &coded, &size));
    sp_wire_writer_finish(&body);
    sp_wire_reader_init(&reader, coded, size);
    assert_int_equal(sp_wire_get_u32(&reader), SP_CC_OK);
    free(sp_wire_get_string(&reader));
    const char *object = sp_wire_get_bytes(&reader, &object_size);
    assert_memory_equal(object, "\177ELF", 4);
    assert_int_equal(sp_wire_get_u32(&reader), 1);
    log = sp_wire_get_string(&reader);
    assert_string_equal(log, "k");
    free(log);
    free(compiled);
    free(linked);
    free(coded);
}

static uint32_t status_of(uint32_t kind, const void *bytes, size_t size)
{
    struct sp_wire_writer body = {(unsigned char *)bytes, size, size, 0};
    struct sp_wire_reader reader;
    unsigned char *reply;
    assert_true(ask(kind, &body, &reply, &size));
    sp_wire_reader_init(&reader, reply, size);
    uint32_t status = sp_wire_get_u32(&reader);
    free(reply);
    return status;
}

static void test_rubbish_is_a_bad_request(void **state)
{
    static const unsigned char rubbish[64] = {0, 0, 0, 0, 0,   0,   0,   0,
                                              0, 0, 0, 0, 255, 255, 255, 255};
    (void)state;
    for (uint32_t kind = 0; kind < 5; kind++)
        for (size_t size = 0; size <= sizeof(rubbish); size += 4)
            assert_int_equal(status_of(kind, rubbish, size), SP_CC_BAD_REQUEST);
}

static void test_header_names_stay_inside(void **state)
{
    static const char *const names[] = {"../out.h", "/tmp/out.h", "a/../../out.h", "", "a//b.h"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct sp_wire_writer body;
        sp_wire_writer_init(&body);
        sp_wire_put_u32(&body, 10);
        sp_wire_put_u64(&body, 0);
        sp_wire_put_string(&body, "");
        sp_wire_put_u32(&body, 0);
        sp_wire_put_u32(&body, 1);
        sp_wire_put_string(&body, names[i]);
        sp_wire_put_string(&body, "text");
        assert_int_equal(status_of(SP_CC_COMPILE, body.bytes, body.size), SP_CC_SOURCE_ERROR);
        sp_wire_writer_finish(&body);
    }
}

/* Source that clang works on for ever: the child ends at its limit, which the server says. */
static void test_time_limit(void **state)
{
    struct sp_wire_writer body;
    time_t begin = time(NULL);
    (void)state;
    put_source(&body, 1, 0,
               "#define A 1, 1, 1, 1, 1, 1, 1, 1,\n#define B A A A A A A A A\n"
               "#define C B B B B B B B B\n#define D C C C C C C C C\n#define E D D D D D D D D\n"
               "#define F E E E E E E E E\n#define G F F F F F F F F\n#define H G G G G G G G G\n"
               "constant int a[] = {H H H H 1};\n");
    assert_int_equal(status_of(SP_CC_COMPILE, body.bytes, body.size), SP_CC_NO_TIME);
    sp_wire_writer_finish(&body);
    assert_true(time(NULL) - begin < 20);
}

static void test_memory_limit(void **state)
{
    struct sp_wire_writer body;
    (void)state;
    put_source(&body, 20, UINT64_C(64) << 20, "kernel void k() {}\n");
    assert_int_not_equal(status_of(SP_CC_COMPILE, body.bytes, body.size), SP_CC_OK);
    sp_wire_writer_finish(&body);
    put_source(&body, 20, 0, "kernel void k() {}\n");
    assert_int_equal(status_of(SP_CC_COMPILE, body.bytes, body.size), SP_CC_OK);
    sp_wire_writer_finish(&body);
}

/* The status of linking what `source` compiles to. */
static uint32_t link_status(const char *source)
{
    struct sp_wire_writer body;
    struct sp_wire_reader reader;
    unsigned char *compiled;
    size_t size, bitcode_size;
    put_source(&body, 60, 0, source);
    assert_true(ask(SP_CC_COMPILE, &body, &compiled, &size));
    sp_wire_writer_finish(&body);
    sp_wire_reader_init(&reader, compiled, size);
    assert_int_equal(sp_wire_get_u32(&reader), SP_CC_OK);
    free(sp_wire_get_string(&reader));
    const void *bitcode = sp_wire_get_bytes(&reader, &bitcode_size);
    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, 60);
    sp_wire_put_u64(&body, 0);
    sp_wire_put_u32(&body, 0);
    sp_wire_put_u32(&body, 0);
    sp_wire_put_u32(&body, 1);
    sp_wire_put_bytes(&body, bitcode, bitcode_size);
    uint32_t status = status_of(SP_CC_LINK, body.bytes, body.size);
    sp_wire_writer_finish(&body);
    free(compiled);
    return status;
}

static char library[] = "/tmp/samepage-test-library-XXXXXX";

/* A server of its own, whose builtin library is a copy. */
static int start_with_copy(void **state)
{
    char buffer[65536];
    FILE *from = fopen(SP_TEST_BUILTINS, "r");
    int fd = mkstemp(library);
    if (!from || fd < 0)
        return -1;
    for (size_t got; (got = fread(buffer, 1, sizeof(buffer), from));)
        if (write(fd, buffer, got) != (ssize_t)got)
            return -1;
    fclose(from);
    close(fd);
    setenv("SAMEPAGE_BUILTINS", library, 1);
    return start(state);
}

static int stop_with_copy(void **state)
{
    unlink(library);
    setenv("SAMEPAGE_BUILTINS", SP_TEST_BUILTINS, 1);
    return stop(state);
}

/* The server keeps the library that it read: another file in its place, as an update leaves it,
 * changes nothing for a program that runs. */
static void test_library_is_replaced(void **state)
{
    static const char source[] = "kernel void k(global float *a) { a[0] = fmax(a[1], a[2]); }\n";
    (void)state;
    assert_int_equal(link_status(source), SP_CC_OK);
    assert_int_equal(truncate(library, 1000), 0);
    assert_int_equal(link_status(source), SP_CC_OK);
}

/* A library that cannot be read fails the link, not the server. */
static void test_library_is_broken(void **state)
{
    static const char source[] = "kernel void k(global float *a) { a[0] = fmax(a[1], a[2]); }\n";
    (void)state;
    assert_int_equal(truncate(library, 1000), 0);
    assert_int_equal(link_status(source), SP_CC_INTERNAL);
    assert_int_equal(link_status(source), SP_CC_INTERNAL);
}

/* --- What it leaves in TMPDIR
 * ---------------------------------------------------------------------- */

static char temporary[] = "/tmp/samepage-test-folder-XXXXXX";

/* How many servers' folders there are; all get the age of an hour. */
static int folders(void)
{
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 3600}, {.tv_sec = time(NULL) - 3600}};
    DIR *parent = opendir(temporary);
    int count = 0;
    assert_non_null(parent);
    for (struct dirent *entry; (entry = readdir(parent));)
        if (strncmp(entry->d_name, "samepage-cc-server-", 19) == 0) {
            assert_int_equal(utimensat(dirfd(parent), entry->d_name, old, 0), 0);
            count++;
        }
    closedir(parent);
    return count;
}

/* Starts a server and lets it answer once: its folder is there then. */
static void start_one(void **state)
{
    assert_int_equal(start(state), 0);
    assert_int_equal(status_of(SP_CC_COMPILE, "", 0), SP_CC_BAD_REQUEST);
}

static void end_one(int signal)
{
    int status;
    kill(server, signal);
    assert_int_equal(waitpid(server, &status, 0), server);
    close(control);
}

static void test_folder_of_the_killed_goes(void **state)
{
    assert_non_null(mkdtemp(temporary));
    setenv("TMPDIR", temporary, 1);
    start_one(state);
    assert_int_equal(folders(), 1);
    int first_control = control;
    pid_t first = server;
    start_one(state); /* beside one that runs, however old its folder is */
    assert_int_equal(folders(), 2);
    end_one(SIGTERM);
    assert_int_equal(folders(), 1);
    kill(first, SIGINT); /* the application's, not the server's */
    server = first;
    control = first_control;
    assert_int_equal(status_of(SP_CC_COMPILE, "", 0), SP_CC_BAD_REQUEST);
    end_one(SIGKILL);
    assert_int_equal(folders(), 1);
    start_one(state);
    assert_int_equal(folders(), 1); /* its own */
    assert_int_equal(stop(state), 0);
    assert_int_equal(folders(), 0);
    unsetenv("TMPDIR");
    assert_int_equal(rmdir(temporary), 0);
}

int main(void)
{
    const struct CMUnitTest own_library[] = {
        cmocka_unit_test(test_library_is_replaced),
    };
    const struct CMUnitTest broken_library[] = {
        cmocka_unit_test(test_library_is_broken),
    };
    const struct CMUnitTest no_server[] = {
        cmocka_unit_test(test_folder_of_the_killed_goes),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_way),
        cmocka_unit_test(test_rubbish_is_a_bad_request),
        cmocka_unit_test(test_header_names_stay_inside),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_memory_limit),
    };
    int failed = cmocka_run_group_tests(tests, start, stop);
    failed += cmocka_run_group_tests(no_server, NULL, NULL);
    failed += cmocka_run_group_tests(own_library, start_with_copy, stop_with_copy);
    strcpy(strrchr(library, '-'), "-XXXXXX");
    return failed + cmocka_run_group_tests(broken_library, start_with_copy, stop_with_copy);
}
