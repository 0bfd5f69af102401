/* Writes small tensors in every format and type, and their log-probabilities in fp64: make_tensors FOLDER.
 *
 * All values are multiples of 1/16 that bf16 holds exactly, so every type and layout of one tensor means the same numbers. */
#include <endian.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, LENGTH = 9, ROWS = 37, HIDDEN = 24, VOCAB = 101, REAL_VOCAB = 90, PADDED_VOCAB = 104, IGNORED_ROW = 5, IGNORE_INDEX = -7 };
typedef enum { BF16, F16, F32, I32, I64, U8, I8, U16, I16, U32, U64 } kind;

static const struct {
    const char *file, *npy, *safetensors;
    size_t bytes;
} kinds[] = { { "bf16", "<V2", "BF16", 2 }, { "f16", "<f2", "F16", 2 }, { "f32", "<f4", "F32", 4 }, { "i32", "<i4", "I32", 4 },
              { "i64", "<i8", "I64", 8 },   { "u8", "|u1", "U8", 1 },   { "i8", "|i1", "I8", 1 },   { "u16", "<u2", "U16", 2 },
              { "i16", "<i2", "I16", 2 },   { "u32", "<u4", "U32", 4 }, { "u64", "<u8", "U64", 8 } };

static double hidden[ROWS * HIDDEN], weight[VOCAB * HIDDEN], turned[HIDDEN * VOCAB], padded[HIDDEN * PADDED_VOCAB], bias[VOCAB], target[ROWS];
static double logits[ROWS * VOCAB], biased[ROWS * VOCAB]; /* hidden . weight^T: multiples of 1/256, which f32 holds exactly */

static FILE *create(const char *folder, const char *name, const char *suffix, const char *extension)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s%s%s", folder, name, *suffix ? "-" : "", suffix, extension);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static void finish(FILE *file)
{
    if (ferror(file) | fclose(file)) {
        perror("make_tensors");
        exit(1);
    }
}

/* Exact for the values of this file. */
static uint16_t half_bits(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent); /* in 1/2 .. 1 */
    if (value == 0)
        return 0;
    return (uint16_t)((value < 0) << 15 | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023));
}

static size_t encode(kind type, double value, unsigned char bytes[8])
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, 4);
    uint64_t wide = type == BF16 ? bits >> 16 : type == F16 ? half_bits(value) : type == F32 ? bits : (uint64_t)(int64_t)value;
    wide = htole64(wide);
    memcpy(bytes, &wide, 8);
    return kinds[type].bytes;
}

static size_t write_values(FILE *file, kind type, const double *values, int count)
{
    unsigned char bytes[8];
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        size = encode(type, values[i], bytes);
        fwrite(bytes, 1, size, file);
    }
    return size * (size_t)count;
}

static void write_shaped(const char *folder, const char *name, kind type, const double *values, const char *shape, int count)
{
    FILE *file = create(folder, name, kinds[type].file, ".npy");
    char dict[119];
    int length = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kinds[type].npy, shape);
    memset(dict + length, ' ', sizeof dict - (size_t)length);
    dict[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(dict, 1, 118, file);
    write_values(file, type, values, count);
    finish(file);
}

/* columns 0: a vector. */
static void write_npy(const char *folder, const char *name, kind type, const double *values, int rows, int columns)
{
    char shape[32];
    snprintf(shape, sizeof shape, columns ? "%d, %d" : "%d,", rows, columns);
    write_shaped(folder, name, type, values, shape, columns ? rows * columns : rows);
}

typedef struct {
    const char *name;
    kind type;
    const double *values;
    int rows, columns; /* columns 0: a vector */
} named_tensor;

static void write_safetensors(const char *folder, const char *file_name, const char *suffix, const named_tensor *all, size_t count)
{
    char header[1024] = "{\"__metadata__\":{\"made\":\"by a test\"}";
    int offset = 0;
    for (size_t i = 0; i < count; i++) {
        char entry[200], shape[32];
        int end = offset + all[i].rows * (all[i].columns ? all[i].columns : 1) * (int)kinds[all[i].type].bytes;
        snprintf(shape, sizeof shape, all[i].columns ? "%d,%d" : "%d", all[i].rows, all[i].columns);
        snprintf(entry, sizeof entry, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%d,%d]}", all[i].name, kinds[all[i].type].safetensors, shape,
                 offset, end);
        strcat(header, entry);
        offset = end;
    }
    strcat(header, "}");
    FILE *file = create(folder, file_name, suffix, ".safetensors");
    uint64_t length = htole64(strlen(header));
    fwrite(&length, 1, 8, file);
    fwrite(header, 1, strlen(header), file);
    for (size_t i = 0; i < count; i++)
        write_values(file, all[i].type, all[i].values, all[i].columns ? all[i].rows * all[i].columns : all[i].rows);
    finish(file);
}

