/* The fake NVRTC's functions. */
#include "fake_nvrtc.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cuda/nvrtc_abi.h"

struct _nvrtcProgram {
    char *source, *cubin, *ptx, log[256];
    size_t cubin_bytes;
};

fake_nvrtc_state fake_nvrtc;

void fake_nvrtc_reset(void)
{
    memset(&fake_nvrtc, 0, sizeof(fake_nvrtc));
    fake_nvrtc.major = 13;
}

static nvrtcResult fake_version(int *major, int *minor)
{
    *major = fake_nvrtc.major;
    *minor = fake_nvrtc.minor;
    return NVRTC_SUCCESS;
}

static const char *fake_error_string(nvrtcResult result)
{
    return result == NVRTC_ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

static nvrtcResult fake_create(nvrtcProgram *program, const char *source, const char *name, int header_count, const char *const *headers,
                               const char *const *include_names)
{
    (void)name;
    if (fake_nvrtc.create_result)
        return fake_nvrtc.create_result;
    if (header_count || headers || include_names)
        return NVRTC_ERROR_COMPILATION;
    *program = calloc(1, sizeof(**program));
    (*program)->source = strdup(source);
    atomic_fetch_add(&fake_nvrtc.live_programs, 1);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_destroy(nvrtcProgram *program)
{
    free((*program)->source);
    free((*program)->cubin);
    free((*program)->ptx);
    free(*program);
    *program = NULL;
    atomic_fetch_sub(&fake_nvrtc.live_programs, 1);
    return NVRTC_SUCCESS;
}

static void make_cubin(nvrtcProgram program, int option_count, const char *const *options)
{
    size_t bytes = strlen(program->source) + 128;
    const char *arch = "";
    int length;

    for (int i = 0; i < option_count; i++)
        if (strncmp(options[i], "-arch=", 6) == 0)
            arch = options[i] + 6;
    program->cubin = malloc(bytes);
    length = snprintf(program->cubin, bytes, "FAKE-CUBIN %s\n%s", arch, program->source);
    program->cubin_bytes = (size_t)length + 1;
    program->ptx = malloc(bytes);
    snprintf(program->ptx, bytes, "FAKE-PTX %s\n%s", arch, program->source);
}

static void count(void)
{
    int now = atomic_fetch_add(&fake_nvrtc.at_once, 1) + 1, most = atomic_load(&fake_nvrtc.most_at_once);

    while (now > most && !atomic_compare_exchange_weak(&fake_nvrtc.most_at_once, &most, now))
        ;
    atomic_fetch_add(&fake_nvrtc.compiles, 1);
    if (fake_nvrtc.shared)
        atomic_fetch_add(fake_nvrtc.shared, 1);
}

static nvrtcResult fake_compile(nvrtcProgram program, int option_count, const char *const *options)
{
    nvrtcResult result = fake_nvrtc.result;

    count();
    if (atomic_load(&fake_nvrtc.at_once) == 1) {
        fake_nvrtc.options[0] = 0;
        for (int i = 0; i < option_count; i++)
            snprintf(fake_nvrtc.options + strlen(fake_nvrtc.options), sizeof(fake_nvrtc.options) - strlen(fake_nvrtc.options), "%s\n", options[i]);
    }
    usleep(1000 * (useconds_t)fake_nvrtc.milliseconds);
    if (!result && strstr(program->source, "#error"))
        result = NVRTC_ERROR_COMPILATION;
    snprintf(program->log, sizeof(program->log), "%s",
             result ? "line 1: error: #error directive\nline 2: more\n" : "ptxas info    : Used 32 registers, 0 bytes spill stores\n");
    if (!result)
        make_cubin(program, option_count, options);
    atomic_fetch_sub(&fake_nvrtc.at_once, 1);
    return result;
}

static nvrtcResult fake_ptx_size(nvrtcProgram program, size_t *bytes)
{
    *bytes = strlen(program->ptx) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_ptx(nvrtcProgram program, char *ptx)
{
    strcpy(ptx, program->ptx);
    return NVRTC_SUCCESS;
}

/* The usual ones, or the one that the test says. */
static nvrtcResult fake_arch_count(int *count)
{
    *count = fake_nvrtc.newest_arch ? 1 : 7;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_archs(int *archs)
{
    static const int known[7] = { 80, 86, 87, 89, 90, 100, 120 };

    if (fake_nvrtc.newest_arch)
        *archs = fake_nvrtc.newest_arch;
    else
        memcpy(archs, known, sizeof(known));
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_cubin_size(nvrtcProgram program, size_t *bytes)
{
    *bytes = program->cubin_bytes;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_cubin(nvrtcProgram program, char *cubin)
{
    memcpy(cubin, program->cubin, program->cubin_bytes);
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log_size(nvrtcProgram program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

static nvrtcResult fake_log(nvrtcProgram program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_SUCCESS;
}

void *fake_nvrtc_symbol(const char *name)
{
#define FIND_SYMBOL(field, symbol, result, parameters) \
    if (strcmp(name, #symbol) == 0)                    \
        return (void *)fake_##field;
    FLP_NVRTC_FUNCTIONS(FIND_SYMBOL)
#undef FIND_SYMBOL
    return NULL;
}

void fake_nvrtc_write_library(const char *path, const char *build_id)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        Elf64_Nhdr note;
        char name[4];
        uint8_t id[20];
    } file = { 0 };
    size_t digits = strlen(build_id);
    FILE *stream = fopen(path, "wb");

    memcpy(file.header.e_ident, ELFMAG, SELFMAG);
    file.header.e_ident[EI_CLASS] = ELFCLASS64;
    file.header.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__aarch64__)
    file.header.e_machine = EM_AARCH64;
#else
    file.header.e_machine = EM_X86_64;
#endif
    file.header.e_type = ET_DYN;
    file.header.e_phoff = sizeof(file.header);
    file.header.e_phentsize = sizeof(Elf64_Phdr);
    file.header.e_phnum = digits ? 1 : 0;
    file.segment.p_type = PT_NOTE;
    file.segment.p_align = 4;
    file.segment.p_offset = sizeof(file.header) + sizeof(file.segment);
    file.segment.p_filesz = sizeof(file.note) + sizeof(file.name) + digits / 2;
    file.note = (Elf64_Nhdr){ .n_namesz = 4, .n_descsz = (Elf64_Word)(digits / 2), .n_type = NT_GNU_BUILD_ID };
    memcpy(file.name, "GNU", 4);
    for (size_t i = 0; i < digits / 2; i++)
        sscanf(build_id + 2 * i, "%2hhx", &file.id[i]);
    if (!stream || fwrite(&file, sizeof(file), 1, stream) != 1 || fclose(stream) != 0)
        abort();
}
