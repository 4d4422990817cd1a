/* From addresses of code to what people call them: function, file and line.
 *
 * Lines come from libdw (elfutils), which is loaded when first needed and only then; without it, or
 * without debug information, the object and the offset in it are named. Slow, and thread-safe.
 */
#ifndef SP_UTIL_SYMBOL_H
#define SP_UTIL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose code lies at an address. */
enum sp_symbol_owner {
    SP_SYMBOL_NONE, /* no object's */
    SP_SYMBOL_APPLICATION,
    SP_SYMBOL_SYSTEM, /* the C library and its like: whoever called it is meant */
    SP_SYMBOL_OURS,   /* this library, or the loader before it */
    SP_SYMBOL_KERNEL, /* code of an OpenCL kernel */
};

enum sp_symbol_owner sp_symbol_owner(const void *address);

/* Where the application called the library: an address within the call, or NULL. */
const void *sp_symbol_caller(void);

/* What sp_symbol_caller says on this thread where the application is not among the callers: the
 * library does now what was asked for there. NULL: nothing again. */
void sp_symbol_act_for(const void *caller);

/* "function (file.c:42)", "function (object+0x1234)" or "object+0x1234" into `text`. */
void sp_symbol_describe(const void *address, char *text, size_t size);

/* The function's name alone, from the object's symbols; "" where it has none. */
void sp_symbol_name(const void *address, char *name, size_t size);

/* The application's code behind an instruction of any owner: the instruction itself, or the call
 * found first in the words of its stack. NULL: none was found. */
const void *sp_symbol_culprit(uintptr_t instruction, const uintptr_t *stack, unsigned num_words);

#endif
