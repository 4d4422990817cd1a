/* See ir_text.h. */
#include "ir_text.h"

#include "compiler/cc/workgroup/prepare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void parse_ir(struct parsed *parsed, const char *declarations, const char *text)
{
    struct sp_cc_text whole = {0};
    *parsed = (struct parsed){0};
    parsed->context = sp_cc_context_create(&parsed->log);
    sp_cc_text_format(&whole, "%s%s", declarations, text);
    parsed->module = sp_cc_module_read(parsed->context,
                                       (struct sp_cc_blob){whole.bytes, whole.size}, &parsed->log);
    if (!parsed->module)
        fail_msg("%s", parsed->log.bytes);
    parsed->function = LLVMGetNamedFunction(parsed->module, "k");
    sp_cc_text_finish(&whole);
}

void discard_ir(struct parsed *parsed)
{
    LLVMDisposeModule(parsed->module);
    LLVMContextDispose(parsed->context);
    sp_cc_text_finish(&parsed->log);
}

void plan_ir(struct parsed *parsed, struct sp_wg_plan *plan, const char *kernel, const char *body)
{
    struct sp_cc_text text = {0};
    sp_cc_text_format(&text, kernel, body);
    parse_ir(parsed, "", text.bytes);
    assert_null(sp_wg_prepare(parsed->module, NULL));
    sp_wg_plan_init(plan, parsed->function, SP_WG_VECTOR);
    sp_cc_text_finish(&text);
}

void delete_source(struct parsed *parsed)
{
    LLVMDeleteFunction(parsed->function);
    parsed->function = NULL;
    assert_false(sp_cc_module_is_broken(parsed->module, "in the test", &parsed->log));
}
