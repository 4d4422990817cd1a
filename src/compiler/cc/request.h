/* One request, from the bytes on its socket to the reply. Runs in the child made for it. */
#ifndef SP_COMPILER_CC_REQUEST_H
#define SP_COMPILER_CC_REQUEST_H

/* Reads, serves and answers the request on `fd`. Returns when all is done; the process may also die
 * here, by the request's limits or a fault, and the library then sees the socket's end. */
void sp_cc_serve(int fd);

#endif
