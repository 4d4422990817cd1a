/* See text.h. */
#include "compiler/cc/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *sp_cc_allocate(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

void *sp_cc_reallocate(void *old, size_t size)
{
    void *memory = realloc(old, size ? size : 1);
    if (!memory)
        abort();
    return memory;
}

char *sp_cc_copy(const char *string)
{
    size_t size = strlen(string) + 1;
    return memcpy(sp_cc_allocate(size), string, size);
}

void sp_cc_text_add(struct sp_cc_text *text, const void *bytes, size_t size)
{
    if (text->capacity - text->size < size + 1) {
        size_t capacity = text->capacity ? text->capacity : 256;
        while (capacity - text->size < size + 1)
            capacity *= 2;
        text->bytes = sp_cc_reallocate(text->bytes, capacity);
        text->capacity = capacity;
    }
    if (size)
        memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
}

static char *format_string(const char *format, va_list arguments)
{
    char *string;
    if (vasprintf(&string, format, arguments) < 0)
        abort();
    return string;
}

void sp_cc_text_format(struct sp_cc_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *string = format_string(format, arguments);
    va_end(arguments);
    sp_cc_text_add(text, string, strlen(string));
    free(string);
}

void sp_cc_text_finish(struct sp_cc_text *text)
{
    free(text->bytes);
    *text = (struct sp_cc_text){0};
}

static void append(struct sp_cc_strings *strings, char *owned)
{
    strings->items =
        sp_cc_reallocate(strings->items, (strings->count + 2) * sizeof(*strings->items));
    strings->items[strings->count++] = owned;
    strings->items[strings->count] = NULL;
}

void sp_cc_strings_add(struct sp_cc_strings *strings, const char *string)
{
    append(strings, sp_cc_copy(string));
}

void sp_cc_strings_format(struct sp_cc_strings *strings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(strings, format_string(format, arguments));
    va_end(arguments);
}

void sp_cc_strings_finish(struct sp_cc_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct sp_cc_strings){0};
}
