/* Trains a small language model on a real text with the fused loss:
 *     cc -O3 -fno-math-errno train_lm.c -o train_lm $(pkg-config --cflags --libs fusedlogp) -lm && ./train_lm data model.safetensors
 *
 * The model predicts a word from the CONTEXT words before it: hidden = tanh(sum_k embedding[word k back] . mix_k), logits = hidden . head + bias.
 * The embedding and the layer are plain loops. The head, with 4035 logits a word, is one call of flp_linear_cross_entropy, which
 * gives the loss and the gradients without ever holding the logits. It runs on the CPU in less than a minute. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fusedlogp.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 64, CONTEXT = 4, BATCH = 512, WORDS_MAX = 400000, STEPS = 1500, REPORT = 200 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static void *allocate(size_t count, size_t bytes)
{
    void *made = calloc(count, bytes);
    if (!made) fail("memory", "there is not enough");
    return made;
}

static FILE *open_file(const char *folder, const char *name, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *folder ? "/" : "", name);
    FILE *file = fopen(path, mode);
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

/* After reading, which may have ended at an error instead of the end of the file. */
static void close_file(FILE *file, const char *name)
{
    if (ferror(file)) fail(name, "cannot be read");
    fclose(file);
}

/* ---- words: vocab.txt has one on each line, and a word's number is that of its line, from 0 on ---- */

enum { VERSE = 0, UNKNOWN = 1 };

typedef struct {
    int32_t *word;
    int count;
} text;

static int read_vocabulary(const char *folder)
{
    FILE *file = open_file(folder, "vocab.txt", "r");
    char word[64];
    int count = 0;
    if (!hcreate(20000)) fail("memory", "there is not enough");
    while (fscanf(file, "%63s", word) == 1) {
        char *key = strdup(word);
        if (!key || !hsearch((ENTRY){key, (void *)(intptr_t)count++}, ENTER)) fail("vocab.txt", "more words than there is room for");
    }
    close_file(file, "vocab.txt");
    if (count <= UNKNOWN) fail("vocab.txt", "wanted the marks of a verse and of an unknown word, and words");
    return count;
}

static int32_t number_of(char *word)
{
    ENTRY *found = hsearch((ENTRY){word, NULL}, FIND);
    return found ? (int32_t)(intptr_t)found->data : UNKNOWN;
}

/* Takes a run of letters, which may have apostrophes inside, or one other character. Returns what follows it. */
static const char *take_word(const char *at, char word[64])
{
    int length = 0;
    while (length < 63 && (isalpha((unsigned char)*at) || (*at == '\'' && length > 0 && isalpha((unsigned char)at[1]))))
        word[length++] = (char)tolower((unsigned char)*at++);
    if (length == 0) word[length++] = *at++;
    word[length] = 0;
    return at;
}

/* Each line is a verse, which ends with VERSE. CONTEXT of these marks precede the first word. */
static text read_text(const char *folder, const char *name)
{
    FILE *file = open_file(folder, name, "r");
    text read = {allocate(WORDS_MAX, sizeof(int32_t)), CONTEXT};
    char line[8192], word[64];
    while (fgets(line, sizeof line, file)) {
        for (const char *at = line; *at;) {
            if (isspace((unsigned char)*at)) {
                at++;
                continue;
            }
            at = take_word(at, word);
            if (read.count == WORDS_MAX - 1) fail(name, "more words than there is room for");
            read.word[read.count++] = number_of(word);
        }
        if (read.count == WORDS_MAX) fail(name, "more words than there is room for");
        read.word[read.count++] = VERSE;
    }
    close_file(file, name);
    if (read.count == CONTEXT) fail(name, "it is empty");
    return read;
}

/* ---- parameters and Adam ---- */

typedef struct {
    size_t count;
    float *value, *gradient, *first, *second;
} parameter;

static uint64_t random_state = 1;

static float random_normal(void) /* nearly: the sum of four uniform numbers */
{
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(random_state >> 40) / (1 << 24) - 0.5;
    }
    return (float)(sum * sqrt(3));
}

static parameter make_parameter(size_t count, float deviation)
{
    parameter made = {count, allocate(count, sizeof(float)), allocate(count, sizeof(float)), allocate(count, sizeof(float)),
                      allocate(count, sizeof(float))};
    for (size_t i = 0; i < count; i++) made.value[i] = deviation * random_normal();
    return made;
}

static void free_parameter(parameter *p)
{
    free(p->value);
    free(p->gradient);
    free(p->first);
    free(p->second);
}

static void update(parameter *p, double rate, int step)
{
    const float size = (float)(rate * sqrt(1 - pow(0.99, step)) / (1 - pow(0.9, step)));
    for (size_t i = 0; i < p->count; i++) {
        float g = p->gradient[i];
        p->first[i] += 0.1f * (g - p->first[i]);
        p->second[i] += 0.01f * (g * g - p->second[i]);
        p->value[i] -= size * p->first[i] / (sqrtf(p->second[i]) + 1e-8f);
    }
}