/* All float tensors of one type in one file, and the targets. */
static void write_all(const char *folder, kind type)
{
    const named_tensor all[] = { { "target", I64, target, ROWS, 0 },
                                 { "hidden", type, hidden, ROWS, HIDDEN },
                                 { "weight", type, weight, VOCAB, HIDDEN },
                                 { "bias", type, bias, VOCAB, 0 } };
    write_safetensors(folder, "all", kinds[type].file, all, 4);
}

/* Files of models: a head, padded by rows that would show, with and without a bias; embeddings under the names of some families. */
static void write_models(const char *folder)
{
    static double rows[PADDED_VOCAB * HIDDEN];
    for (int i = 0; i < PADDED_VOCAB * HIDDEN; i++)
        rows[i] = i < VOCAB * HIDDEN ? weight[i] : 1024;
    const named_tensor head[] = { { "lm_head.bias", BF16, bias, VOCAB, 0 }, { "lm_head.weight", BF16, rows, PADDED_VOCAB, HIDDEN } };
    const named_tensor other = { "model.embed_tokens.weight", BF16, turned, VOCAB, HIDDEN };
    const named_tensor tied[] = { { "model.layers.9.embed_tokens.weight", BF16, turned, VOCAB, HIDDEN },
                                  { "model.embed_tokens.weight", BF16, weight, VOCAB, HIDDEN } };
    const named_tensor both[] = { other, { "lm_head.weight", F32, weight, VOCAB, HIDDEN } };
    const named_tensor multimodal = { "language_model.model.embed_tokens.weight", BF16, weight, VOCAB, HIDDEN };
    const named_tensor gpt2 = { "transformer.wte.weight", F16, weight, VOCAB, HIDDEN };
    const named_tensor integers = { "lm_head.weight", I8, weight, VOCAB, HIDDEN };
    write_safetensors(folder, "head", "", head, 2);
    write_safetensors(folder, "other", "", &other, 1);
    write_safetensors(folder, "tied", "", tied, 2);
    write_safetensors(folder, "both", "", both, 2);
    write_safetensors(folder, "multimodal", "", &multimodal, 1);
    write_safetensors(folder, "gpt2", "", &gpt2, 1);
    write_safetensors(folder, "integers", "", &integers, 1);
}

/* Lines "row,target,logp" as fusedlogp score writes them; beside them, in NAME-entropy.csv, "row,entropy". */
static void write_reference(const char *folder, const char *name, int with_bias, int vocab, double temperature, double softcap, int rows)
{
    FILE *file = create(folder, name, "", ".csv"), *entropies = create(folder, name, "entropy", ".csv");
    fprintf(file, "row,target,logp\n");
    fprintf(entropies, "row,entropy\n");
    for (int row = 0; row < rows; row++) {
        double scaled[VOCAB], sum = 0, entropy = 0;
        for (int v = 0; v < vocab; v++) {
            double z = (with_bias ? biased : logits)[row * VOCAB + v];
            scaled[v] = (softcap > 0 ? softcap * tanh(z / softcap) : z) / temperature;
            sum += exp(scaled[v]);
        }
        int wanted = (int)target[row];
        fprintf(file, "%d,%d,%.17g\n", row, wanted, wanted < 0 ? 0.0 : scaled[wanted] - log(sum));
        for (int v = 0; v < vocab; v++)
            entropy -= exp(scaled[v]) / sum * (scaled[v] - log(sum));
        fprintf(entropies, "%d,%.17g\n", row, entropy);
    }
    finish(file);
    finish(entropies);
}

