/* The one way in which every clGet...Info answers: the specification's rules for a value, the room
 * that the caller has for it, and its size. Used by all files of src/api. No state, no lock.
 */
#ifndef SP_API_INFO_H
#define SP_API_INFO_H

#include <string.h>

#include <CL/cl.h>

/* Gives `bytes` bytes at `value` as the answer: copied to `out` (NULL: not wanted), which has
 * `room` bytes, and their number to *bytes_ret (NULL: not wanted). CL_INVALID_VALUE, and
 * nothing written, where the room is too small. */
static inline cl_int sp_info_reply(size_t room, void *out, size_t *bytes_ret, const void *value,
                                   size_t bytes)
{
    if (out && room < bytes)
        return CL_INVALID_VALUE;
    if (out && bytes)
        memcpy(out, value, bytes);
    if (bytes_ret)
        *bytes_ret = bytes;
    return CL_SUCCESS;
}

/* The same for a string with its zero. */
static inline cl_int sp_info_reply_string(size_t room, void *out, size_t *bytes_ret,
                                          const char *value)
{
    return sp_info_reply(room, out, bytes_ret, value, strlen(value) + 1);
}

/* Where an answer goes, for the longer lists of queries: the three arguments above in one. */
struct sp_query {
    size_t room;
    void *out;
    size_t *bytes_ret;
};

static inline cl_int sp_query_reply(const struct sp_query *query, const void *value, size_t bytes)
{
    return sp_info_reply(query->room, query->out, query->bytes_ret, value, bytes);
}

static inline cl_int sp_query_reply_string(const struct sp_query *query, const char *value)
{
    return sp_query_reply(query, value, strlen(value) + 1);
}

/* The same for one value of a plain type. */
#define SP_INFO_REPLY_VALUE(room, out, bytes_ret, type, value)                                     \
    sp_info_reply((room), (out), (bytes_ret), &(type){(value)}, sizeof(type))

/* Writes an error code where the caller wants it. */
static inline void sp_error_reply(cl_int *errcode_ret, cl_int error)
{
    if (errcode_ret)
        *errcode_ret = error;
}

#endif
