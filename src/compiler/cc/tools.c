/* See tools.h. */
#include "compiler/cc/tools.h"

#include "util/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Beside this program, as tools/bundle.sh lays it out (docs/bundle.md). */
#define BUNDLED_RESOURCES "toolchain/lib/clang"

/* clang::DesiredStackSize (clang/Basic/Stack.h): what its limits of nesting are made for. */
#define CLANG_STACK_BYTES ((rlim_t)8 << 20)

/* Open folders that nftw may hold at once. */
#define FOLDER_DEPTH 16

#define FOLDER_PREFIX "samepage-cc-"
#define SERVER_FOLDER_PREFIX "samepage-cc-server-"

/* Between making its folder and locking it a server takes microseconds; a folder younger than this,
 * in seconds, is left alone, whatever holds that server up. */
#define STALE_SECONDS 60

static const char *folder_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && *parent ? parent : "/tmp";
}

static int create_folder(struct sp_cc_folder *folder, const char *prefix)
{
    struct sp_cc_text path = {0};
    sp_cc_text_format(&path, "%s/%sXXXXXX", folder_parent(), prefix);
    if (!mkdtemp(path.bytes)) {
        int error = -errno;
        sp_cc_text_finish(&path);
        return error;
    }
    folder->path = path.bytes;
    return 0;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

void sp_cc_folder_destroy(struct sp_cc_folder *folder)
{
    if (!folder->path)
        return;
    nftw(folder->path, remove_entry, FOLDER_DEPTH, FTW_DEPTH | FTW_PHYS);
    free(folder->path);
    folder->path = NULL;
}

int sp_cc_folder_create(struct sp_cc_folder *folder)
{
    return create_folder(folder, FOLDER_PREFIX);
}

/* Whether the folder is this user's, not new, and nobody's any more. */
static bool is_stale(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat status;
    bool stale = !fstat(fd, &status) && status.st_uid == geteuid() &&
                 time(NULL) - status.st_mtime >= STALE_SECONDS && !flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    return stale;
}

static void remove_stale_folders(void)
{
    DIR *parent = opendir(folder_parent());
    if (!parent)
        return;
    for (struct dirent *entry; (entry = readdir(parent));) {
        if (strncmp(entry->d_name, SERVER_FOLDER_PREFIX, strlen(SERVER_FOLDER_PREFIX)) ||
            !is_stale(dirfd(parent), entry->d_name))
            continue;
        struct sp_cc_text path = {0};
        sp_cc_text_format(&path, "%s/%s", folder_parent(), entry->d_name);
        struct sp_cc_folder folder = {.path = path.bytes};
        sp_cc_folder_destroy(&folder);
    }
    closedir(parent);
}

int sp_cc_folder_create_server(struct sp_cc_folder *folder)
{
    remove_stale_folders();
    int error = create_folder(folder, SERVER_FOLDER_PREFIX);
    if (error)
        return error;
    /* Open until the end. A file system without locks, where this fails, also has none to be got by
     * a later server. */
    int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return 0;
}

/* A relative name none of whose parts is empty, "." or "..". */
static bool stays_inside(const char *name)
{
    for (const char *part = name;; part++) {
        size_t length = strcspn(part, "/");
        if (!length || (length == 1 && part[0] == '.') || (length == 2 && !memcmp(part, "..", 2)))
            return false;
        part += length;
        if (!*part)
            return true;
    }
}

int sp_cc_folder_write(const struct sp_cc_folder *folder, const char *name, const void *bytes,
                       size_t size)
{
    if (!stays_inside(name))
        return -EINVAL;
    struct sp_cc_text path = {0};
    sp_cc_text_format(&path, "%s/%s", folder->path, name);
    int error = 0;
    for (char *slash = path.bytes + strlen(folder->path) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = 0;
        if (mkdir(path.bytes, 0700) && errno != EEXIST)
            error = -errno;
        *slash = '/';
    }
    if (!error)
        error = sp_cc_write_file(path.bytes, bytes, size);
    sp_cc_text_finish(&path);
    return error;
}

int sp_cc_write_file(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int error = 0;
    for (size_t done = 0; !error && done < size;) {
        ssize_t written = write(fd, (const char *)bytes + done, size - done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            error = -errno;
    }
    close(fd);
    return error;
}

/* Adds what one read gives: 1, 0 at the end, -errno. */
static int read_some(int fd, struct sp_cc_text *bytes)
{
    char buffer[65536];
    ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0)
        return errno == EINTR ? 1 : -errno;
    sp_cc_text_add(bytes, buffer, (size_t)got);
    return got > 0;
}

int sp_cc_read_file(const char *path, struct sp_cc_text *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int more;
    while ((more = read_some(fd, bytes)) > 0)
        ;
    close(fd);
    return more;
}

/* Set once, before any tool runs; NULL: they are programs. */
static struct {
    sp_cc_linked_tool *clang, *lld;
} linked;

void sp_cc_use_linked_tools(sp_cc_linked_tool *clang, sp_cc_linked_tool *lld)
{
    linked.clang = clang;
    linked.lld = lld;
}

static struct sp_cc_tool choose(const char *variable, struct sp_cc_tool ours, const char *path)
{
    const char *given = getenv(variable);
    if (given && *given)
        return (struct sp_cc_tool){.name = given};
    return ours.linked ? ours : (struct sp_cc_tool){.name = path};
}

struct sp_cc_tool sp_cc_clang(void)
{
    return choose("SAMEPAGE_CLANG", (struct sp_cc_tool){"clang", linked.clang}, SP_CLANG);
}

struct sp_cc_tool sp_cc_lld(void)
{
    return choose("SAMEPAGE_LLD", (struct sp_cc_tool){"ld.lld", linked.lld}, SP_LLD);
}

char *sp_cc_path_beside(const char *name)
{
    struct sp_cc_text path = {0};
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    sp_cc_text_format(&path, "%s/%s", self, name);
    return path.bytes;
}

static bool has_headers(const char *resources)
{
    struct sp_cc_text header = {0};
    sp_cc_text_format(&header, "%s/include/opencl-c-base.h", resources);
    bool has = access(header.bytes, R_OK) == 0;
    sp_cc_text_finish(&header);
    return has;
}

char *sp_cc_clang_resources(void)
{
    struct sp_cc_text name = {0};
    sp_cc_text_format(&name, BUNDLED_RESOURCES "%s", strrchr(SP_CLANG_RESOURCES, '/'));
    char *bundled = sp_cc_path_beside(name.bytes);
    sp_cc_text_finish(&name);
    if (has_headers(bundled))
        return bundled;
    free(bundled);
    return has_headers(SP_CLANG_RESOURCES) ? sp_cc_copy(SP_CLANG_RESOURCES) : NULL;
}

/* What the program clang does for itself when it starts. */
static void raise_stack_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= CLANG_STACK_BYTES)
        return;
    limit.rlim_cur = limit.rlim_max < CLANG_STACK_BYTES ? limit.rlim_max : CLANG_STACK_BYTES;
    setrlimit(RLIMIT_STACK, &limit);
}