/* [BATCH, LENGTH, HIDDEN] and [BATCH, LENGTH, VOCAB] of the first rows, their targets, and what is wanted where each state is scored against the next. */
static void write_batch(const char *folder)
{
    double tokens[ROWS];
    memcpy(tokens, target, sizeof tokens);
    write_shaped(folder, "batch", BF16, hidden, "4, 9, 24", BATCH * LENGTH * HIDDEN);
    write_shaped(folder, "batch", F32, hidden, "4, 9, 24", BATCH * LENGTH * HIDDEN);
    write_shaped(folder, "batch-logits", F32, logits, "4, 9, 101", BATCH * LENGTH * VOCAB);
    write_npy(folder, "tokens", U16, tokens, BATCH, LENGTH);
    write_npy(folder, "turned-tokens", U16, tokens, LENGTH, BATCH);
    write_npy(folder, "sequence", BF16, hidden, LENGTH, HIDDEN);
    write_npy(folder, "sequence", U8, tokens, LENGTH, 0);
    for (int row = 0; row < BATCH * LENGTH; row++)
        target[row] = row % LENGTH + 1 < LENGTH ? tokens[row + 1] : -100;
    write_reference(folder, "shifted", 0, VOCAB, 1, 0, BATCH * LENGTH);
    memcpy(target, tokens, sizeof tokens);
}

static void fill(void)
{
    uint32_t state = 1;
#define NEXT(n) ((state = state * 1664525u + 1013904223u) >> 8) % (n)
    for (int i = 0; i < ROWS * HIDDEN; i++)
        hidden[i] = ((int)(NEXT(33)) - 16) / 16.0;
    for (int v = 0; v < VOCAB; v++)
        for (int d = 0; d < HIDDEN; d++)
            turned[d * VOCAB + v] = weight[v * HIDDEN + d] = ((int)(NEXT(33)) - 16) / 16.0;
    for (int i = 0; i < HIDDEN * PADDED_VOCAB; i++) { /* rows of whole 16 bytes in every type, with what would show behind the vocabulary */
        int v = i % PADDED_VOCAB;
        padded[i] = v < VOCAB ? turned[i / PADDED_VOCAB * VOCAB + v] : 1024;
    }
    for (int v = 0; v < VOCAB; v++)
        bias[v] = ((int)(NEXT(65)) - 32) / 16.0;
    for (int i = 0; i < ROWS; i++)
        target[i] = NEXT(REAL_VOCAB);
    for (int i = 0; i < ROWS * VOCAB; i++) {
        logits[i] = 0;
        for (int d = 0; d < HIDDEN; d++)
            logits[i] += hidden[i / VOCAB * HIDDEN + d] * weight[i % VOCAB * HIDDEN + d];
        biased[i] = logits[i] + bias[i % VOCAB];
    }
#undef NEXT
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: make_tensors FOLDER\n"), 2;
    const char *folder = argv[1];
    fill();
    write_reference(folder, "plain", 0, VOCAB, 1, 0, ROWS);
    write_reference(folder, "options", 1, REAL_VOCAB, 0.7, 3, ROWS);
    for (kind type = BF16; type <= F32; type++) {
        write_npy(folder, "hidden", type, hidden, ROWS, HIDDEN);
        write_npy(folder, "weight", type, weight, VOCAB, HIDDEN);
        write_npy(folder, "turned", type, turned, HIDDEN, VOCAB);
        write_npy(folder, "turned-padded", type, padded, HIDDEN, PADDED_VOCAB);
        write_npy(folder, "bias", type, bias, VOCAB, 0);
        write_all(folder, type);
    }
    write_npy(folder, "logits", F32, logits, ROWS, VOCAB);
    write_npy(folder, "biased", F32, biased, ROWS, VOCAB);
    write_npy(folder, "short", F32, bias, VOCAB - 1, 0);
    write_npy(folder, "narrow", F32, hidden, ROWS, HIDDEN - 1);
    write_npy(folder, "target", I32, target, ROWS, 0);
    for (kind type = I64; type <= U64; type++)
        write_npy(folder, "target", type, target, ROWS, 0);
    write_batch(folder);
    write_models(folder);
    write_reference(folder, "capped", 0, VOCAB, 1, 2, ROWS);
    write_reference(folder, "biased", 1, VOCAB, 1, 0, ROWS);
    write_reference(folder, "scaled", 0, VOCAB, 4, 0, ROWS);
    write_npy(folder, "fewer", I32, target, ROWS - 1, 0);
    target[IGNORED_ROW] = IGNORE_INDEX;
    write_npy(folder, "ignoring", I64, target, ROWS, 0);
    write_reference(folder, "ignoring", 0, VOCAB, 1, 0, ROWS);
    for (int i = 0; i < ROWS; i++)
        target[i] = IGNORE_INDEX;
    write_npy(folder, "nothing", I32, target, ROWS, 0);
    write_npy(folder, "none", F32, hidden, 0, HIDDEN);
    write_npy(folder, "none", I32, target, 0, 0);
    return 0;
}