/* ---- the model ---- */

typedef struct {
    int vocab;
    parameter embedding; /* [vocab][D] */
    parameter mix;       /* [CONTEXT][D][D] */
    parameter head;      /* [vocab][D] */
    parameter bias;      /* [vocab] */
    flp_context *context;
} model;

/* The bias starts as the logarithm of how often each word occurs. */
static model make_model(const text *train, int vocab)
{
    model made = {.vocab = vocab, .embedding = make_parameter((size_t)vocab * D, 0.5f), .mix = make_parameter(CONTEXT * D * D, 0.1f),
                  .head = make_parameter((size_t)vocab * D, 0.05f), .bias = make_parameter((size_t)vocab, 0)};
    for (int v = 0; v < vocab; v++) made.bias.value[v] = 0.5f;
    for (int i = CONTEXT; i < train->count; i++) made.bias.value[train->word[i]]++;
    for (int v = 0; v < vocab; v++) made.bias.value[v] = logf(made.bias.value[v] / (float)train->count);
    if (flp_context_create(NULL, &made.context) != FLP_OK) fail("flp_context_create", flp_error_message());
    return made;
}

static void free_model(model *m)
{
    free_parameter(&m->embedding);
    free_parameter(&m->mix);
    free_parameter(&m->head);
    free_parameter(&m->bias);
    flp_context_destroy(m->context);
}

/* hidden of word `at`, from those before it. */
static void compute_hidden(const model *m, const int32_t *at, float *restrict hidden)
{
    float sum[D] = {0};
    for (int k = 0; k < CONTEXT; k++) {
        const float *from = m->embedding.value + (size_t)at[-1 - k] * D, *mix = m->mix.value + k * D * D;
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++) sum[j] += from[i] * mix[i * D + j];
    }
    for (int j = 0; j < D; j++) hidden[j] = tanhf(sum[j]);
}

static void propagate_gradient(model *m, const int32_t *at, const float *hidden, const float *grad_hidden)
{
    float g[D];
    for (int j = 0; j < D; j++) g[j] = grad_hidden[j] * (1 - hidden[j] * hidden[j]);
    for (int k = 0; k < CONTEXT; k++) {
        const float *from = m->embedding.value + (size_t)at[-1 - k] * D, *mix = m->mix.value + k * D * D;
        float *restrict grad_from = m->embedding.gradient + (size_t)at[-1 - k] * D, *restrict grad_mix = m->mix.gradient + k * D * D;
        for (int i = 0; i < D; i++) {
            float sum[8] = {0}; /* each of every eighth term, so that the compiler can use a vector */
            for (int j = 0; j < D; j++) sum[j % 8] += mix[i * D + j] * g[j];
            for (int j = 0; j < 8; j++) grad_from[i] += sum[j];
            for (int j = 0; j < D; j++) grad_mix[i * D + j] += from[i] * g[j];
        }
    }
}

/* The mean loss of `rows` words and, where grad_hidden is given, the gradients. One library call is the whole head. */
static double compute_loss(model *m, const float *hidden, const int32_t *target, int rows, float *grad_hidden)
{
    const flp_dtype gradient = grad_hidden ? FLP_F32 : FLP_NONE;
    const flp_linear_cross_entropy_problem problem = {
        .backward = {.forward = {.dtype = FLP_F32, .hidden = D, .vocab = m->vocab, .bias_dtype = FLP_F32, .target_dtype = FLP_I32,
                                 .backend = FLP_BACKEND_CPU},
                     .grad_hidden = gradient, .grad_weight = gradient, .grad_bias = gradient}};
    float loss;
    const flp_linear_cross_entropy_args args = {
        .rows = rows, .hidden = hidden, .weight = m->head.value, .bias = m->bias.value, .target = target, .loss = &loss,
        .grad_hidden = grad_hidden, .grad_weight = grad_hidden ? m->head.gradient : NULL, .grad_bias = grad_hidden ? m->bias.gradient : NULL};
    if (flp_linear_cross_entropy(m->context, &problem, &args) != FLP_OK) fail("flp_linear_cross_entropy", flp_error_message());
    return loss;
}

static double train_step(model *m, const text *train, int step, int steps)
{
    static float hidden[BATCH * D], grad_hidden[BATCH * D];
    static int32_t target[BATCH], place[BATCH];
    const double rate = 4e-3 * 0.5 * (1 + cos(M_PI * step / steps));
    memset(m->embedding.gradient, 0, m->embedding.count * sizeof(float));
    memset(m->mix.gradient, 0, m->mix.count * sizeof(float));
    for (int i = 0; i < BATCH; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        place[i] = CONTEXT + (int32_t)((random_state >> 33) % (uint64_t)(train->count - CONTEXT));
        target[i] = train->word[place[i]];
        compute_hidden(m, train->word + place[i], hidden + i * D);
    }
    double loss = compute_loss(m, hidden, target, BATCH, grad_hidden);
    for (int i = 0; i < BATCH; i++) propagate_gradient(m, train->word + place[i], hidden + i * D, grad_hidden + i * D);
    parameter *const all[] = {&m->embedding, &m->mix, &m->head, &m->bias};
    for (int i = 0; i < 4; i++) update(all[i], rate, step + 1);
    return loss;
}

