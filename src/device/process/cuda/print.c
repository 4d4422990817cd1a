/* What kernels print: records in a buffer of host memory that the GPU appends to
 * (compiler/gpu_abi.h), read when nothing runs any more that could be about to append.
 *
 * The buffer is in host memory so that looking whether something was printed is a read of one word,
 * and a kernel that prints nothing costs nothing. Format strings, and those behind %s, are
 * constants of a module and lie in device memory; each is fetched when a record names it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/gpu_abi.h"
#include "device/cpu/cpu.h"
#include "device/process/cuda/cuda.h"
#include "util/alloc.h"

/* CL_DEVICE_PRINTF_BUFFER_SIZE is 1 MiB for one kernel; several may be under way. */
#define RECORD_BYTES ((uint64_t)4 << 20)

/* Longer strings are cut. */
#define MAX_STRING_BYTES 65536u

/* What is fetched of a string at a time. */
#define FETCH_BYTES 256u

/* Strings of one record that are kept until it is printed. */
#define MAX_STRINGS 64u

static struct {
    struct sp_gpu_print_buffer *buffer;
    char *strings[MAX_STRINGS];
    unsigned num_strings;
} prints;

int sp_cuda_print_init(void)
{
    prints.buffer = sp_cuda_pinned(sizeof *prints.buffer + RECORD_BYTES);
    if (prints.buffer)
        prints.buffer->capacity = RECORD_BYTES;
    return prints.buffer ? 0 : -ENOMEM;
}

uint64_t sp_cuda_print_buffer(void)
{
    return (uintptr_t)prints.buffer;
}

/* A string of the device's, to be freed with the record; never NULL. */
static const char *string_at(uint64_t address)
{
    size_t length = 0, step = FETCH_BYTES;
    char *text = NULL;
    if (prints.num_strings == MAX_STRINGS)
        return "";
    while (length < MAX_STRING_BYTES) {
        char *longer = sp_realloc(text, length + step + 1);
        if (!longer)
            break;
        text = longer;
        text[length] = 0;
        if (sp_cuda_stream_read(text + length, address + length, step)) {
            /* It ends close to where the module's memory does. */
            if (step == 1)
                break;
            step /= 2;
            continue;
        }
        if (memchr(text + length, 0, step)) {
            length = strlen(text);
            break;
        }
        length += step;
    }
    if (!text)
        return "";
    text[length] = 0;
    prints.strings[prints.num_strings++] = text;
    return text;
}

static void print_record(const struct sp_gpu_print_record *record)
{
    const char *format = string_at(record->format);
    sp_cpu_print_record(format, record + 1, record->bytes - sizeof *record, string_at);
    while (prints.num_strings)
        free(prints.strings[--prints.num_strings]);
}

bool sp_cuda_print_has_any(void)
{
    return __atomic_load_n(&prints.buffer->position, __ATOMIC_RELAXED) != 0;
}

void sp_cuda_print_take(void)
{
    struct sp_gpu_print_buffer *buffer = prints.buffer;
    /* Acquire: the kernels' records are seen with their end. */
    uint64_t position = __atomic_load_n(&buffer->position, __ATOMIC_ACQUIRE);
    uint64_t end = position < buffer->capacity ? position : buffer->capacity;
    for (uint64_t at = 0; end - at >= sizeof(struct sp_gpu_print_record);) {
        const struct sp_gpu_print_record *record = (const void *)(buffer->records + at);
        if (record->bytes < sizeof *record || record->bytes > end - at || record->bytes % 8)
            break;
        print_record(record);
        at += record->bytes;
    }
    memset(buffer->records, 0, end);
    __atomic_store_n(&buffer->position, 0, __ATOMIC_RELEASE);
    sp_cpu_print_flush();
}
