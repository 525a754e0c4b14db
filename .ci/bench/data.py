"""The inputs of the measures, written once into the cache folder.

texts.txt and queries.txt   100,000 texts to find and 256 to search with
words.txt, words3.txt,      the same texts as lower-case words, so that every
words16.txt                 tokeniser agrees, and queries cut from held-out texts
short.txt, long.txt         texts of 15 to 17 and of 195 to 205 tokens
train.tsv, test.tsv         labelled texts
many.tsv                    200,000, which are those of train.tsv with words lost, exchanged and misspelt
NAME.f32                    their vectors by MiniLM, as float32

They come from ../shared/data (CLINC150 and seven more sets) where that folder
is there; else they are made of the project's own example utterances.
"""

import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

TEXTS, QUERIES, WORD_QUERIES, MANY = 100_000, 256, 250, 200_000
SHORT, LONG = 512, 64
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"


def prepare(cache, racflow):
    """Returns the folder of the inputs and, in words, where they are from."""
    real = SHARED.is_dir()
    key = hashlib.sha256(pathlib.Path(__file__).read_bytes() + str(real).encode()).hexdigest()[:12]
    folder = cache / f"data-{key}"
    if not (folder / "short.txt").exists():
        for old in cache.glob("data-*"):
            shutil.rmtree(old)
        folder.mkdir(parents=True)
        write(folder, *(shared() if real else made_up()))
    print("vectors of the texts (a few minutes the first time) ...", flush=True)
    subprocess.run([racflow, "vectors", folder, ROOT / "bin" / "racflow"], check=True)
    where = "../shared/data" if real else "generated from examples/intent, since ../shared/data is not there"
    return folder, where


def write(folder, pool, held_out, long_pool, train, test):
    rng = random.Random(1)
    pool = list(dict.fromkeys(pool))
    rng.shuffle(pool)
    texts = [t for t in pool if words(t)][:TEXTS]
    held_out = sorted(set(held_out) - set(texts))
    rng.shuffle(held_out)
    save(folder / "texts.txt", texts)
    save(folder / "queries.txt", held_out[:QUERIES])
    save(folder / "words.txt", (" ".join(words(t)) for t in texts))
    for n in (3, 16):
        save(folder / f"words{n}.txt", cut(held_out, n, rng))
    save(folder / "train.tsv", ["text\tlabel"] + ["\t".join(row) for row in train])
    rng.shuffle(test)
    save(folder / "test.tsv", ["text\tlabel"] + ["\t".join(row) for row in test])
    save(folder / "many.tsv", ["text\tlabel"] + [f"{noisy(text, rng)}\t{label}" for text, label in itertools.islice(itertools.cycle(train), MANY)])
    tokens = counter()
    save(folder / "long.txt", passages(long_pool, tokens))
    save(folder / "short.txt", itertools.islice((t for t in texts if 15 <= tokens(t) <= 17), SHORT))


def shared():
    """The texts of ../shared/data; its test halves are only searched with."""
    pool, held_out = [], []
    for path in sorted(SHARED.glob("*/*.tsv")):
        for row in table(path):
            if "text" in row:
                parts = sentences(row["text"]) if path.parent.name == "dbpedia_classes" else [clean(row["text"])]
                (held_out if "test_public" in path.name else pool).extend(parts)
    abstracts = [clean(json.loads(line)["text"]) for line in open(SHARED / "scifact" / "corpus.jsonl", encoding="utf-8")]
    for text in abstracts:
        pool.extend(sentences(text))
    clinc = [[(row["text"], row["label"]) for row in table(SHARED / "clinc150" / f"{half}.tsv")] for half in ("train", "test_public")]
    return pool, held_out, abstracts, *clinc


def made_up():
    """Every ordered pair of example utterances is a text."""
    train, test = ([(row["text"], row["label"]) for row in table(ROOT / "examples" / "intent" / f"{half}.tsv")] for half in ("train", "test"))
    pool = [f"{a} {b}" for (a, _), (b, _) in itertools.permutations(train, 2)]
    held_out = [f"{a} {b}" for (a, _), (b, _) in itertools.islice(itertools.permutations(test, 2), 2000)]
    return pool, held_out, [t for t, _ in train], train, test


def table(path):
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    header = lines[0].split("\t")
    return [dict(zip(header, line.split("\t"))) for line in lines[1:]]


def clean(text):
    return " ".join(text.split())


def sentences(text):
    return re.split(r"(?<=[.!?]) ", clean(text))


def words(text):
    return re.findall("[a-z]+", text.lower())


def noisy(text, rng):
    """Loses, exchanges and misspells some words."""
    found = text.split()
    kept = []
    for word in found:
        p = rng.random()
        at = rng.randrange(len(word))
        if p < .06:
            word = rng.choice(found)
        elif p < .12:
            word = word[:at] + word[at:at + 2][::-1] + word[at + 2:]
        if p < .92:
            kept.append(word)
    return " ".join(kept) or text


def cut(texts, n, rng):
    """Cuts n words that stand together out of a text, for each query."""
    queries = []
    for text in itertools.cycle(texts):
        if len(queries) == WORD_QUERIES:
            return queries
        w = words(text)
        if len(w) >= n:
            first = rng.randrange(len(w) - n + 1)
            queries.append(" ".join(w[first:first + n]))


def counter():
    """Counts tokens as MiniLM does, [CLS] and [SEP] included."""
    import tokenizers

    vocabulary = pathlib.Path(os.environ["RACFLOW_MODELS"], "minilm", "vocab.txt")
    t = tokenizers.BertWordPieceTokenizer(str(vocabulary), lowercase=True)
    return lambda text: len(t.encode(text).ids)


def passages(pool, tokens):
    """Strings texts together and cuts them at 200 tokens."""
    made, text = [], ""
    for word in itertools.chain.from_iterable(t.split() for t in itertools.cycle(pool)):
        text = f"{text} {word}".strip()
        if len(text) > 500 and tokens(text) >= 195:
            if tokens(text) <= 205:
                made.append(text)
            text = ""
            if len(made) == LONG:
                return made


def save(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
