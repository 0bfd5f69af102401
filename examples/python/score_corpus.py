"""Scores a corpus by several processes, each its share of the documents: torchrun --nproc-per-node 2 score_corpus.py

usage: torchrun --nproc-per-node N score_corpus.py [--documents 20] [--device cpu]

Every process has the whole model, here a random one. The first process gathers what each has found (the log-probability of each document, its tokens, and
how many of them the model would have chosen) and prints the corpus' perplexity. A document's numbers do not depend on which process scored it.
"""

import argparse
import math
import os

import torch
import torch.distributed as distributed

import fusedlogp

VOCAB, WIDTH = 1000, 64


def model_of(device):
    """(decoder, head): a function from tokens to hidden states, and a weight, in the place of a model's decoder and lm_head."""
    generator = torch.Generator().manual_seed(0)
    embedding = torch.randn(VOCAB, WIDTH, generator=generator).to(device)
    mix = torch.randn(WIDTH, WIDTH, generator=generator).to(device) / 8
    head = (torch.randn(VOCAB, WIDTH, generator=generator) / 8).to(device)
    return lambda tokens: torch.tanh(embedding[tokens] @ mix), head


def document(index, device):
    generator = torch.Generator().manual_seed(100 + index)
    length = int(torch.randint(2, 60, (1,), generator=generator))
    return torch.randint(0, VOCAB, (length,), generator=generator).to(device)


@torch.no_grad()
def score(decoder, head, tokens):
    """(sum of log-probabilities, tokens predicted, how many of these are the model's first choice)"""
    logp, argmax = fusedlogp.linear_logp(decoder(tokens[:-1]), head, tokens[1:], outputs=("logp", "argmax"))
    return float(logp.double().sum()), len(tokens) - 1, int((argmax == tokens[1:]).sum())


def summary(everything):
    logp, tokens, hits = (math.fsum(everything[index][i] for index in sorted(everything)) for i in range(3))
    return f"documents {len(everything)}, tokens {int(tokens)}, logp {logp!r}, first choices {int(hits)}, perplexity {math.exp(-logp / tokens):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: a GPU for each process of a machine")
    arguments = parser.parse_args()
    on_gpu = arguments.device == "cuda"
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if on_gpu else torch.device("cpu")
    distributed.init_process_group("gloo")
    rank, count = distributed.get_rank(), distributed.get_world_size()
    decoder, head = model_of(device)
    mine = {index: score(decoder, head, document(index, device)) for index in range(rank, arguments.documents, count)}
    parts = [None] * count if rank == 0 else None
    distributed.gather_object(mine, parts)
    if rank == 0:
        everything = {index: result for part in parts for index, result in part.items()}
        print(summary(everything))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
