/* The library's side of protocol.h: keeps one samepage-cc running and carries requests to it.
 *
 * samepage-cc is found beside the library, or where SAMEPAGE_CC says. It is started ahead of the
 * first request, and again by a request that finds it gone. Everything that comes back is checked
 * as foreign input before it is handed out. Callable from any thread.
 *
 * Environment, read once:
 *   SAMEPAGE_CC            path of samepage-cc
 *   SAMEPAGE_BUILD_SECONDS processor time that one request may take; SP_CC_WALL_TIMES as much
 *                          by the clock on the wall; 0: no limit
 *   SAMEPAGE_BUILD_MEMORY  MiB of address space that one request may use; 0: no limit
 */
#ifndef SP_COMPILER_CLIENT_H
#define SP_COMPILER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compiler/protocol.h"
#include "util/wire.h"

/* A hash of passwords with all of its library takes half a minute to link, and as long for each
 * kernel (16000 blocks); machines are slow. */
#define SP_BUILD_SECONDS_DEFAULT 300u

/* clang and LLVM map well under 1 GiB for ordinary kernels. */
#define SP_BUILD_MEMORY_MIB_DEFAULT 4096u

struct sp_compiler_limits {
    uint32_t seconds;      /* 0: none */
    uint64_t memory_bytes; /* 0: none */
};

/* What a request must carry as its first two values. */
struct sp_compiler_limits sp_compiler_limits(void);

/* Starts samepage-cc if it is not running. Does not wait for it to be ready; what goes wrong is
 * reported by the next request. */
void sp_compiler_start(void);

/* Ends samepage-cc, unless a request is under way. The next request starts it again. */
void sp_compiler_stop(void);

/* Where samepage-cc is, or NULL when out of memory. Lives as long as the process. */
const char *sp_compiler_path(void);

struct sp_compiler_reply {
    unsigned char *body; /* owned; the reply's body */
    size_t body_bytes;
    uint32_t status; /* enum sp_cc_status */
    char *log;       /* owned; NULL only when out of memory */
    size_t rest;     /* where in the body what follows the log begins */
};

/* Sends one request and waits for its reply. 0 and *reply, whose status may still be a failure.
 * Otherwise reply->log says in one sentence what happened (or is NULL), and the result is
 *   -ENOENT    samepage-cc is missing, or does not run
 *   -ETIMEDOUT SP_CC_WALL_TIMES times the limit passed by the clock on the wall
 *   -EPIPE     the compiler ended without a reply
 *   -EBADMSG   the reply was not understood
 *   -EMFILE, -ENFILE  no file descriptor was left
 *   -ENOMEM    out of memory in this process.
 * *reply is to be ended with sp_compiler_reply_finish in every case. */
int sp_compiler_request(enum sp_cc_kind kind, const void *body, size_t body_bytes,
                        struct sp_compiler_reply *reply);

/* Takes the status and the log from reply->body: 0, -EBADMSG or -ENOMEM. For bodies that come from
 * elsewhere (the disk cache). */
int sp_compiler_reply_open(struct sp_compiler_reply *reply);

void sp_compiler_reply_finish(struct sp_compiler_reply *reply);

#endif
