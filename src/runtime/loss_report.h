/* Tells applications of devices that died and of the data that went with them: by the error
 * callback of each context that has the device, or on standard error where it has none. */
#ifndef SP_RUNTIME_LOSS_REPORT_H
#define SP_RUNTIME_LOSS_REPORT_H

#include "svm/coherence.h"

/* What coherence is to tell of a death. The callback thread must run where there are contexts. */
extern const struct sp_loss_reports sp_loss_report;

#endif
