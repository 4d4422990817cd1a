/* How the library and samepage-cc talk.
 *
 * The library starts one samepage-cc and keeps one end of a SOCK_SEQPACKET pair, the control
 * socket; the other end is file descriptor SP_CC_CONTROL_FD of samepage-cc. For each request the
 * library makes a SOCK_STREAM pair and sends one end of it over the control socket (SCM_RIGHTS,
 * with one sp_cc_hello as the data). samepage-cc forks; the child reads one request from that
 * socket, works, writes one reply and exits. For a child that ended before it began to reply
 * samepage-cc itself does, and says how (NO_MEMORY, NO_TIME, HUNG, CRASHED). End of file without a
 * whole reply means that there is nothing to say, as when samepage-cc has ended. End of file on the
 * control socket ends samepage-cc and all its children.
 *
 * A request and a reply are an sp_cc_header, then body_bytes of wire format (util/wire.h). Both
 * sides check everything: the library takes a reply for foreign input, since a child has run on a
 * kernel's source.
 *
 * Request bodies, in this order:
 *   COMPILE  u32 seconds, u64 memory_bytes        limits on processor time (SP_CC_WALL_TIMES) and
 *                                                 address space, 0: none
 *            string source
 *            u32 n, n strings                     options: clang-style words that the library
 * checked
 *                                                 (-D and its value in one word, -I, -cl-..., -w)
 *            u32 n, n x (string name, string text)  headers for #include, by the name in the source
 *   LINK     u32 seconds, u64 memory_bytes
 *            u32 flags                            SP_CC_LINK_
 *            u32 n, n strings                     options (-cl-... that matter at link time)
 *            u32 n, n x bytes                     bitcode of each input
 *   CODE     u32 seconds, u64 memory_bytes
 *            bytes                                program IR, from LINK
 *            u32 n, n strings                     kernels wanted
 *            3 x u64 local size                   0 0 0: for any local size, given at launch;
 *                                                 else for NDRanges whose groups all have it
 *            u32 n, n strings                     options, as at LINK
 *            string target                        "": this processor; "nvptx64:sm_90": PTX for
 *                                                 that architecture
 *
 * Reply bodies:
 *   every    u32 status                           SP_CC_OK, or the reason
 *            string log                           the build log, "" where there is nothing to say
 *   COMPILE  bytes bitcode                        for LINK
 *            u32 n, n strings                     absolute paths of the files that the source
 *                                                 included from disk (not the given headers)
 *   LINK     bytes ir                             the linked program: for CODE; for a library
 *                                                 (SP_CC_LINK_LIBRARY), bitcode for another LINK
 *            sp_program_info                      (kernel_info.h; empty for a library)
 *   CODE     bytes image                          ELF, see cpu_abi.h; PTX, see gpu_abi.h
 *            u32 n, n x sp_kernel_code            string, u64, u64, u32
 * What follows `log` is there only when status is SP_CC_OK.
 */
#ifndef SP_COMPILER_PROTOCOL_H
#define SP_COMPILER_PROTOCOL_H

#include <stdint.h>

#define SP_CC_MAGIC 0x43435053u /* "SPCC" */
#define SP_CC_VERSION 5u
#define SP_CC_CONTROL_FD 3 /* SP_SPAWN_CONTROL_FD */

/* Nothing in a request or reply is larger: a program of this size is an error, not a wish. */
#define SP_CC_MAX_BODY_BYTES (UINT64_C(1) << 30)

/* A request may take so many times its seconds by the clock on the wall, for a compiler that waits
 * for something which never comes: with so many busy programs for each processor one that computes
 * has not had its processor time before. */
#define SP_CC_WALL_TIMES 10u

enum sp_cc_kind {
    SP_CC_COMPILE = 1,
    SP_CC_LINK = 2,
    SP_CC_CODE = 3,
};

enum sp_cc_status {
    SP_CC_OK = 0,
    SP_CC_SOURCE_ERROR = 1, /* the source or the linking of sources is wrong: the log says how */
    SP_CC_NO_MEMORY = 2,    /* the memory limit, or the machine's */
    SP_CC_BAD_REQUEST = 3,  /* the request was not understood: versions differ, or damaged IR */
    SP_CC_INTERNAL = 4, /* samepage-cc could not do what it should: clang missing, link failed */
    SP_CC_NO_TIME = 5,  /* the limit of processor time */
    SP_CC_HUNG = 6,     /* SP_CC_WALL_TIMES times that, without it being used up */
    SP_CC_CRASHED = 7,  /* the log says how */
    SP_CC_LAST_STATUS = SP_CC_CRASHED,
};

enum {
    SP_CC_LINK_LIBRARY = 1, /* -create-library: keep everything, link no builtins */
};

struct sp_cc_hello {
    uint32_t magic;
    uint32_t version;
};

struct sp_cc_header {
    uint32_t magic;
    uint32_t kind; /* enum sp_cc_kind; the reply repeats it */
    uint64_t body_bytes;
};

#endif
