"""Classification by nearest neighbours with chromadb: the 50 nearest vote with
the weight exp(15 * cosine), as racflow's `neighbours` does."""

import collections
import math
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import embed
from contender import lines, matrix, serve

NEIGHBOURS, QUESTIONS = 50, 1000
PER_CALL = 500  # the fastest; 1,000 break on a limit of SQLite


def labelled(path):
    rows = [line.split("\t") for line in lines(path)[1:]]
    return [text for text, _ in rows], [label for _, label in rows]


def fill(folder, data):
    import chromadb

    client = chromadb.PersistentClient(folder, settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.get_or_create_collection("examples", configuration={"hnsw": {"space": "cosine"}})
    if collection.count() == 0:
        texts, labels = labelled(data / "train.tsv")
        vectors = matrix(data / "train.f32")
        for i in range(0, len(texts), 5000):
            part = slice(i, i + 5000)
            collection.add(
                ids=[str(i + j) for j in range(len(texts[part]))], embeddings=vectors[part],
                documents=texts[part], metadatas=[{"label": label} for label in labels[part]],
            )
    return collection


def vote(collection, vectors):
    """The labels for vectors."""
    answers = []
    for first in range(0, len(vectors), PER_CALL):
        found = collection.query(
            query_embeddings=vectors[first:first + PER_CALL], n_results=NEIGHBOURS, include=["metadatas", "distances"])
        for metadatas, distances in zip(found["metadatas"], found["distances"]):
            votes = collections.defaultdict(float)
            for metadata, distance in zip(metadatas, distances):
                votes[metadata["label"]] += math.exp(15 * (1 - distance))
            answers.append(max(votes, key=votes.get))
    return answers


def main(name, data, threads, once=""):
    data = pathlib.Path(data)
    folder = str(data / "chroma")
    collection = fill(folder, data)
    texts, labels = (column[:QUESTIONS] for column in labelled(data / "test.tsv"))
    encode = embed.sentence_transformers("minilm", int(threads), data.parent)
    if once:  # a program that starts, answers and ends
        vote(collection, encode(texts))
        return
    vectors = matrix(data / "test.f32")[:QUESTIONS]

    def timed(answer):
        start = time.perf_counter()
        answers = answer()
        ms = 1000 * (time.perf_counter() - start) / len(labels)
        return {"n": len(labels), "ms": ms, "accuracy": sum(a == b for a, b in zip(answers, labels)) / len(labels)}

    def evaluate():
        reply = timed(lambda: vote(collection, encode(texts)))
        start = time.perf_counter()
        subprocess.run([sys.executable, __file__, name, str(data), threads, "once"], check=True, stdout=subprocess.DEVNULL)
        return reply | {"whole": 1000 * (time.perf_counter() - start) / len(labels)}

    serve({"given": lambda: timed(lambda: vote(collection, vectors)), "eval": evaluate}, None)


main(*sys.argv[1:])
