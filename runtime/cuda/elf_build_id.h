/* The GNU build id of a shared object, read from the file without loading it. */
#ifndef FLP_CUDA_ELF_BUILD_ID_H
#define FLP_CUDA_ELF_BUILD_ID_H
#include <stddef.h>

typedef enum {
    FLP_ELF_FOREIGN, /* unreadable, or not a 64-bit shared object of this machine */
    FLP_ELF_NO_ID,   /* a 64-bit shared object of this machine, without a build id */
    FLP_ELF_BUILD_ID /* hex holds the id */
} flp_elf_kind;

/* hex [bytes]: receives the id, two digits for each of its bytes, and a 0 byte; "" where there is none. An id that is too long is truncated. */
flp_elf_kind flp_elf_build_id_read(const char *path, char *hex, size_t bytes);
#endif
