/* The findings of the checking mode (svm/check.h) in OpenCL's words: on standard error, and to the
 * error callback of the context that they concern. */
#ifndef SP_RUNTIME_CHECK_REPORT_H
#define SP_RUNTIME_CHECK_REPORT_H

#include <CL/cl.h>

/* Starts to report where the mode is on. After sp_check_init. */
void sp_check_report_start(void);

/* A context whose error callback is to be called, and the end of it. Nothing where the mode is off.
 */
void sp_check_report_add(cl_context context);
void sp_check_report_remove(cl_context context);

/* Returns when all that was found is told of, callbacks included, or after a few seconds. Nothing
 * inside such a callback, and where the mode is off. */
void sp_check_report_flush(void);

#endif
