/* CMocka with what it wants included before it. */
#ifndef SP_TESTS_UNIT_H
#define SP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
