/* The findings of the checking mode (svm/check.h) in OpenCL's words: on standard error, and to the
 * error callback of the context that they concern. */
#ifndef SP_RUNTIME_CHECK_REPORT_H
#define SP_RUNTIME_CHECK_REPORT_H

/* Starts to report where the mode is on. After sp_check_init. */
void sp_check_report_start(void);

/* Returns when all that was found is told of, callbacks included, or after a few seconds. Nothing
 * inside such a callback, and where the mode is off. */
void sp_check_report_flush(void);

#endif
