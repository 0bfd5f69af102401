#!/usr/bin/env python3
"""Makes the sample of this folder from its text: vocab.txt, head.safetensors and expected.json.

    make_sample.py           write the three files
    make_sample.py --check   read them back and recompute both perplexities in fp64; fails unless expected.json agrees

The model is a bigram model in factorised form, p(w | c) = softmax_w(E[c] . W[w] + b[w]), with b the log of the smoothed
unigram. E and W start from a truncated SVD of the log-ratio log p(w | c) / p(w) of smoothed counts and then follow the
gradient of the cross entropy to those counts. Needs numpy alone. There is no random number in it; another BLAS may
change the last bits of the head, which is why the perplexities are computed from the rounded values that are shipped.
"""
import collections
import json
import math
import pathlib
import re
import struct
import sys

import numpy as np

FOLDER = pathlib.Path(__file__).resolve().parent
VERSE, UNKNOWN = "<verse>", "<unknown>"
HIDDEN = 64            # D
LEAST_COUNT = 2        # rarer words are <unknown>
DISCOUNT = 0.8         # absolute discount of the bigram counts; the rest goes to the unigram
STEPS = 200
STEP_SIZE = 0.03
DECAY = 2e-6           # of E and W, against rare contexts running away


def read_words(name):
    """The file as one list of words; each line is a verse and ends in VERSE."""
    words = []
    for line in (FOLDER / name).read_text(encoding="ascii").splitlines():
        words += re.findall(r"[a-z]+(?:'[a-z]+)?|[^\sa-z]", line.lower()) + [VERSE]
    return words


def make_vocabulary(words):
    counts = collections.Counter(words)
    kept = [word for word, count in counts.items() if count >= LEAST_COUNT and word != VERSE]
    return [VERSE, UNKNOWN] + sorted(kept, key=lambda word: (-counts[word], word))


def encode(words, vocabulary):
    index = {word: i for i, word in enumerate(vocabulary)}
    return np.array([index.get(word, 1) for word in words], dtype=np.int64)


def smoothed_counts(ids, size):
    """Unigram [V], and the bigram p(w | c) [V, V] with absolute discounting, with the weight of each context [V]."""
    unigram = np.bincount(ids, minlength=size) + 0.5
    unigram = unigram / unigram.sum()
    counts = np.zeros((size, size))
    np.add.at(counts, (np.concatenate(([0], ids[:-1])), ids), 1.0)  # the text starts as if after a verse
    total = counts.sum(axis=1)
    backoff = np.where(total > 0, DISCOUNT * (counts > 0).sum(axis=1) / np.maximum(total, 1), 1.0)
    bigram = np.maximum(counts - DISCOUNT, 0) / np.maximum(total, 1)[:, None] + backoff[:, None] * unigram
    return unigram, bigram, total / total.sum()


def start_from_svd(unigram, bigram, weight_of_context):
    """The best rank-D factors of the log-ratio, weighted by how often a pair's words occur, by power iteration."""
    left, right = np.sqrt(weight_of_context + 1e-6), np.sqrt(unigram)
    matrix = left[:, None] * np.log(bigram / unigram) * right
    basis = np.cos(np.outer(np.arange(len(unigram)) + 0.5, np.arange(HIDDEN + 16)) * math.pi / len(unigram))
    for _ in range(8):
        basis, _ = np.linalg.qr(matrix.T @ (matrix @ basis))
    u, s, vt = np.linalg.svd(matrix @ basis, full_matrices=False)
    root = np.sqrt(s[:HIDDEN])
    return (u[:, :HIDDEN] * root / left[:, None]).astype(np.float32), ((basis @ vt.T)[:, :HIDDEN] * root / right[:, None]).astype(np.float32)


def softmax(logits):
    logits = logits - logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def descend(context, word, bias, bigram, weight_of_context):
    """Adam on the cross entropy between the smoothed bigram and the model, over all contexts at once."""
    bigram, scale = bigram.astype(np.float32), weight_of_context.astype(np.float32)[:, None]
    factors = [context, word]
    first = [np.zeros_like(f) for f in factors]
    second = [np.zeros_like(f) for f in factors]
    for step in range(1, STEPS + 1):
        error = softmax(factors[0] @ factors[1].T + bias) - bigram
        error *= scale
        gradients = [error @ factors[1], error.T @ factors[0]]
        size = STEP_SIZE * 0.5 * (1 + math.cos(math.pi * step / STEPS))
        for f, g, m, v in zip(factors, gradients, first, second):
            g += DECAY * f
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            f -= size * (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-9)
    return factors


def to_bf16(values):
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # to nearest, ties to even


def write_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, (dtype, array) in tensors.items():
        blob = array.tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)  # so that the tensors start on a multiple of 64 bytes
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    kinds = {"BF16": np.uint16, "F32": np.float32, "I32": np.int32}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        begin, end = entry["data_offsets"]
        array = np.frombuffer(data[8 + size + begin:8 + size + end], kinds[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            array = (array.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = array.astype(np.float64)
    return tensors


def log_softmax(logits):
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


def measure():
    """The figures of expected.json, in fp64 from the values that the file holds."""
    head = read_safetensors(FOLDER / "head.safetensors")
    target = head["target"].astype(np.int64)
    rows = np.arange(len(target))
    log_p = log_softmax(head["hidden"] @ head["weight"].T + head["bias"])
    model = log_p[rows, target].mean()
    unigram = log_softmax(head["bias"])[target].mean()
    return {"tokens": len(target), "vocab": len(head["bias"]), "hidden": HIDDEN,
            "mean_logp": model, "perplexity": math.exp(-model), "mean_entropy": -(np.exp(log_p) * log_p).sum(axis=-1).mean(),
            "unigram_mean_logp": unigram, "unigram_perplexity": math.exp(-unigram)}


def make():
    words, held_out = read_words("train.txt"), read_words("heldout.txt")
    vocabulary = make_vocabulary(words)
    (FOLDER / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="ascii")
    ids, target = encode(words, vocabulary), encode(held_out, vocabulary)
    unigram, bigram, weight_of_context = smoothed_counts(ids, len(vocabulary))
    bias = np.log(unigram).astype(np.float32)
    context, word = start_from_svd(unigram, bigram, weight_of_context)
    context, word = descend(context, word, bias, bigram, weight_of_context)
    previous = np.concatenate(([0], target[:-1]))
    write_safetensors(FOLDER / "head.safetensors", {
        "weight": ("BF16", to_bf16(word)), "hidden": ("BF16", to_bf16(context[previous])),
        "bias": ("F32", bias), "target": ("I32", target.astype(np.int32))})
    (FOLDER / "expected.json").write_text(json.dumps(measure(), indent=2) + "\n")


def check():
    expected = json.loads((FOLDER / "expected.json").read_text())
    for name, value in measure().items():
        if not math.isclose(value, expected[name], rel_tol=1e-12):  # fp64 with another order of summation
            sys.exit(f"expected.json: {name} is {expected[name]}, computed {value}")
    print("expected.json agrees")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    check() if sys.argv[1:] else make()
    print((FOLDER / "expected.json").read_text(), end="")
