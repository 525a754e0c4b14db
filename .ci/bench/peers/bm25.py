"""Lexical search: the best 10 of 100,000 texts by BM25, k1 = 1.2, b = 0.75."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from contender import each, lines, serve

BEST = 10


def tantivy(texts, threads):
    """One segment, its default tokeniser; parsing the query is part of it,
    counting all matches is not."""
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", stored=False)
    index = tantivy.Index(schema.build())
    writer = index.writer(heap_size=500_000_000, num_threads=1)
    for text in texts:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda query: searcher.search(index.parse_query(query, ["text"]), BEST, count=False).hits


def bm25s(texts, threads):
    """Lucene's formula with exact lengths. Without numba short queries take
    thirty times as long."""
    import bm25s

    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
    index.index([text.split() for text in texts], show_progress=False)

    def search(query):
        found = index.retrieve([query.split()], k=BEST, show_progress=False)
        return [(int(i), float(s)) for i, s in zip(found.documents[0], found.scores[0])]

    return search


def main(name, data, threads):
    data = pathlib.Path(data)
    search = {"tantivy": tantivy, "bm25s": bm25s}[name](lines(data / "words.txt"), int(threads))
    queries = {n: lines(data / f"{n}.txt") for n in ("words3", "words16")}
    answers = {n: [search(q) for q in asked] for n, asked in queries.items()} if name == "bm25s" else None
    serve({n: each(asked, search) for n, asked in queries.items()}, answers)


main(*sys.argv[1:])
