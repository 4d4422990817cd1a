/* See gpu_folder.h. */
#include "gpu_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of a name that is made here, relative to the folder. */
#define NAME_BYTES 96u

static char folder[] = "/tmp/samepage-gpu-XXXXXX";

void make_folder(void)
{
    if (!mkdtemp(folder))
        abort();
}

int remove_folder(void)
{
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command);
}

void make_path(char path[FOLDER_PATH_BYTES], const char *name)
{
    snprintf(path, FOLDER_PATH_BYTES, "%s/%s", folder, name);
}

void make_folder_in(const char *name)
{
    char path[FOLDER_PATH_BYTES];
    make_path(path, name);
    if (mkdir(path, 0700))
        abort();
}

void write_file(const char *name, const char *text)
{
    char path[FOLDER_PATH_BYTES];
    make_path(path, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        abort();
}

static void name_gpu(char name[NAME_BYTES], const char *machine, unsigned gpu, const char *file)
{
    snprintf(name, NAME_BYTES, "%s/gpus/0000:00:0%u.0%s", machine, 6 + gpu, file);
}

void show_gpus(const char *machine, unsigned count)
{
    char name[NAME_BYTES];
    if (strcmp(machine, ".") != 0)
        make_folder_in(machine);
    snprintf(name, sizeof name, "%s/gpus", machine);
    make_folder_in(name);
    /* The last one first: nobody may rely on the order in which a folder lists them. */
    while (count-- > 0) {
        name_gpu(name, machine, count, "");
        make_folder_in(name);
    }
}

void tell_of_gpus(const char *machine, unsigned count)
{
    char name[NAME_BYTES], text[64];
    snprintf(name, sizeof name, "%s/version", machine);
    write_file(name, "NVRM version: 1.2.3\n");
    for (unsigned i = 0; i < count; i++) {
        name_gpu(name, machine, i, "/information");
        snprintf(text, sizeof text, "GPU UUID: number %u\nIRQ: %u\nModel: Fake\n", i, 17 + i);
        write_file(name, text);
    }
}

void use_machine(const char *machine)
{
    char path[FOLDER_PATH_BYTES];
    make_path(path, machine);
    setenv("SAMEPAGE_CUDA_FOLDER", path, 1);
}
