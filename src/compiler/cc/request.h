/* One request, from the bytes on its socket to the reply. Runs in the child made for it; what is to
 * be known of it when it has died lies in memory that it shares with the server. */
#ifndef SP_COMPILER_CC_REQUEST_H
#define SP_COMPILER_CC_REQUEST_H

#include <stdatomic.h>
#include <stdint.h>

/* Written by the child, read by the server when that has ended: all relaxed, the wait orders. */
struct sp_cc_fate {
    _Atomic uint32_t kind;        /* of the request; 0: not read yet */
    atomic_bool has_answered;     /* a reply was begun */
    atomic_bool is_out_of_memory; /* it died where it had used up its memory */
};

/* Reads, serves and answers the request on `fd`. Returns when all is done; the process may also die
 * here, by the request's limits or a fault. */
void sp_cc_serve(int fd, struct sp_cc_fate *fate);

/* Answers on `fd` in place of a child that ended with `status` (of waitpid) and no answer. Does not
 * wait. */
void sp_cc_answer_for(int fd, const struct sp_cc_fate *fate, int status);

#endif
