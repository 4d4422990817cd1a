/* Looking at memory for what is expected soon, before sleeping until it comes.
 *
 * A spin ends when its time is up, or when the kernel gives the processor to somebody else
 * meanwhile: then there is other work for it, and a wake-up that comes late is the lesser evil.
 * After that the spins of the whole process are brief for SHARE times as long as that one had
 * lasted, so that spinning takes at most one part in SHARE of a processor that others want.
 *
 *     sp_spin_begin(&spin, ns);
 *     do {
 *         for (unsigned i = 0; i < SP_PAUSES_PER_CLOCK; i++) {
 *             if (is_there())
 *                 return;
 *             sp_cpu_pause();
 *         }
 *     } while (sp_spin_goes_on(&spin));
 *
 * Any thread, no lock; a spin is its thread's own. The spins of tens of microseconds in the CPU
 * device (device/cpu/pool.c) are brief as they are, and use the clock alone.
 */
#ifndef SP_UTIL_SPIN_H
#define SP_UTIL_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* Clock reads while spinning, one for so many pauses: some microseconds at most. */
#define SP_PAUSES_PER_CLOCK 32u

/* As long as being woken takes on a virtual machine at the most (5 to 50 us, measured). */
#define SP_BRIEF_SPIN_NS 50000u

struct sp_spin {
    uint64_t begin, last, end; /* of sp_time_ns; end 0: it was ended */
};

/* A spin of `ns` nanoseconds, or of SP_BRIEF_SPIN_NS if that is less and processors are wanted. */
void sp_spin_begin(struct sp_spin *spin, uint64_t ns);

/* Reads the clock. Once false, always false. */
bool sp_spin_goes_on(struct sp_spin *spin);

#endif
