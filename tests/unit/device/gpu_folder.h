/* For tests of the cuda backend: a folder of the program's own, and in it what NVIDIA's kernel
 * driver shows of a machine's GPUs (SAMEPAGE_CUDA_FOLDER). What goes wrong ends the program. */
#ifndef TEST_GPU_FOLDER_H
#define TEST_GPU_FOLDER_H

#include <stddef.h>

#define FOLDER_PATH_BYTES 160

/* Makes the folder. Once, before all that follows. */
void make_folder(void);

/* Removes it, with all that is in it: 0, or something else. */
int remove_folder(void);

/* Where `name` lies, or would, that is relative to the folder. */
void make_path(char path[FOLDER_PATH_BYTES], const char *name);

void make_folder_in(const char *name);
void write_file(const char *name, const char *text);

/* Shows `count` GPUs in the folder `machine` ("." or a new one). They are not told apart, so
 * nothing is remembered of them; with tell_of_gpus they are. */
void show_gpus(const char *machine, unsigned count);
void tell_of_gpus(const char *machine, unsigned count);

/* From now on this is the machine. */
void use_machine(const char *machine);

#endif
