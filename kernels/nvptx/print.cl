/* printf: appends a record to the buffer of gpu_abi.h.
 *
 * Room is taken by one atomic addition, so records lie one after another in the order of the
 * additions. The first that does not fit marks the end, and all later ones find the position behind
 * the capacity.
 */
#include <opencl-c-base.h>

/* struct sp_gpu_print_buffer and its records, in units of 8 bytes. */
#define CAPACITY 0
#define POSITION 1
#define RECORDS 2
#define RECORD_BYTES 0
#define RECORD_FORMAT 1
#define RECORD_VALUES 2

int __sp_print(ulong buffer, ulong format, const __private ulong *values, ulong bytes)
{
    __global ulong *header = (__global ulong *)buffer;
    if (!buffer)
        return -1;
    ulong size = bytes + RECORD_VALUES * sizeof(ulong);
    ulong capacity = header[CAPACITY];
    ulong place;
    __asm__ volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
                     : "=l"(place)
                     : "l"(header + POSITION), "l"(size)
                     : "memory");
    __global ulong *record = header + RECORDS + place / sizeof(ulong);
    if (place > capacity || capacity - place < size) {
        if (place < capacity)
            record[RECORD_BYTES] = 0;
        return -1;
    }
    record[RECORD_BYTES] = size;
    record[RECORD_FORMAT] = format;
    for (ulong i = 0; i < bytes / sizeof(ulong); i++)
        record[RECORD_VALUES + i] = values[i];
    return 0;
}
