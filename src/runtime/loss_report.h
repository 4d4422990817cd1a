/* Tells applications of devices that died and of the data that went with them: by the error
 * callback of each context that has the device, or on standard error where it has none. */
#ifndef SP_RUNTIME_LOSS_REPORT_H
#define SP_RUNTIME_LOSS_REPORT_H

#include <CL/cl.h>

#include "svm/coherence.h"

/* What coherence is to tell of a death. The callback thread must run where there are contexts. */
extern const struct sp_loss_reports sp_loss_report;

/* sp_device.noticed: all contexts that have the device are told. */
void sp_loss_report_notice(struct sp_device *device, const char *text);

/* Tells a context that has just become a listener (listeners.h) what was to be said of its devices
 * before: which of them cannot be used, and why. What is said at this very moment it may hear
 * twice. */
void sp_loss_report_greet(cl_context context);

#endif