/* What is left of this process's limits of time (request.c); zeros: no limit. */
struct times {
    struct itimerval wall, processor;
};

static void read_times(struct times *left)
{
    getitimer(ITIMER_REAL, &left->wall);
    getitimer(ITIMER_PROF, &left->processor);
}

/* A tool's processor time counts as this process's, and so does its death by a limit. */
static void share_fate(int status, const struct rusage *used)
{
    struct itimerval left;
    struct timeval both;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM))
        raise(WTERMSIG(status));
    getitimer(ITIMER_PROF, &left);
    if (!timerisset(&left.it_value))
        return;
    timeradd(&used->ru_utime, &used->ru_stime, &both);
    if (!timercmp(&both, &left.it_value, <))
        raise(SIGPROF);
    timersub(&left.it_value, &both, &left.it_value);
    setitimer(ITIMER_PROF, &left, NULL);
}

/* The ends of the pipes of a tool, ours or its own. */
struct ends {
    int in, out, err;
};

/* `line`: the tool's name and its words. */
static _Noreturn void become_tool(const struct sp_cc_tool *tool, char **line, int count,
                                  pid_t parent, const struct ends *ends, const struct times *left)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    /* Limits of time are not inherited by fork, but kept by exec. */
    setitimer(ITIMER_REAL, &left->wall, NULL);
    setitimer(ITIMER_PROF, &left->processor, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (dup2(ends->in, 0) < 0 || dup2(ends->out, 1) < 0 || dup2(ends->err, 2) < 0)
        _exit(127);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* it would lie in the server's folder, "/" */
    if (tool->linked) {
        /* As exec would: among them is the other end of standard input. */
        sp_close_from(STDERR_FILENO + 1);
        raise_stack_limit();
        _exit(tool->linked(count, line));
    }
    execv(line[0], line);
    _exit(127);
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_ends(struct ends *ends)
{
    close_end(&ends->in);
    close_end(&ends->out);
    close_end(&ends->err);
}

/* Pipes for all three; nothing is open on failure. */
static int open_ends(struct ends *ours, struct ends *its)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, error = 0;
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        error = -errno;
    *ours = (struct ends){in[1], out[0], err[0]};
    *its = (struct ends){in[0], out[1], err[1]};
    if (error) {
        close_ends(ours);
        close_ends(its);
    }
    return error;
}

