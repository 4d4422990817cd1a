/* Tells applications of devices that died and of the data that went with them. */
#ifndef SP_RUNTIME_LOSS_REPORT_H
#define SP_RUNTIME_LOSS_REPORT_H

#include <CL/cl.h>

#include "svm/coherence.h"

/* What coherence is to tell of a death. */
extern const struct sp_loss_reports sp_loss_report;

/* From now on the error callback of `context`, or standard error where it has none, is told. The
 * callback thread must run. -ENOMEM. */
int sp_loss_report_add(cl_context context);

/* The context ends. On the callback thread. Nothing for a context that was not added. */
void sp_loss_report_remove(cl_context context);

#endif
