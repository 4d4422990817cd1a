/* printf records to text (OpenCL C 3.0, 6.15.14).
 *
 * The compiler packed the arguments with their types (cpu_abi.h), so each conversion is checked
 * against what is really there. A conversion is handed to the C library one lane at a time, with
 * the flags, width and precision of the format and the length that the lane's type needs; a
 * vector's lanes are separated by commas. One record is one locked write to stdout.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"

/* A conversion specification, without its length modifier and vector size: "%-+ #0123.456d". */
#define MAX_CONVERSION 64u

struct arguments {
    const unsigned char *bytes;
    uint64_t left;
    const char *(*string_at)(uint64_t address); /* what %s names */
};

/* The next argument: its header and its bytes, or false. */
static bool next_argument(struct arguments *arguments, struct sp_print_argument *argument,
                          const unsigned char **value)
{
    if (arguments->left < sizeof *argument)
        return false;
    memcpy(argument, arguments->bytes, sizeof *argument);
    uint64_t bytes = ((uint64_t)argument->lanes * argument->lane_bytes + 7) & ~UINT64_C(7);
    if (arguments->left - sizeof *argument < bytes)
        return false;
    *value = arguments->bytes + sizeof *argument;
    arguments->bytes += sizeof *argument + bytes;
    arguments->left -= sizeof *argument + bytes;
    return true;
}

static uint64_t load_unsigned(const unsigned char *value, unsigned bytes)
{
    uint64_t result = 0;
    memcpy(&result, value, bytes); /* little-endian machines only, as are all of ours */
    return result;
}

static int64_t load_signed(const unsigned char *value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(load_unsigned(value, bytes) << shift) >> shift;
}

