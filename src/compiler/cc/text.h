/* Growing text and lists of strings: the build log, command lines, answers.
 *
 * Allocation failure ends the process: a compiler child has nothing better to do than to die, and
 * its parent reports the death (protocol.h). So no function here fails. */
#ifndef SP_COMPILER_CC_TEXT_H
#define SP_COMPILER_CC_TEXT_H

#include <stddef.h>

struct sp_cc_text {
    char *bytes; /* owned, zero-terminated once something was added; NULL before */
    size_t size;
    size_t capacity;
};

struct sp_cc_strings {
    char **items; /* owned, each too; one NULL follows the last */
    size_t count;
};

void *sp_cc_allocate(size_t size); /* zeroed */
void *sp_cc_reallocate(void *old, size_t size);
char *sp_cc_copy(const char *string);

void sp_cc_text_add(struct sp_cc_text *text, const void *bytes, size_t size);
void sp_cc_text_format(struct sp_cc_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sp_cc_text_finish(struct sp_cc_text *text);

void sp_cc_strings_add(struct sp_cc_strings *strings, const char *string);
void sp_cc_strings_format(struct sp_cc_strings *strings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sp_cc_strings_finish(struct sp_cc_strings *strings);

#endif
