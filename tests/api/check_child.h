/* Another program, run by a test that looks at what it writes and how it ends. */
#ifndef CHECK_CHILD_H
#define CHECK_CHILD_H

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Runs the program words[0] with the test's environment, and puts what it writes, with_errors also
 * to standard error, into text, as much as fits. The status of waitpid. */
__attribute__((unused)) static int run_child(const char *const *words, bool with_errors, char *text,
                                             size_t size)
{
    int ends[2], status;
    size_t length = 0;
    ssize_t count;
    REQUIRE(pipe(ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], 1);
        if (with_errors)
            dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        execv(words[0], (char *const *)words);
        _exit(127);
    }
    close(ends[1]);
    while ((count = read(ends[0], text + length, size - 1 - length)) > 0)
        length += (size_t)count;
    text[length] = 0;
    close(ends[0]);
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

#endif
