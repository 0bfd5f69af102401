/* Reads a cubin's symbol table and counts instructions by opcode. */
#include "gen/cubin_facts.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

/* From sm_70 on an instruction has 16 bytes; the low 12 bits are its opcode and operand form. These are the forms that ptxas writes for
 * wgmma.mma_async (with A in shared memory and in registers), mma.sync and fma with register operands. */
enum { INSTRUCTION_BYTES = 16, OPCODE_MASK = 0xfff, OPCODE_HGMMA = 0x9f0, OPCODE_HGMMA_REGISTERS = 0xdf0, OPCODE_HMMA = 0x23c, OPCODE_FFMA = 0x223 };
/* The destination register is in bits 16 to 23. */
enum { NO_REGISTER = 0xff };
enum { MACHINE_CUDA = 190, MOST_SECTIONS = 256 };

typedef struct {
    const char *bytes;
    size_t count;
    Elf64_Shdr sections[MOST_SECTIONS]; /* copies, because NVRTC does not align them in the file */
    size_t section_count;
} image;

static int lies_inside(const image *image, uint64_t offset, uint64_t size)
{
    return offset <= image->count && size <= image->count - offset;
}

static const char *open_image(const void *cubin, size_t bytes, image *image)
{
    Elf64_Ehdr header;

    image->bytes = cubin;
    image->count = bytes;
    if (bytes < sizeof(header) || memcmp(cubin, ELFMAG, SELFMAG) != 0)
        return "is no ELF file";
    memcpy(&header, cubin, sizeof(header));
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != MACHINE_CUDA)
        return "is an ELF file, but not for CUDA";
    if (header.e_shnum > MOST_SECTIONS || !lies_inside(image, header.e_shoff, (uint64_t)header.e_shnum * sizeof(Elf64_Shdr)))
        return "has a section table that lies outside, or too many sections";
    memcpy(image->sections, image->bytes + header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    image->section_count = header.e_shnum;
    for (size_t i = 0; i < image->section_count; i++)
        if (image->sections[i].sh_type != SHT_NOBITS && !lies_inside(image, image->sections[i].sh_offset, image->sections[i].sh_size))
            return "has a section that lies outside";
    return NULL;
}

/* The section that holds the kernel's code, or NULL. */
static const Elf64_Shdr *find_code(const image *image, const char *kernel)
{
    for (size_t i = 0; i < image->section_count; i++) {
        const Elf64_Shdr *table = &image->sections[i], *names;

        if (table->sh_type != SHT_SYMTAB || table->sh_link >= image->section_count)
            continue;
        names = &image->sections[table->sh_link];
        for (size_t s = 0; s < table->sh_size / sizeof(Elf64_Sym); s++) {
            Elf64_Sym symbol;
            memcpy(&symbol, image->bytes + table->sh_offset + s * sizeof(symbol), sizeof(symbol));
            if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL && symbol.st_name < names->sh_size &&
                symbol.st_shndx < image->section_count && strcmp(image->bytes + names->sh_offset + symbol.st_name, kernel) == 0)
                return &image->sections[symbol.st_shndx];
        }
    }
    return NULL;
}

const char *cubin_facts_read(const void *cubin, size_t bytes, const char *kernel, cubin_facts *facts)
{
    image image;
    const Elf64_Shdr *code;
    const char *wrong = open_image(cubin, bytes, &image);

    *facts = (cubin_facts){ 0 };
    if (wrong)
        return wrong;
    code = find_code(&image, kernel);
    if (!code || code->sh_type != SHT_PROGBITS || code->sh_size == 0)
        return "has no code under the kernel's name";
    for (uint64_t at = 0; at + INSTRUCTION_BYTES <= code->sh_size; at += INSTRUCTION_BYTES) {
        uint64_t word;
        memcpy(&word, image.bytes + code->sh_offset + at, sizeof(word));
        facts->instructions++;
        /* An HGMMA without a destination register is no product: ptxas writes it for a wgmma.commit_group that has no product before it. */
        facts->hgmma += ((word & OPCODE_MASK) == OPCODE_HGMMA || (word & OPCODE_MASK) == OPCODE_HGMMA_REGISTERS) && (word >> 16 & 0xff) != NO_REGISTER;
        facts->hmma += (word & OPCODE_MASK) == OPCODE_HMMA;
        facts->ffma += (word & OPCODE_MASK) == OPCODE_FFMA;
    }
    return NULL;
}
