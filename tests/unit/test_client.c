/* The client against fake_cc.c, which answers as it is told: good answers, wrong ones, none. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/client.h"
#include "util/time.h"
#include "util/wire.h"

static int ask(enum sp_cc_kind kind, const char *command, uint64_t operand, const char *path,
               struct sp_compiler_reply *reply)
{
    struct sp_wire_writer body;
    sp_wire_writer_init(&body);
    sp_wire_put_u32(&body, sp_compiler_limits().seconds);
    sp_wire_put_u64(&body, sp_compiler_limits().memory_bytes);
    sp_wire_put_string(&body, command);
    sp_wire_put_u64(&body, operand);
    for (size_t i = 0; path && i <= strlen(path); i += 4) {
        uint32_t four = 0;
        memcpy(&four, path + i, strlen(path) - i < 4 ? strlen(path) - i : 4);
        sp_wire_put_u32(&body, four);
    }
    assert_int_equal(body.error, 0);
    int error = sp_compiler_request(kind, body.bytes, body.size, reply);
    sp_wire_writer_finish(&body);
    return error;
}

static void expect_error(const char *command, uint64_t operand, int expected, const char *words)
{
    struct sp_compiler_reply reply;
    assert_int_equal(ask(SP_CC_COMPILE, command, operand, NULL, &reply), expected);
    assert_non_null(reply.log);
    if (!strstr(reply.log, words))
        fail_msg("log without \"%s\": %s", words, reply.log);
    assert_null(reply.body);
    sp_compiler_reply_finish(&reply);
}

static void answers_of_any_size_come_whole(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 1000, 300000, 20000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct sp_compiler_reply reply;
        assert_int_equal(ask(SP_CC_LINK, "ok", sizes[i], NULL, &reply), 0);
        assert_int_equal(reply.status, SP_CC_OK);
        assert_string_equal(reply.log, "fine");
        assert_int_equal(reply.body_bytes - reply.rest, sizes[i]);
        if (sizes[i])
            assert_int_equal(reply.body[reply.body_bytes - 1], 7);
        sp_compiler_reply_finish(&reply);
    }
}

static void a_failure_is_an_answer(void **state)
{
    (void)state;
    struct sp_compiler_reply reply;
    assert_int_equal(ask(SP_CC_CODE, "status", SP_CC_SOURCE_ERROR, NULL, &reply), 0);
    assert_int_equal(reply.status, SP_CC_SOURCE_ERROR);
    assert_string_equal(reply.log, "the log");
    sp_compiler_reply_finish(&reply);
}

static void wrong_answers_are_refused(void **state)
{
    (void)state;
    expect_error("magic", 0, -EBADMSG, "not understood");
    expect_error("kind", 0, -EBADMSG, "not understood");
    expect_error("huge", 1, -EBADMSG, "not understood");
    expect_error("log", 0, -EBADMSG, "not understood");
    expect_error("status", 99, -EBADMSG, "not understood");
    expect_error("short", 0, -EPIPE, "without an answer");
    expect_error("silent", 0, -EPIPE, "SAMEPAGE_BUILD_MEMORY");
}

static void a_compiler_that_died_is_started_once_more(void **state)
{
    (void)state;
    struct sp_compiler_reply reply;
    char path[] = "/tmp/samepage_client_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    assert_int_equal(ask(SP_CC_COMPILE, "die once", 0, path, &reply), 0);
    assert_string_equal(reply.log, "second time");
    sp_compiler_reply_finish(&reply);
    unlink(path);
    expect_error("die", 0, -ENOENT, "SAMEPAGE_CC");
    answers_of_any_size_come_whole(NULL);
}

static void the_time_limit_holds(void **state)
{
    (void)state;
    uint64_t start = sp_time_ns();
    expect_error("hang", 0, -ETIMEDOUT, "10 seconds, 10 times the 1 that");
    assert_true(sp_time_ns() - start >= UINT64_C(10000000000)); /* ctest ends one for ever */
}

static void *ask_often(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        struct sp_compiler_reply reply;
        if (ask(SP_CC_LINK, "ok", 1000, NULL, &reply) || reply.status != SP_CC_OK)
            return argument;
        sp_compiler_reply_finish(&reply);
    }
    return NULL;
}

#ifdef __SANITIZE_THREAD__
#define UNDER_THREAD_SANITIZER 1
#else
#define UNDER_THREAD_SANITIZER 0
#endif

static void threads_and_forks_ask_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    static char failure[] = "failed";
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, failure), 0);
    /* ThreadSanitizer takes the parent's threads for leaked in the child. */
    for (int i = 0; i < 10 && !UNDER_THREAD_SANITIZER; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(ask_often(failure) ? 1 : 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void stopping_and_starting_is_free(void **state)
{
    (void)state;
    sp_compiler_stop();
    sp_compiler_stop();
    sp_compiler_start();
    sp_compiler_start();
    answers_of_any_size_come_whole(NULL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* SAMEPAGE_CC names fake_cc (the test's CMakeLists.txt). */
int main(void)
{
    setenv("SAMEPAGE_BUILD_SECONDS", "1", 1);
    setenv("SAMEPAGE_BUILD_MEMORY", "a lot", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_of_any_size_come_whole),
        cmocka_unit_test(a_failure_is_an_answer),
        cmocka_unit_test(wrong_answers_are_refused),
        cmocka_unit_test(a_compiler_that_died_is_started_once_more),
        cmocka_unit_test(the_time_limit_holds),
        cmocka_unit_test(threads_and_forks_ask_at_once),
        cmocka_unit_test(stopping_and_starting_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