static double load_float(const unsigned char *value, unsigned bytes)
{
    if (bytes == 8) {
        double d;
        memcpy(&d, value, 8);
        return d;
    }
    if (bytes == 4) {
        float f;
        memcpy(&f, value, 4);
        return f;
    }
    /* Half: exponent bias 15, 10 bits of fraction. */
    unsigned half = (unsigned)load_unsigned(value, 2);
    unsigned exponent = half >> 10 & 31, fraction = half & 1023;
    double magnitude;
    if (exponent == 31)
        magnitude = fraction ? __builtin_nan("") : __builtin_inf();
    else if (exponent == 0)
        magnitude = fraction * 0x1p-24;
    else
        magnitude = (1024 + fraction) * __builtin_ldexp(1, (int)exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* An infinity or NaN as C99 spells it; the 0 flag does not pad it. */
static void print_lane(FILE *out, const char *flags, char conversion,
                       const struct sp_print_argument *argument, const unsigned char *lane,
                       unsigned length, const char *(*string_at)(uint64_t address))
{
    char format[MAX_CONVERSION + 8];
    bool is_integer = strchr("diouxXc", conversion) != NULL;
    bool is_float = strchr("fFeEgGaA", conversion) != NULL;
    if (is_integer && argument->kind == SP_PRINT_INTEGER) {
        /* The length modifier cuts a promoted value back to its type. */
        unsigned bytes = length && length < argument->lane_bytes ? length : argument->lane_bytes;
        if (conversion == 'c') {
            snprintf(format, sizeof format, "%sc", flags);
            fprintf(out, format, (int)load_signed(lane, bytes));
        } else if (conversion == 'd' || conversion == 'i') {
            snprintf(format, sizeof format, "%s" PRId64, flags);
            fprintf(out, format, load_signed(lane, bytes));
        } else {
            snprintf(format, sizeof format, "%sl%c", flags, conversion);
            fprintf(out, format, (unsigned long)load_unsigned(lane, bytes));
        }
    } else if (is_float && argument->kind == SP_PRINT_FLOAT) {
        snprintf(format, sizeof format, "%s%c", flags, conversion);
        fprintf(out, format, load_float(lane, argument->lane_bytes));
    } else if (conversion == 'p') {
        snprintf(format, sizeof format, "%sp", flags);
        fprintf(out, format, (void *)(uintptr_t)load_unsigned(lane, argument->lane_bytes));
    } else if (conversion == 's' && argument->kind == SP_PRINT_POINTER) {
        uint64_t address = load_unsigned(lane, argument->lane_bytes);
        const char *text = address ? string_at(address) : NULL;
        snprintf(format, sizeof format, "%ss", flags);
        fprintf(out, format, text ? text : "(null)");
    }
}

/* Appends to a conversion specification as long as there is room. */
static void append(char *flags, size_t *length, char c)
{
    if (*length + 1 < MAX_CONVERSION) {
        flags[(*length)++] = c;
        flags[*length] = 0;
    }
}

/* '*' in a width or precision: the value of an int argument. */
static void append_star(char *flags, size_t *length, struct arguments *arguments)
{
    struct sp_print_argument argument;
    const unsigned char *value;
    char number[16];
    if (!next_argument(arguments, &argument, &value) || argument.lane_bytes > 8)
        return;
    snprintf(number, sizeof number, "%d", (int)load_signed(value, argument.lane_bytes));
    for (const char *c = number; *c; c++)
        append(flags, length, *c);
}

/* One conversion, `format` behind its '%'. Returns what follows it. */
static const char *print_conversion(FILE *out, const char *format, struct arguments *arguments,
                                    bool *is_wrong)
{
    char flags[MAX_CONVERSION] = "%";
    size_t flags_length = 1;
    while (*format && strchr("-+ #0", *format))
        append(flags, &flags_length, *format++);
    for (int part = 0; part < 2; part++) { /* width, then precision */
        if (part == 1) {
            if (*format != '.')
                break;
            append(flags, &flags_length, *format++);
        }
        if (*format == '*') {
            append_star(flags, &flags_length, arguments);
            format++;
        }
        while (*format >= '0' && *format <= '9')
            append(flags, &flags_length, *format++);
    }
    unsigned lanes = 1;
    if (*format == 'v') {
        char *end;
        lanes = (unsigned)strtoul(format + 1, &end, 10);
        format = end;
    }
    unsigned length = 0; /* bytes of the type; 0: as the argument is */
    if (format[0] == 'h' && format[1] == 'h')
        length = 1, format += 2;
    else if (format[0] == 'h' && format[1] == 'l')
        length = 4, format += 2;
    else if (format[0] == 'h')
        length = 2, format++;
    else if (format[0] == 'l')
        length = 8, format++;
    char conversion = *format;
    if (!conversion) {
        *is_wrong = true;
        return format;
    }
    format++;

    struct sp_print_argument argument;
    const unsigned char *value;
    if (!next_argument(arguments, &argument, &value) || argument.lanes != lanes) {
        *is_wrong = true;
        return format;
    }
    for (unsigned i = 0; i < lanes; i++) {
        if (i > 0)
            fputc(',', out);
        print_lane(out, flags, conversion, &argument, value + i * argument.lane_bytes, length,
                   arguments->string_at);
    }
    return format;
}

/* Constants of the code lie in this process. */
static const char *string_here(uint64_t address)
{
    return (const char *)(uintptr_t)address;
}

int32_t sp_cpu_print(const struct sp_cpu_launch *launch, const char *format, const void *record,
                     uint64_t record_bytes)
{
    (void)launch;
    return sp_cpu_print_record(format, record, record_bytes, string_here);
}

int32_t sp_cpu_print_record(const char *format, const void *record, uint64_t record_bytes,
                            const char *(*string_at)(uint64_t address))
{
    struct arguments arguments = {.bytes = record, .left = record_bytes, .string_at = string_at};
    bool is_wrong = false;
    FILE *out = stdout;

    flockfile(out);
    while (*format) {
        size_t plain = strcspn(format, "%");
        fwrite(format, 1, plain, out);
        format += plain;
        if (!*format)
            break;
        format++;
        if (*format == '%') {
            fputc('%', out);
            format++;
        } else {
            format = print_conversion(out, format, &arguments, &is_wrong);
        }
    }
    if (ferror(out))
        is_wrong = true;
    funlockfile(out);
    return is_wrong ? -1 : 0;
}

void sp_cpu_print_flush(void)
{
    fflush(stdout);
}
