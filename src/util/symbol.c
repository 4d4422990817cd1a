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

/* --- Who called ------------------------------------------------------------------------------- */

/* Farther behind its entry a function's code does not lie, where dladdr knows no name of it. The
 * largest of a C library and of the sanitizers' wrappers have some 20 KiB. */
#define MAX_FUNCTION_BYTES (64u << 10)

/* So far before its entry a compiler may have put a part of it that it made a function of its own
 * (GCC's -fpartial-inlining). */
#define MAX_PART_BYTES (4u << 10)

/* The C library, a wrapper, the loader with its layers, this library: few objects are on the way to
 * the application. */
#define MAX_OBJECTS 8u

/* Below it no code is mapped. */
#define LOWEST_CODE 4096u

#if defined(__x86_64__)

static bool read_own(uintptr_t address, void *bytes, size_t size)
{
    struct iovec to = {bytes, size};
    struct iovec from = {(void *)address, size};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

/* What the pointer says that lies `*offset` behind `next`; 0: it cannot be read. */
static uintptr_t read_pointer(uintptr_t next, const unsigned char *offset)
{
    int32_t distance;
    uintptr_t pointer = 0;
    memcpy(&distance, offset, sizeof distance);
    return read_own(next + (uintptr_t)(intptr_t)distance, &pointer, sizeof pointer) ? pointer : 0;
}

/* The function behind an entry of a procedure linkage table (endbr64 and bnd may come before its
 * jump), or `entry` itself where it is none. */
static uintptr_t through_linkage(uintptr_t entry)
{
    static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
    unsigned char bytes[11];
    unsigned at = 0;
    if (!read_own(entry, bytes, sizeof bytes))
        return entry;
    if (!memcmp(bytes, endbr64, sizeof endbr64))
        at += sizeof endbr64;
    if (bytes[at] == 0xf2)
        at++;
    if (bytes[at] != 0xff || bytes[at + 1] != 0x25) /* jmp *distance(%rip) */
        return entry;
    uintptr_t function = read_pointer(entry + at + 6, &bytes[at + 2]);
    return function ? function : entry;
}

/* Whether what lies before `address` is a call, so that the address may be where one returns to;
 * `*target` is the function that it calls, or 0 where the code does not say. */
static bool is_behind_call(uintptr_t address, uintptr_t *target)
{
    unsigned char bytes[MAX_CALL_BYTES];
    *target = 0;
    if (!read_own(address - sizeof bytes, bytes, sizeof bytes))
        return false;
    if (bytes[MAX_CALL_BYTES - 5] == 0xe8) {
        int32_t distance;
        memcpy(&distance, &bytes[MAX_CALL_BYTES - 4], sizeof distance);
        *target = through_linkage(address + (uintptr_t)(intptr_t)distance);
        return true;
    }
    if (bytes[MAX_CALL_BYTES - 6] == 0xff &&
        bytes[MAX_CALL_BYTES - 5] == 0x15) { /* *distance(%rip) */
        *target = read_pointer(address, &bytes[MAX_CALL_BYTES - 4]);
        return true;
    }
    /* FF /2, with 0, 1 or 4 bytes of offset and at times one more of index. */
    for (unsigned length = 2; length <= MAX_CALL_BYTES; length++)
        if (bytes[MAX_CALL_BYTES - length] == 0xff &&
            (bytes[MAX_CALL_BYTES - length + 1] & 0x38) == 0x10)
            return true;
    return false;
}

#else

static bool is_behind_call(uintptr_t address, uintptr_t *target)
{
    *target = 0;
    return address != 0;
}

#endif

static bool is_meant(enum sp_symbol_owner owner)
{
    return owner == SP_SYMBOL_APPLICATION || owner == SP_SYMBOL_KERNEL;
}

/* Whose call the word of a stack is behind, and of what (0: its code does not say). SP_SYMBOL_NONE:
 * it is no such word. */
static enum sp_symbol_owner owner_of_call(uintptr_t word, uintptr_t *target)
{
    if (word < LOWEST_CODE)
        return SP_SYMBOL_NONE;
    enum sp_symbol_owner owner = sp_symbol_owner((const void *)(word - 1));
    return owner != SP_SYMBOL_NONE && is_behind_call(word, target) ? owner : SP_SYMBOL_NONE;
}

static const void *object_of(uintptr_t address)
{
    Dl_info info;
    return dladdr((const void *)address, &info) ? info.dli_fbase : NULL;
}

static bool is_among(const void *const *objects, unsigned count, const void *object)
{
    for (unsigned i = 0; i < count; i++)
        if (objects[i] == object)
            return true;
    return false;
}

/* Whether `address` may lie in the function that begins at `entry`. */
static bool is_in_function(uintptr_t address, uintptr_t entry)
{
    Dl_info at, of;
    if (!dladdr((const void *)address, &at) || !dladdr((const void *)entry, &of) ||
        at.dli_fbase != of.dli_fbase)
        return false;
    if (at.dli_saddr)
        return at.dli_saddr == of.dli_saddr;
    return address >= entry ? address - entry < MAX_FUNCTION_BYTES
                            : entry - address < MAX_PART_BYTES;
}

/* What earlier calls left lies among the words of a stack; so a word counts only if it is behind a
 * call of what is known to have been called after it: of the function that holds the place found
 * last ... */
static const void *find_caller_of_function(uintptr_t instruction, const uintptr_t *stack,
                                           unsigned num_words)
{
    uintptr_t place = instruction;
    for (unsigned i = 0; i < num_words; i++) {
        uintptr_t target;
        enum sp_symbol_owner owner = owner_of_call(stack[i], &target);
        if (owner == SP_SYMBOL_NONE || !target || !is_in_function(place, target))
            continue;
        place = stack[i] - 1;
        if (is_meant(owner))
            return (const void *)place;
    }
    return NULL;
}

/* ... or of anything in an object found so far, since a function may end by a jump into another, or
 * have parts that lie elsewhere. A call in the application whose code does not say what it calls
 * may be of anything. */
static const void *find_caller_of_object(uintptr_t instruction, const uintptr_t *stack,
                                         unsigned num_words)
{
    const void *objects[MAX_OBJECTS] = {object_of(instruction)};
    unsigned num_objects = 1;
    for (unsigned i = 0; i < num_words; i++) {
        uintptr_t target;
        enum sp_symbol_owner owner = owner_of_call(stack[i], &target);
        if (owner == SP_SYMBOL_NONE ||
            (target ? !is_among(objects, num_objects, object_of(target)) : !is_meant(owner)))
            continue;
        if (is_meant(owner))
            return (const void *)(stack[i] - 1);
        if (num_objects < MAX_OBJECTS)
            objects[num_objects++] = object_of(stack[i] - 1);
    }
    return NULL;
}

static const void *find_any_call(const uintptr_t *stack, unsigned num_words)
{
    for (unsigned i = 0; i < num_words; i++) {
        uintptr_t target;
        if (is_meant(owner_of_call(stack[i], &target)))
            return (const void *)(stack[i] - 1);
    }
    return NULL;
}

const void *sp_symbol_culprit(uintptr_t instruction, const uintptr_t *stack, unsigned num_words)
{
    if (is_meant(sp_symbol_owner((const void *)instruction)))
        return (const void *)instruction;
    const void *call = find_caller_of_function(instruction, stack, num_words);
    if (!call)
        call = find_caller_of_object(instruction, stack, num_words);
    return call ? call : find_any_call(stack, num_words);
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
