/* What a command relies on beside its ranges: the initial values of its program's variables.
 * Whoever has the variables (compiler/globals.c) gives them; command.c sees here whether they were,
 * and asks for them again on a command's second try.
 */
#ifndef SP_RUNTIME_VALUES_H
#define SP_RUNTIME_VALUES_H

#include <stdatomic.h>

/* Who asks for the values. The caller's, from give until `given`. */
struct sp_values_wait {
    struct sp_values_wait *next; /* the giver's own */
    /* Called once, perhaps before give returns, or on a device's thread with no lock held: 0, the
     * values are there; or a negative errno, they could not be written: -ENOMEM for this process's
     * memory, -ENOSPC for the device's, -EIO where the device died. */
    void (*given)(struct sp_values_wait *wait, int error);
};

struct sp_values {
    /* Own memory: of the device (sp_device.life), in which the values are given: by a work that has
     * ended, or that is under way in front of what is submitted from then on. 0: they are not. A
     * command that runs in another one does not find them. Release, before a failure is counted. */
    atomic_uint life;
    /* Gives them, or finds them given, and not only under way: so who asks relies on nothing then.
     * Never waits; no lock is held. */
    void (*give)(struct sp_values *values, struct sp_values_wait *wait);
};

#endif
