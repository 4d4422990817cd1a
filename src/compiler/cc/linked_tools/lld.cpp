/* See linked_tools.h: lld's linker of ELF objects. */
#include "compiler/cc/linked_tools/linked_tools.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/raw_ostream.h>

#include <vector>

LLD_HAS_DRIVER(elf)

int sp_cc_linked_lld(int count, char **words)
{
    llvm::remove_fatal_error_handler();
    llvm::install_out_of_memory_new_handler();
    std::vector<const char *> arguments(words, words + count);
    arguments[0] = "ld.lld"; /* chooses the driver */
    lld::Result result =
        lld::lldMain(arguments, llvm::outs(), llvm::errs(), {{lld::Gnu, &lld::elf::link}});
    llvm::outs().flush();
    llvm::errs().flush();
    return result.retCode;
}
