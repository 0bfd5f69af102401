/* Reads the ELF header, the program headers and the notes of a shared object with pread: a few KiB of a file of 100 MiB. */
#include "cuda/elf_build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { HOST_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { HOST_MACHINE = EM_AARCH64 };
#else
#error "NVRTC exists for x86-64 and AArch64"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { HOST_ORDER = ELFDATA2LSB };
#else
enum { HOST_ORDER = ELFDATA2MSB };
#endif

enum { LARGEST_NOTES = 1 << 16 };

static int read_at(int file, void *bytes, size_t count, uint64_t offset)
{
    return offset <= INT64_MAX && pread(file, bytes, count, (off_t)offset) == (ssize_t)count;
}

static int is_ours(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == HOST_ORDER &&
           header->e_machine == HOST_MACHINE && header->e_type == ET_DYN && header->e_phentsize == sizeof(Elf64_Phdr);
}

static size_t round_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* Finds the build id among the notes. Each note is a header, a name and a descriptor; name and descriptor are padded to the segment's alignment. */
static int find_id(const unsigned char *notes, size_t count, size_t alignment, char *hex, size_t bytes)
{
    size_t at = 0;

    while (count - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        size_t name, descriptor;

        memcpy(&note, notes + at, sizeof(note));
        name = at + sizeof(note);
        descriptor = name + round_up(note.n_namesz, alignment);
        at = descriptor + round_up(note.n_descsz, alignment);
        if (descriptor + note.n_descsz > count)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) && note.n_descsz > 0 &&
            memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 3 <= bytes; i++)
                snprintf(hex + 2 * i, 3, "%02x", notes[descriptor + i]);
            return 1;
        }
        if (at > count)
            return 0;
    }
    return 0;
}

static int read_notes(int file, const Elf64_Phdr *segment, char *hex, size_t bytes)
{
    size_t count = segment->p_filesz < LARGEST_NOTES ? (size_t)segment->p_filesz : LARGEST_NOTES;
    unsigned char *notes = malloc(count ? count : 1);
    int found = notes && read_at(file, notes, count, segment->p_offset) && find_id(notes, count, segment->p_align == 8 ? 8 : 4, hex, bytes);

    free(notes);
    return found;
}

flp_elf_kind flp_elf_build_id_read(const char *path, char *hex, size_t bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    flp_elf_kind kind = FLP_ELF_FOREIGN;
    Elf64_Ehdr header;

    hex[0] = 0;
    if (file < 0)
        return FLP_ELF_FOREIGN;
    if (read_at(file, &header, sizeof(header), 0) && is_ours(&header)) {
        kind = FLP_ELF_NO_ID;
        for (unsigned i = 0; kind == FLP_ELF_NO_ID && i < header.e_phnum; i++) {
            Elf64_Phdr segment;

            if (!read_at(file, &segment, sizeof(segment), header.e_phoff + (uint64_t)i * sizeof(segment)))
                break;
            if (segment.p_type == PT_NOTE && read_notes(file, &segment, hex, bytes))
                kind = FLP_ELF_BUILD_ID;
        }
    }
    close(file);
    return kind;
}
