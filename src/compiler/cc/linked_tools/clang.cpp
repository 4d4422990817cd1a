/* See linked_tools.h. Clang has no C interface to what its driver does, hence C++: the driver turns
 * the command line into the one of its front end, which the program clang would start as another
 * process; here it runs in this one. One kind of job is known, source to bitcode, since it is all
 * that samepage-cc asks for.
 *
 * Of the options that clBuildProgram hands on, errors and messages are those of the program, so
 * that front.c need not know which of the two ran.
 */
#include "compiler/cc/linked_tools/linked_tools.h"

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticOptions.h>
#include <clang/Basic/Stack.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Driver/Compilation.h>
#include <clang/Driver/Driver.h>
#include <clang/Driver/Job.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/TargetParser/Host.h>

#include <unistd.h>

/* Neither 0 nor 1, so that front.c takes it for a fault that is not the source's (EX_SOFTWARE of
 * sysexits.h, as Clang's front end has it). */
static const int fatal_status = 70;

static void say_fatal_error(void *, const char *reason, bool)
{
    llvm::errs() << "fatal error: error in backend: " << reason << '\n';
    _exit(fatal_status);
}

/* Debian's LLVM is configured with Polly, which nothing here uses. */
llvm::PassPluginLibraryInfo getPollyPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "none", "0", [](llvm::PassBuilder &) {}};
}

static bool run_front_end(llvm::ArrayRef<const char *> words, clang::DiagnosticsEngine &diagnostics)
{
    clang::CompilerInstance compiler;
    auto invocation = std::make_shared<clang::CompilerInvocation>();
    if (!clang::CompilerInvocation::CreateFromArgs(*invocation, words, diagnostics))
        return false;
    const std::vector<std::string> &given = invocation->getFrontendOpts().LLVMArgs;
    compiler.setInvocation(invocation);
    compiler.createDiagnostics();
    if (!compiler.hasDiagnostics())
        return false;
    if (!given.empty()) {
        std::vector<const char *> options{"clang (LLVM option parsing)"};
        for (const std::string &option : given)
            options.push_back(option.c_str());
        llvm::cl::ParseCommandLineOptions(static_cast<int>(options.size()), options.data());
    }
    clang::EmitBCAction action;
    return compiler.ExecuteAction(action);
}

int sp_cc_linked_clang(int count, char **words)
{
    clang::noteBottomOfStack();
    llvm::remove_fatal_error_handler();
    llvm::install_fatal_error_handler(say_fatal_error);
    llvm::install_out_of_memory_new_handler();

    llvm::SmallVector<const char *, 64> arguments(words, words + count);
    llvm::IntrusiveRefCntPtr<clang::DiagnosticOptions> options =
        clang::CreateAndPopulateDiagOpts(arguments);
    clang::DiagnosticsEngine diagnostics(
        new clang::DiagnosticIDs, options,
        new clang::TextDiagnosticPrinter(llvm::errs(), options.get()));
    clang::ProcessWarningOptions(diagnostics, *options, false);
    clang::driver::Driver driver(words[0], llvm::sys::getDefaultTargetTriple(), diagnostics);
    std::unique_ptr<clang::driver::Compilation> compilation(driver.BuildCompilation(arguments));
    bool is_done = compilation && !diagnostics.hasErrorOccurred();
    if (is_done) {
        const clang::driver::JobList &jobs = compilation->getJobs();
        if (jobs.size() != 1 || llvm::StringRef(jobs.begin()->getArguments()[0]) != "-cc1") {
            llvm::errs() << "error: this compiler only makes bitcode of one source\n";
            return fatal_status;
        }
        llvm::ArrayRef<const char *> front_end = jobs.begin()->getArguments();
        is_done = run_front_end(front_end.drop_front(), diagnostics);
    }
    llvm::outs().flush();
    llvm::errs().flush();
    return is_done ? 0 : 1;
}
