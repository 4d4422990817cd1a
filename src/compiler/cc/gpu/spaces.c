/* See spaces.h. LLVM's C API cannot change a type, so the IR is printed, its address spaces are
 * rewritten and it is parsed again; the parser gives intrinsics whose names hold address spaces
 * (llvm.memcpy.p4.p1.i64) their new names. Strings and quoted names are passed over.
 *
 * The text has a type written before every operand, so a pointer type is all there is to look at:
 * "ptr", perhaps followed by " addrspace(N)". A global variable has "addrspace(N)" alone. Casts
 * need both of their types: "addrspacecast [(]TYPE OPERAND to TYPE". Opaque types of the SPIR-V
 * target, which no GPU knows (event_t), become pointers. A cast of the null pointer is the null
 * pointer. */
#include "compiler/cc/gpu/spaces.h"

#include "compiler/cc/ir.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define SPACE "addrspace("
#define CAST "addrspacecast "
#define OPAQUE "target(\""

static unsigned mapped(unsigned space)
{
    switch (space) {
    case SP_SPACE_GLOBAL:
    case SP_SPACE_CONSTANT:
        return SP_GPU_SPACE_GLOBAL;
    case SP_SPACE_LOCAL:
        return SP_GPU_SPACE_SHARED;
    default:
        return SP_GPU_SPACE_GENERIC;
    }
}

static bool starts(const char *at, const char *word)
{
    return !strncmp(at, word, strlen(word));
}

/* Past a quoted string that starts at `at`. */
static const char *past_quoted(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        ;
    return *at ? at + 1 : at;
}

/* The number in "addrspace(N)" at `at`, and where it ends. */
static unsigned read_space(const char *at, const char **end)
{
    unsigned space = 0;
    for (at += strlen(SPACE); isdigit((unsigned char)*at); at++)
        space = space * 10 + (unsigned)(*at - '0');
    *end = *at == ')' ? at + 1 : at;
    return space;
}

/* The space of the pointers in a type that starts at `at`: "ptr", "ptr addrspace(1)" or a vector of
 * such, "<4 x ptr addrspace(1)>". */
static unsigned space_of_type(const char *at)
{
    const char *pointer = *at == '<' ? strstr(at, "ptr") : at;
    const char *end;
    return pointer && starts(pointer, "ptr " SPACE) ? read_space(pointer + 4, &end) : 0;
}

/* Where the type after the cast's "to" starts, or NULL. */
static const char *target_type(const char *at)
{
    int depth = 0;
    while (*at && *at != '\n') {
        if (*at == '"') {
            at = past_quoted(at);
            continue;
        }
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (depth == 0 && starts(at, " to "))
            return at + 4;
        at++;
    }
    return NULL;
}

/* Whether the cast at `at` (past its word) changes nothing any more. */
static bool is_no_cast(const char *at)
{
    if (*at == '(')
        at++;
    const char *to = target_type(at);
    return to && mapped(space_of_type(at)) == mapped(space_of_type(to));
}

/* Where a cast of the null pointer, "(TYPE null to TYPE)", ends; else NULL. */
static const char *past_null_cast(const char *at)
{
    const char *to = *at == '(' ? target_type(at + 1) : NULL;
    if (!to || strncmp(to - strlen(" null to "), " null to ", strlen(" null to ")))
        return NULL;
    const char *end = strchr(to, ')');
    if (end && starts(to, "ptr " SPACE))
        end = strchr(end + 1, ')');
    return end ? end + 1 : NULL;
}

static bool is_word_start(const char *text, const char *at)
{
    return at == text || !(isalnum((unsigned char)at[-1]) || strchr("_.$%@!-", at[-1]));
}

static void add(struct sp_cc_text *result, const char *from, const char *to)
{
    if (to > from)
        sp_cc_text_add(result, from, (size_t)(to - from));
}

void sp_gpu_respace(const char *text, struct sp_cc_text *result)
{
    const char *done = text;
    for (const char *at = text; *at;) {
        const char *end = NULL;
        if (starts(at, OPAQUE) && is_word_start(text, at)) {
            add(result, done, at);
            sp_cc_text_add(result, "ptr", 3);
            for (end = at + strlen("target("); *end && *end != ')';)
                end = *end == '"' ? past_quoted(end) : end + 1;
            done = at = *end ? end + 1 : end;
        } else if (*at == '"') {
            at = past_quoted(at);
        } else if (*at == ';' && (at == text || at[-1] == '\n')) {
            at += strcspn(at, "\n"); /* a comment */
        } else if (starts(at, CAST) && is_word_start(text, at)) {
            add(result, done, at);
            end = past_null_cast(at + strlen(CAST));
            if (end) {
                sp_cc_text_add(result, "null", 4);
                done = at = end;
                continue;
            }
            const char *word = is_no_cast(at + strlen(CAST)) ? "bitcast " : CAST;
            sp_cc_text_add(result, word, strlen(word));
            done = at = at + strlen(CAST);
        } else if (starts(at, SPACE) && is_word_start(text, at)) {
            unsigned space = mapped(read_space(at, &end));
            add(result, done, at);
            if (space != SP_GPU_SPACE_GENERIC)
                sp_cc_text_format(result, SPACE "%u)", space);
            done = at = end;
        } else {
            at++;
        }
    }
    add(result, done, done + strlen(done));
}
