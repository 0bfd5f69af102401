"""Scores the corpus of score_corpus.py with Ray Data, whose workers may be lost and come back: python3 score_ray.py

usage: score_ray.py [--documents 20] [--workers 2] [--batch 4] [--device cpu] [--lose 3,11]

Each row of the dataset is the number of a document. A worker has the whole model and scores a batch of documents. Ray restarts a lost worker, any number of
times, and has its whole batch scored again, because what the lost worker had found of it is lost too. The driver takes each document's result once, raises an
error at a second one or a missing one, and prints the line that score_corpus.py prints: a document's numbers do not depend on which worker scored it, nor on
how often it was tried. --lose shows that: the worker that first meets one of these documents is killed, as if its machine were taken away.
"""

import argparse
import os
import signal
import sys
import tempfile

import ray
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import score_corpus


class Worker:
    """Ray makes one in each of its processes, and one more for each that is lost."""

    def __init__(self, device, lose, folder):
        self.device, self.lose, self.folder = torch.device(device), lose, folder
        self.decoder, self.head = score_corpus.model_of(self.device)

    def __call__(self, batch):
        found = []
        for index in map(int, batch["id"]):
            if index in self.lose:
                self.be_lost(index)
            found.append(score_corpus.score(self.decoder, self.head, score_corpus.document(index, self.device)))
        logp, tokens, hits = zip(*found)
        return {"document": batch["id"], "logp": list(logp), "tokens": list(tokens), "hits": list(hits)}

    def be_lost(self, index):
        try:
            os.close(os.open(os.path.join(self.folder, str(index)), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return  # another worker was killed at this document before
        os.kill(os.getpid(), signal.SIGKILL)


def take_once(rows):
    everything = {}
    for row in rows:
        if row["document"] in everything:
            raise RuntimeError(f"document {row['document']} was scored twice")
        everything[row["document"]] = row["logp"], row["tokens"], row["hits"]
    return everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2, help="processes, on whatever machines Ray has")
    parser.add_argument("--batch", type=int, default=4, help="documents that are scored again where their worker is lost")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: a GPU for each worker")
    parser.add_argument("--lose", default="", help="documents whose first worker is killed, comma-separated")
    arguments = parser.parse_args()
    lose = {int(index) for index in arguments.lose.split(",") if index}
    with tempfile.TemporaryDirectory() as folder:
        rows = ray.data.range(arguments.documents, override_num_blocks=max(1, -(-arguments.documents // arguments.batch))).map_batches(
            Worker,
            fn_constructor_args=(arguments.device, lose, folder),
            batch_size=arguments.batch,
            compute=ray.data.ActorPoolStrategy(size=arguments.workers),
            num_cpus=0.5,  # reading the rows needs CPUs too, and would wait for ever if the workers had all of them
            num_gpus=1 if arguments.device == "cuda" else 0,
        )
        everything = take_once(rows.iter_rows())
        lost = len(os.listdir(folder))
    missing = sorted(set(range(arguments.documents)) - set(everything))
    if missing:
        raise RuntimeError(f"not scored: {missing}")
    print(score_corpus.summary(everything))
    if lost:
        print(f"{lost} workers were lost", file=sys.stderr)


if __name__ == "__main__":
    main()