/* ---- the held-out text ---- */

static double held_out_perplexity(model *m, const text *held_out, float *hidden)
{
    const int rows = held_out->count - CONTEXT;
    for (int i = 0; i < rows; i++) compute_hidden(m, held_out->word + CONTEXT + i, hidden + (size_t)i * D);
    return exp(compute_loss(m, hidden, held_out->word + CONTEXT, rows, NULL));
}

static double bigram_perplexity(const char *folder)
{
    char json[4096] = "";
    FILE *file = open_file(folder, "expected.json", "r");
    const size_t length = fread(json, 1, sizeof json - 1, file);
    close_file(file, "expected.json");
    json[length] = 0;
    const char *at = strstr(json, "\"perplexity\":");
    return at ? atof(at + 13) : NAN;
}

/* Weight, bias, hidden and target of the held-out text, as `fusedlogp score` takes them. */
static void write_tensors(const char *path, const model *m, const text *held_out, const float *hidden)
{
    const int rows = held_out->count - CONTEXT;
    const size_t bytes[] = {m->head.count * 4, m->bias.count * 4, (size_t)rows * D * 4, (size_t)rows * 4};
    const void *const data[] = {m->head.value, m->bias.value, hidden, held_out->word + CONTEXT};
    const char *const names[] = {"weight", "bias", "hidden", "target"}, *const dtypes[] = {"F32", "F32", "F32", "I32"};
    const int shapes[][2] = {{m->vocab, D}, {m->vocab, 0}, {rows, D}, {rows, 0}};
    char header[1024] = "{";
    size_t length = 1, offset = 0;
    for (int i = 0; i < 4; i++) {
        length += (size_t)sprintf(header + length, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%d", i ? "," : "", names[i], dtypes[i], shapes[i][0]);
        if (shapes[i][1]) length += (size_t)sprintf(header + length, ",%d", shapes[i][1]);
        length += (size_t)sprintf(header + length, "],\"data_offsets\":[%zu,%zu]}", offset, offset + bytes[i]);
        offset += bytes[i];
    }
    length += (size_t)sprintf(header + length, "}");
    while ((8 + length) % 64) header[length++] = ' ';
    FILE *file = open_file("", path, "wb");
    for (int i = 0; i < 8; i++) fputc((int)(length >> 8 * i & 255), file);
    fwrite(header, 1, length, file);
    for (int i = 0; i < 4; i++) fwrite(data[i], 1, bytes[i], file);
    if (ferror(file) | fclose(file)) fail(path, "cannot be written");
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) fail("usage", "train_lm DATA_FOLDER OUTPUT.safetensors [STEPS]");
    char *end = "";
    const int vocab = read_vocabulary(argv[1]), steps = argc == 4 ? (int)strtol(argv[3], &end, 10) : STEPS;
    if (*end || steps < 1) fail(argv[3], "wanted a number of steps from 1 on");
    const text train = read_text(argv[1], "train.txt"), held_out = read_text(argv[1], "heldout.txt");
    float *hidden = allocate((size_t)held_out.count * D, sizeof *hidden);
    model m = make_model(&train, vocab);
    double loss = 0;
    printf("%d words to train on, %d held out, a vocabulary of %d\n", train.count - CONTEXT, held_out.count - CONTEXT, vocab);
    printf("step 0: held-out perplexity %.2f\n", held_out_perplexity(&m, &held_out, hidden));
    const int report = steps < 2 * REPORT ? (steps + 3) / 4 : REPORT;
    for (int step = 1; step <= steps; step++) {
        loss += train_step(&m, &train, step - 1, steps);
        if (step % report != 0 && step != steps) continue;
        printf("step %d: loss %.4f, held-out perplexity %.2f\n", step, loss / (step % report ? step % report : report),
               held_out_perplexity(&m, &held_out, hidden));
        fflush(stdout);
        loss = 0;
    }
    printf("held-out perplexity %.4f; the bigram head's is %.4f\n", held_out_perplexity(&m, &held_out, hidden), bigram_perplexity(argv[1]));
    write_tensors(argv[2], &m, &held_out, hidden);
    free_model(&m);
    free(hidden);
    free(train.word);
    free(held_out.word);
    if (ferror(stdout) || fflush(stdout) != 0) fail("standard output", "cannot be written");
    return 0;
}