static void feed(int *in, const char **input, size_t *size)
{
    ssize_t written = write(*in, *input, *size);
    if (written > 0) {
        *input += written;
        *size -= (size_t)written;
    }
    if ((written < 0 && errno != EAGAIN && errno != EINTR) || !*size)
        close_end(in);
}

static void feed_and_listen(struct ends *ends, const char *input, size_t size,
                            struct sp_cc_text *made, struct sp_cc_text *said)
{
    if (!size)
        close_end(&ends->in);
    while (ends->out >= 0 || ends->err >= 0) {
        struct pollfd fds[3] = {{.fd = ends->out, .events = POLLIN},
                                {.fd = ends->err, .events = POLLIN},
                                {.fd = ends->in, .events = POLLOUT}};
        if (poll(fds, 3, -1) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (fds[0].revents && read_some(ends->out, made) <= 0)
            close_end(&ends->out);
        if (fds[1].revents && read_some(ends->err, said) <= 0)
            close_end(&ends->err);
        if (ends->in >= 0 && fds[2].revents)
            feed(&ends->in, &input, &size);
    }
}

/* Its name, its words, NULL. To be freed; the strings are others'. */
static char **command_line(const struct sp_cc_tool *tool, const struct sp_cc_strings *words)
{
    char **line = sp_cc_allocate((words->count + 2) * sizeof(*line));
    line[0] = (char *)(uintptr_t)tool->name;
    for (size_t i = 0; i < words->count; i++)
        line[i + 1] = words->items[i];
    return line;
}

int sp_cc_run_tool(const struct sp_cc_tool *tool, const struct sp_cc_strings *words,
                   const void *input, size_t input_size, struct sp_cc_text *made,
                   struct sp_cc_text *said)
{
    struct ends ours, its;
    struct times left;
    if (!tool->linked && access(tool->name, X_OK))
        return -errno;
    int error = open_ends(&ours, &its);
    if (error)
        return error;
    char **line = command_line(tool, words);
    read_times(&left);
    signal(SIGPIPE, SIG_IGN);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0)
        become_tool(tool, line, (int)words->count + 1, parent, &its, &left);
    error = child < 0 ? -errno : 0;
    close_ends(&its);
    if (!error) {
        fcntl(ours.in, F_SETFL, O_NONBLOCK);
        feed_and_listen(&ours, input, input_size, made, said);
    }
    close_ends(&ours);
    free(line);
    int status = 0;
    struct rusage used;
    while (!error && wait4(child, &status, 0, &used) < 0)
        if (errno != EINTR)
            error = -errno;
    if (error)
        return error;
    share_fate(status, &used);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool sp_cc_says_no_memory(const struct sp_cc_text *said)
{
    return said->size && (strstr(said->bytes, "out of memory") || strstr(said->bytes, "bad_alloc"));
}

void sp_cc_say_no_room(int error, struct sp_cc_text *log)
{
    sp_cc_text_format(log,
                      "error: no temporary file can be made in %s (%s): make room there, or "
                      "name another folder in TMPDIR\n",
                      folder_parent(), strerror(error));
}
