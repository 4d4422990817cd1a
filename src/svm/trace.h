/* The trace: what happened when, in the Trace Event format that Perfetto and chrome://tracing open.
 *
 * On when SAMEPAGE_TRACE names a file; otherwise each hook costs one read of a constant. Commands
 * stand on a track for each queue, transfers on one for each agent. One event a line, so that
 * `samepage stats` reads it line by line. Thread-safe; the lock is held last of all.
 */
#ifndef SP_SVM_TRACE_H
#define SP_SVM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set by sp_trace_init, constant afterwards. */
extern bool sp_trace_is_on;

/* Opens the file that SAMEPAGE_TRACE names and makes sure that it is ended with the process. Called
 * once, before anything that could be traced. A file that cannot be written is told on standard
 * error. */
void sp_trace_init(void);

/* Tracks: a queue's, by its address, or an agent's, by its number. */
#define SP_TRACE_AGENT(agent) ((uint64_t)(agent) + 1)

/* Names a track, once for each. */
void sp_trace_name_track(uint64_t track, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Something that took from start_ns to end_ns (sp_time_ns). The format makes the members of its
 * args object, such as
 * "\"bytes\":%zu"; "" for none. Callers check sp_trace_is_on. */
void sp_trace_span(uint64_t track, const char *category, const char *name, uint64_t start_ns,
                   uint64_t end_ns, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* The place in the application that called the library: "object+0xoffset" into `site`, the first
 * frame that is neither ours nor a loader's; "" where there is none. */
void sp_trace_call_site(char *site, size_t size);

/* Something that happened now. */
void sp_trace_instant(uint64_t track, const char *category, const char *name, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));

#endif
