/* See trace.h. One file, one lock around each line, which is handed to the kernel as a whole:
 * however the process ends, what happened before is in the file. The file is a JSON array whose
 * closing bracket is written when the process ends in order; the format allows it to be missing, so
 * a trace of a crash opens as well. */
#include "svm/trace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "util/symbol.h"
#include "util/time.h"

bool sp_trace_is_on;

static struct {
    pthread_mutex_t lock;
    FILE *file;
    pid_t process; /* a child of fork() must not write into its parent's file */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Room for the longest line; a longer one is written in two pieces. */
#define LINE_BYTES 4096u

static void finish(void)
{
    pthread_mutex_lock(&trace.lock);
    if (trace.file && trace.process == getpid()) {
        fputs("{}]\n", trace.file);
        fclose(trace.file);
        trace.file = NULL;
    }
    pthread_mutex_unlock(&trace.lock);
}

void sp_trace_init(void)
{
    const char *path = getenv("SAMEPAGE_TRACE");
    if (!path || !*path || trace.file)
        return;
    trace.file = fopen(path, "we");
    if (!trace.file) {
        fprintf(stderr,
                "samepage: the trace file %s cannot be written (%m); SAMEPAGE_TRACE must name "
                "a file in a folder that exists\n",
                path);
        return;
    }
    trace.process = getpid();
    setvbuf(trace.file, NULL, _IOLBF, LINE_BYTES);
    fputs("[\n", trace.file);
    atexit(finish);
    sp_trace_is_on = true;
}

/* Begins a line; the lock is held until end_line. False: there is nothing to write to. */
static bool begin_line(uint64_t track, const char *phase, const char *category, const char *name)
{
    pthread_mutex_lock(&trace.lock);
    if (!trace.file || trace.process != getpid()) {
        pthread_mutex_unlock(&trace.lock);
        return false;
    }
    fprintf(trace.file, "{\"ph\":\"%s\",\"cat\":\"%s\",\"name\":\"", phase, category);
    /* Names come from kernels and paths: nothing that ends a string gets through. */
    for (; *name; name++)
        if ((unsigned char)*name >= ' ' && *name != '"' && *name != '\\')
            fputc(*name, trace.file);
    fprintf(trace.file, "\",\"pid\":%d,\"tid\":%llu", (int)trace.process,
            (unsigned long long)track);
    return true;
}

static void end_line(const char *format, va_list arguments)
{
    fputs(",\"args\":{", trace.file);
    vfprintf(trace.file, format, arguments);
    fputs("}},\n", trace.file);
    pthread_mutex_unlock(&trace.lock);
}

void sp_trace_call_site(char *site, size_t size)
{
    Dl_info info;
    const void *caller = sp_symbol_caller();
    size_t length = 0;
    site[0] = 0;
    if (!caller || !dladdr(caller, &info) || !info.dli_fname)
        return;
    for (const char *name = info.dli_fname; *name && length + 2 < size; name++) {
        if (*name == '"' || *name == '\\')
            site[length++] = '\\';
        site[length++] = (unsigned char)*name < ' ' ? '?' : *name;
    }
    snprintf(site + length, size - length, "+0x%zx",
             (size_t)((const char *)caller - (const char *)info.dli_fbase));
}

void sp_trace_name_track(uint64_t track, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (sp_trace_is_on && begin_line(track, "M", "", "thread_name")) {
        fputs(",\"args\":{\"name\":\"", trace.file);
        vfprintf(trace.file, format, arguments);
        fputs("\"}},\n", trace.file);
        pthread_mutex_unlock(&trace.lock);
    }
    va_end(arguments);
}

void sp_trace_span(uint64_t track, const char *category, const char *name, uint64_t start_ns,
                   uint64_t end_ns, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (begin_line(track, "X", category, name)) {
        fprintf(trace.file, ",\"ts\":%.3f,\"dur\":%.3f", (double)start_ns / 1e3,
                end_ns > start_ns ? (double)(end_ns - start_ns) / 1e3 : 0.0);
        end_line(format, arguments);
    }
    va_end(arguments);
}

void sp_trace_instant(uint64_t track, const char *category, const char *name, const char *format,
                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (begin_line(track, "i", category, name)) {
        fprintf(trace.file, ",\"s\":\"t\",\"ts\":%.3f", (double)sp_time_ns() / 1e3);
        end_line(format, arguments);
    }
    va_end(arguments);
}
