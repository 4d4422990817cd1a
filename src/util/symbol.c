/* See symbol.h. libdw is used through a table of functions found with dlsym; one lock around it,
 * for it is not thread-safe. */
#include "util/symbol.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/thread.h"

#ifdef SP_HAVE_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#endif

/* Deeper than this the application's first frame is not: the library's own and a loader's with its
 * layers. */
#define MAX_FRAMES 24

/* The longest call instruction of x86-64 that compilers write. */
#define MAX_CALL_BYTES 7u

/* --- Whose code ------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool starts_with_any(const char *name, const char *const *starts)
{
    for (; *starts; starts++)
        if (!strncmp(name, *starts, strlen(*starts)))
            return true;
    return false;
}

/* The CPU driver loads kernels from descriptors (device/cpu/kernel.c). */
static bool is_descriptor(const char *path)
{
    return !strncmp(path, "/proc/", 6) && strstr(path, "/fd/");
}

enum sp_symbol_owner sp_symbol_owner(const void *address)
{
    static const char *const system[] = {"libc.so",      "libc-",       "libm.so",    "libm-",
                                         "libmvec",      "libpthread",  "ld-linux",   "linux-vdso",
                                         "libstdc++.so", "libgcc_s.so", "libasan.so", "libtsan.so",
                                         "libubsan.so",  NULL};
    Dl_info own, info;
    if (!dladdr(address, &info) || !info.dli_fname)
        return SP_SYMBOL_NONE;
    if (dladdr((const void *)(uintptr_t)sp_symbol_owner, &own) && own.dli_fbase == info.dli_fbase)
        return SP_SYMBOL_OURS;
    const char *name = base_name(info.dli_fname);
    if (!strncmp(name, "libOpenCL", 9))
        return SP_SYMBOL_OURS;
    if (is_descriptor(info.dli_fname))
        return SP_SYMBOL_KERNEL;
    return starts_with_any(name, system) ? SP_SYMBOL_SYSTEM : SP_SYMBOL_APPLICATION;
}

static SP_THREAD_LOCAL const void *acts_for;

const void *sp_symbol_caller(void)
{
    void *frames[MAX_FRAMES];
    int count = backtrace(frames, MAX_FRAMES);
    for (int i = 0; i < count; i++) {
        enum sp_symbol_owner owner = sp_symbol_owner(frames[i]);
        if (owner == SP_SYMBOL_APPLICATION)
            return (const char *)frames[i] - 1; /* the return address is behind the call */
    }
    return acts_for;
}

void sp_symbol_act_for(const void *caller)
{
    acts_for = caller;
}

/* Whether what lies before `address` is a call, so that the address may be where one returns to. */
static bool is_behind_call(uintptr_t address)
{
#if defined(__x86_64__)
    unsigned char bytes[MAX_CALL_BYTES];
    struct iovec to = {bytes, sizeof bytes};
    struct iovec from = {(void *)(address - sizeof bytes), sizeof bytes};
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof bytes)
        return false;
    if (bytes[MAX_CALL_BYTES - 5] == 0xe8)
        return true;
    /* FF /2, with 0, 1 or 4 bytes of offset and at times one more of index. */
    for (unsigned length = 2; length <= MAX_CALL_BYTES; length++)
        if (bytes[MAX_CALL_BYTES - length] == 0xff &&
            (bytes[MAX_CALL_BYTES - length + 1] & 0x38) == 0x10)
            return true;
    return false;
#else
    return address != 0;
#endif
}

const void *sp_symbol_culprit(uintptr_t instruction, const uintptr_t *stack, unsigned num_words)
{
    enum sp_symbol_owner owner = sp_symbol_owner((const void *)instruction);
    if (owner == SP_SYMBOL_APPLICATION || owner == SP_SYMBOL_KERNEL)
        return (const void *)instruction;
    for (unsigned i = 0; i < num_words; i++) {
        const void *call = (const void *)(stack[i] - 1);
        if (stack[i] < 4096)
            continue;
        owner = sp_symbol_owner(call);
        if ((owner == SP_SYMBOL_APPLICATION || owner == SP_SYMBOL_KERNEL) &&
            is_behind_call(stack[i]))
            return call;
    }
    return NULL;
}

/* --- Names ------------------------------------------------------------------------------------ */

#ifdef SP_HAVE_LIBDW

static struct {
    pthread_mutex_t lock;
    bool is_tried;
    void *handle;
    __typeof__(dwfl_begin) *begin;
    __typeof__(dwfl_end) *end;
    __typeof__(dwfl_report_end) *report_end;
    __typeof__(dwfl_linux_proc_report) *proc_report;
    __typeof__(dwfl_linux_proc_find_elf) *find_elf;
    __typeof__(dwfl_standard_find_debuginfo) *find_debuginfo;
    __typeof__(dwfl_addrmodule) *addrmodule;
    __typeof__(dwfl_module_addrname) *addrname;
    __typeof__(dwfl_module_getsrc) *getsrc;
    __typeof__(dwfl_lineinfo) *lineinfo;
    __typeof__(dwfl_module_addrdie) *addrdie;
    __typeof__(dwarf_getscopes) *getscopes;
    __typeof__(dwarf_tag) *tag;
    __typeof__(dwarf_diename) *diename;
} dw = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool find_function(const char *name, void *function)
{
    void *found = dlsym(dw.handle, name);
    memcpy(function, &found, sizeof found);
    return found;
}

