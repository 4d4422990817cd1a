/* samepage-cc: the compiler process (protocol.h). Without arguments it serves requests that arrive
 * on SP_CC_CONTROL_FD until that socket ends; with arguments it does one thing for people and the
 * build (command_line.h).
 *
 * The server only accepts and forks: nothing that a request says is read here, so that nothing in
 * it can harm a later one. LLVM is set up once, before the first fork, and the builtin library is
 * read once, after it. Each child leads a process group of its own; at the end of the control
 * socket all groups are killed. The server keeps each request's socket until its child has ended:
 * where that died without an answer, it says so (request.h). */
#include "compiler/cc/command_line.h"
#include "compiler/cc/link.h"
#ifdef SP_HAVE_LINKED_TOOLS
#include "compiler/cc/linked_tools/linked_tools.h"
#endif
#include "compiler/cc/request.h"
#include "compiler/cc/target.h"
#include "compiler/cc/text.h"
#include "compiler/cc/tools.h"
#include "compiler/protocol.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t id;                /* leads its own process group */
    int fd;                  /* of its request */
    struct sp_cc_fate *fate; /* NULL where there was no memory for it */
};

struct server {
    /* Holds a folder for each child, named by its process id. Without a path where none can be
     * made: a child that needs one then says so. */
    struct sp_cc_folder folder;
    int control;            /* SP_CC_CONTROL_FD */
    int signals;            /* signalfd of what `serve` blocks */
    struct child *children; /* owned */
    size_t num_children;
};

/* One hello with one descriptor: the descriptor, -EAGAIN for a message that is not such, -EPIPE at
 * the end of the socket. */
static int receive_hello(int control)
{
    struct sp_cc_hello hello;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } ancillary;
    struct iovec data = {&hello, sizeof(hello)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &ancillary,
                             .msg_controllen = sizeof(ancillary)};
    ssize_t got = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0)
        return got < 0 && errno == EINTR ? -EAGAIN : -EPIPE;
    int fd = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int each;
            memcpy(&each, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
            if (fd < 0)
                fd = each;
            else
                close(each);
        }
    }
    if (got == sizeof(hello) && hello.magic == SP_CC_MAGIC && hello.version == SP_CC_VERSION &&
        fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -EAGAIN;
}

/* The folder of a child, where all its temporary files lie: what it leaves behind when it is killed
 * is removed here. */
static void child_folder(const struct server *server, pid_t child, struct sp_cc_folder *folder)
{
    struct sp_cc_text path = {0};
    sp_cc_text_format(&path, "%s/%ld", server->folder.path, (long)child);
    folder->path = path.bytes;
}

static void use_child_folder(const struct server *server)
{
    struct sp_cc_folder folder;
    if (!server->folder.path)
        return;
    child_folder(server, getpid(), &folder);
    if (!mkdir(folder.path, 0700))
        setenv("TMPDIR", folder.path, 1);
    free(folder.path);
}

static void remove_child_folder(const struct server *server, pid_t child)
{
    struct sp_cc_folder folder;
    if (!server->folder.path)
        return;
    child_folder(server, child, &folder);
    sp_cc_folder_destroy(&folder);
}

static _Noreturn void be_child(const struct server *server, const struct child *child, pid_t parent)
{
    sigset_t none;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    close(server->control);
    close(server->signals);
    for (size_t i = 0; i < server->num_children; i++)
        close(server->children[i].fd); /* or the library waits for this child's end, too */
    use_child_folder(server);
    sp_cc_serve(child->fd, child->fate);
    _exit(0);
}

static struct sp_cc_fate *create_fate(void)
{
    void *memory = mmap(NULL, sizeof(struct sp_cc_fate), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void finish_child(struct child *child)
{
    if (child->fate)
        munmap(child->fate, sizeof(*child->fate));
    close(child->fd);
}

static void start_child(struct server *server, int fd)
{
    pid_t parent = getpid();
    struct child child = {.fd = fd, .fate = create_fate()};
    child.id = fork();
    if (child.id == 0)
        be_child(server, &child, parent);
    if (child.id < 0) {
        finish_child(&child); /* the library sees the end of the socket */
        return;
    }
    setpgid(child.id, child.id); /* here too: whoever comes first */
    server->children =
        sp_cc_reallocate(server->children, (server->num_children + 1) * sizeof(*server->children));
    server->children[server->num_children++] = child;
}

/* False: the server is to end. An interrupt of the terminal is for the application, which ends the
 * server when it ends. */
static bool take_signals(struct server *server)
{
    struct signalfd_siginfo signal;
    bool goes_on = true;
    while (read(server->signals, &signal, sizeof signal) > 0)
        if (signal.ssi_signo == SIGTERM)
            goes_on = false;
    return goes_on;
}

static void reap(struct server *server)
{
    pid_t id;
    int status;
    while ((id = waitpid(-1, &status, WNOHANG)) > 0)
        for (size_t i = 0; i < server->num_children; i++) {
            struct child *child = &server->children[i];
            if (child->id != id)
                continue;
            kill(-id, SIGKILL); /* what the child may have left running */
            if (child->fate)
                sp_cc_answer_for(child->fd, child->fate, status);
            finish_child(child);
            remove_child_folder(server, id);
            *child = server->children[--server->num_children];
            break;
        }
}

static int serve(void)
{
    struct server server = {.control = SP_CC_CONTROL_FD};
    sigset_t signals;
    int type;
    socklen_t length = sizeof(type);
    if (getsockopt(server.control, SOL_SOCKET, SO_TYPE, &type, &length) || type != SOCK_SEQPACKET) {
        fprintf(stderr, "samepage-cc: descriptor %d is no control socket; see --help\n",
                server.control);
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    server.signals = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    if (server.signals < 0)
        return 1;
    sp_cc_folder_create_server(&server.folder);
    sp_cc_target_warm_up();
    for (;;) {
        struct pollfd fds[2] = {{.fd = server.control, .events = POLLIN},
                                {.fd = server.signals, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents) {
            if (!take_signals(&server))
                break;
            reap(&server);
        }
        if (!fds[0].revents)
            continue;
        int fd = receive_hello(server.control);
        if (fd == -EPIPE)
            break;
        if (fd < 0)
            continue;
        start_child(&server, fd);
        sp_cc_link_warm_up(); /* while the first child, as a rule, runs clang */
    }
    for (size_t i = 0; i < server.num_children; i++)
        kill(-server.children[i].id, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    sp_cc_folder_destroy(&server.folder);
    close(server.signals);
    free(server.children);
    return 0;
}

int main(int argc, char **argv)
{
    signal(SIGXFSZ, SIG_IGN); /* an errno is easier to explain, for the tools as well */
#ifdef SP_HAVE_LINKED_TOOLS
    sp_cc_use_linked_tools(sp_cc_linked_clang, sp_cc_linked_lld);
#endif
    return argc > 1 ? sp_cc_command_line(argc, argv) : serve();
}