/* With the lock held. */
static bool load_libdw(void)
{
    if (!dw.is_tried) {
        dw.is_tried = true;
        dw.handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
        if (dw.handle &&
            !(find_function("dwfl_begin", &dw.begin) && find_function("dwfl_end", &dw.end) &&
              find_function("dwfl_report_end", &dw.report_end) &&
              find_function("dwfl_linux_proc_report", &dw.proc_report) &&
              find_function("dwfl_linux_proc_find_elf", &dw.find_elf) &&
              find_function("dwfl_standard_find_debuginfo", &dw.find_debuginfo) &&
              find_function("dwfl_addrmodule", &dw.addrmodule) &&
              find_function("dwfl_module_addrname", &dw.addrname) &&
              find_function("dwfl_module_getsrc", &dw.getsrc) &&
              find_function("dwfl_lineinfo", &dw.lineinfo) &&
              find_function("dwfl_module_addrdie", &dw.addrdie) &&
              find_function("dwarf_getscopes", &dw.getscopes) &&
              find_function("dwarf_tag", &dw.tag) && find_function("dwarf_diename", &dw.diename))) {
            dlclose(dw.handle);
            dw.handle = NULL;
        }
    }
    return dw.handle;
}

/* As the language writes the name, where its runtime is there to tell. */
static char *demangle(const char *name)
{
    char *(*function)(const char *, char *, size_t *, int *);
    void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    int status = 0;
    memcpy(&function, &found, sizeof found);
    return found && !strncmp(name, "_Z", 2) ? function(name, NULL, NULL, &status) : NULL;
}

static void describe(char *text, size_t size, const char *name, const char *file, int line,
                     const Dl_info *info, const void *address)
{
    char *readable = demangle(name);
    const char *shown = readable ? readable : name;
    if (file)
        snprintf(text, size, "%s (%s:%d)", shown, file, line);
    else
        snprintf(text, size, "%s (%s+0x%zx)", shown, base_name(info->dli_fname),
                 (size_t)((const char *)address - (const char *)info->dli_fbase));
    free(readable);
}

/* The innermost function of the source around an address, inlined or not, or NULL. */
static const char *source_function(Dwfl_Module *module, Dwarf_Addr address)
{
    Dwarf_Addr bias;
    Dwarf_Die *scopes = NULL;
    const char *name = NULL;
    Dwarf_Die *unit = dw.addrdie(module, address, &bias);
    int count = unit ? dw.getscopes(unit, address - bias, &scopes) : 0;
    for (int i = 0; i < count && !name; i++)
        if (dw.tag(&scopes[i]) == DW_TAG_inlined_subroutine ||
            dw.tag(&scopes[i]) == DW_TAG_subprogram)
            name = dw.diename(&scopes[i]);
    free(scopes);
    return name;
}

/* Function and line, or offset, into `text`: false where not even the function is known. The
 * objects are listed anew each time: they come and go. */
static bool describe_by_debug_information(const void *address, char *text, size_t size)
{
    bool is_found = false;
    static char *debuginfo_path;
    pthread_mutex_lock(&dw.lock);
    if (load_libdw()) {
        const Dwfl_Callbacks callbacks = {.find_elf = dw.find_elf,
                                          .find_debuginfo = dw.find_debuginfo,
                                          .debuginfo_path = &debuginfo_path};
        Dwfl *dwfl = dw.begin(&callbacks);
        if (dwfl && !dw.proc_report(dwfl, getpid()) && !dw.report_end(dwfl, NULL, NULL)) {
            Dwfl_Module *module = dw.addrmodule(dwfl, (Dwarf_Addr)(uintptr_t)address);
            const char *name =
                module ? source_function(module, (Dwarf_Addr)(uintptr_t)address) : NULL;
            if (module && !name)
                name = dw.addrname(module, (Dwarf_Addr)(uintptr_t)address);
            Dwfl_Line *line = module ? dw.getsrc(module, (Dwarf_Addr)(uintptr_t)address) : NULL;
            int number = 0;
            const char *file = line ? dw.lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
            Dl_info info;
            is_found = name && (file || (dladdr(address, &info) && info.dli_fname));
            if (is_found)
                describe(text, size, name, file, number, &info, address);
        }
        if (dwfl)
            dw.end(dwfl);
    }
    pthread_mutex_unlock(&dw.lock);
    return is_found;
}

#else

static bool describe_by_debug_information(const void *address, char *text, size_t size)
{
    (void)address;
    (void)text;
    (void)size;
    return false;
}

#endif

void sp_symbol_name(const void *address, char *name, size_t size)
{
    Dl_info info;
    bool is_found = dladdr(address, &info) && info.dli_sname;
    snprintf(name, size, "%s", is_found ? info.dli_sname : "");
}

void sp_symbol_describe(const void *address, char *text, size_t size)
{
    Dl_info info;
    if (describe_by_debug_information(address, text, size))
        return;
    if (!dladdr(address, &info) || !info.dli_fname) {
        snprintf(text, size, "%p", address);
        return;
    }
    size_t offset = (size_t)((const char *)address - (const char *)info.dli_fbase);
    if (info.dli_sname)
        snprintf(text, size, "%s (%s+0x%zx)", info.dli_sname, base_name(info.dli_fname), offset);
    else
        snprintf(text, size, "%s+0x%zx", info.dli_fname, offset);
}
