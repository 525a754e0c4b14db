"""Makes collections in Milvus with the libraries that people make theirs with, as their documentation does it.

    milvus-foreign.py make ADDRESS ROWS.jsonl KIND[=NAME]...   make collections of these kinds
    milvus-foreign.py call ADDRESS METHOD ARGUMENTS            call a method of MilvusClient; ARGUMENTS is a JSON object
    milvus-foreign.py look ADDRESS NAME...                     print schema, indexes and a hash of all rows, a line of JSON each

A row has id, text, vector, which is normalised, and metadata. For the kinds that have a field for
everything these are label, lang, year, weight, urgent, team, level and, of some rows, note.
"""

import hashlib
import json
import logging
import random
import sys

logging.disable(logging.WARNING)  # the libraries name what they take by default

SCALARS = ("lang", "year", "weight", "urgent")


def stretched(row):
    """The row's vector with a length between 4.5 and 5.5, as embedders that do not normalise give it."""
    factor = 4.5 + int(hashlib.sha256(row["id"].encode()).hexdigest()[:4], 16) / 0x10000
    return [x * factor for x in row["vector"]]


def scalars(row):
    return {key: row[key] for key in SCALARS}


def origin(row):
    """What is nested in the collections."""
    return {"origin": {key: row[key] for key in ("team", "level")}} if "team" in row else {}


def metadata(row):
    return {key: value for key, value in row.items() if key not in ("id", "text", "vector", "note", "team", "level")} | origin(row)


def insert(client, name, rows, **arguments):
    for start in range(0, len(rows), 500):
        client.insert(name, rows[start : start + 500], **arguments)


def quick(client, name, rows, vector):
    """The quick set-up: an id, a vector, everything else dynamic."""
    client.create_collection(name, dimension=len(rows[0]["vector"]))
    insert(client, name, [{"id": place, "vector": vector(row), "text": row["text"], "key": row["id"], **metadata(row)} for place, row in enumerate(rows)])


def explicit(client, name, rows, metric="COSINE", vector=lambda row: row["vector"], words=False, partitions=False, nullable=False, dimension=None):
    """A schema with a field for everything: by numbers that the server gives, or by strings and with a BM25 function."""
    from pymilvus import DataType, Function, FunctionType

    schema = client.create_schema(auto_id=not words, enable_dynamic_field=False)
    # Lite 2.5.1 takes a partition key only where it stands before the primary key.
    schema.add_field("lang", DataType.VARCHAR, max_length=16, is_partition_key=words)
    if words:
        schema.add_field("key", DataType.VARCHAR, max_length=64, is_primary=True)
        schema.add_field("content", DataType.VARCHAR, max_length=4096, enable_analyzer=True, analyzer_params={"type": "english"})
        schema.add_field("bm25", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(Function(name="words", function_type=FunctionType.BM25, input_field_names=["content"], output_field_names=["bm25"]))
    else:
        schema.add_field("number", DataType.INT64, is_primary=True)
        schema.add_field("key", DataType.VARCHAR, max_length=64)
        schema.add_field("content", DataType.VARCHAR, max_length=4096)
    schema.add_field("intent", DataType.VARCHAR, max_length=128)
    schema.add_field("year", DataType.INT64)
    schema.add_field("weight", DataType.DOUBLE)
    schema.add_field("urgent", DataType.BOOL)
    schema.add_field("origin", DataType.JSON)
    if nullable:
        schema.add_field("note", DataType.VARCHAR, max_length=64, nullable=True)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=dimension or len(rows[0]["vector"]))

    indexes = client.prepare_index_params()
    indexes.add_index("embedding", index_type="FLAT", metric_type=metric)
    if words:
        indexes.add_index("bm25", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params={"bm25_k1": 1.2, "bm25_b": 0.75})
    client.create_collection(name, schema=schema, index_params=indexes)

    def entry(row):
        made = {"key": row["id"], "content": row["text"], "intent": row["label"], **scalars(row), **origin(row), "embedding": vector(row)}
        return made | ({"note": row.get("note")} if nullable else {})

    if not partitions:
        insert(client, name, [entry(row) for row in rows])
        return
    for lang in sorted({row["lang"] for row in rows}):
        client.create_partition(name, lang)
        insert(client, name, [entry(row) for row in rows if row["lang"] == lang], partition_name=lang)


def langchain(address, name, rows, words=False):
    """langchain-milvus: texts with metadata, L2 over AUTOINDEX; with words beside a BM25 function, and dynamic metadata."""
    from langchain_core.embeddings import Embeddings
    from langchain_milvus import BM25BuiltInFunction, Milvus

    vectors = {row["text"]: row["vector"] for row in rows}

    class Given(Embeddings):
        def embed_documents(self, texts):
            return [vectors[text] for text in texts]

        def embed_query(self, text):
            return vectors[text]

    more = {}
    if words:
        indexes = [  # by default both are AUTOINDEX, which Lite 2.5.1 refuses for words
            {"index_type": "AUTOINDEX", "metric_type": "L2"},
            {"index_type": "SPARSE_INVERTED_INDEX", "metric_type": "BM25"},
        ]
        more = {"builtin_function": BM25BuiltInFunction(), "vector_field": ["dense", "sparse"], "index_params": indexes, "enable_dynamic_field": True}
    Milvus.from_texts(
        [row["text"] for row in rows], Given(), metadatas=[metadata(row) for row in rows], ids=[row["id"] for row in rows],
        collection_name=name, connection_args={"uri": "http://" + address}, **more,
    )


def llama(address, name, rows, words=False):
    """llama-index's Milvus store: nodes with metadata, IP over AUTOINDEX, everything dynamic."""
    from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
    from llama_index.vector_stores.milvus import MilvusVectorStore
    from llama_index.vector_stores.milvus.utils import BM25BuiltInFunction

    more = {"enable_sparse": True, "sparse_embedding_function": BM25BuiltInFunction()} if words else {}
    store = MilvusVectorStore(uri="http://" + address, collection_name=name, dim=len(rows[0]["vector"]), use_async_client=False, **more)
    store.add([
        TextNode(
            id_=row["id"], text=row["text"], embedding=row["vector"], metadata=metadata(row),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=row.get("document", "the only one"))},
        )
        for row in rows
    ])


def drawn(row):
    """A vector of another embedder: of the row alone, and of nothing that the text says."""
    draw = random.Random(row["id"])
    return [draw.gauss(0, 1) for _ in row["vector"]]


def binary(client, name, rows):
    from pymilvus import DataType

    schema = client.create_schema()
    schema.add_field("id", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("text", DataType.VARCHAR, max_length=4096)
    schema.add_field("vector", DataType.BINARY_VECTOR, dim=len(rows[0]["vector"]))
    indexes = client.prepare_index_params()
    indexes.add_index("vector", index_type="BIN_FLAT", metric_type="HAMMING")
    client.create_collection(name, schema=schema, index_params=indexes)

    def bits(row):
        signs = [x > 0 for x in row["vector"]]
        return bytes(sum(sign << place for place, sign in enumerate(signs[at : at + 8])) for at in range(0, len(signs), 8))

    insert(client, name, [{"id": row["id"], "text": row["text"], "vector": bits(row)} for row in rows])


def two_vectors(client, name, rows):
    from pymilvus import DataType

    schema = client.create_schema()
    schema.add_field("id", DataType.VARCHAR, max_length=64, is_primary=True)
    schema.add_field("text", DataType.VARCHAR, max_length=4096)
    indexes = client.prepare_index_params()
    for field in ("first", "second"):
        schema.add_field(field, DataType.FLOAT_VECTOR, dim=len(rows[0]["vector"]))
        indexes.add_index(field, index_type="FLAT", metric_type="COSINE")
    client.create_collection(name, schema=schema, index_params=indexes)
    insert(client, name, [{"id": row["id"], "text": row["text"], "first": row["vector"], "second": drawn(row)} for row in rows])


def makers(client, address):
    def with_client(make, **options):
        return lambda name, rows: make(client, name, rows, **options)

    return {
        "quick": with_client(quick, vector=stretched),
        "cosine": with_client(explicit, vector=stretched, partitions=True),
        "ip": with_client(explicit, metric="IP"),
        "ip_stretched": with_client(explicit, metric="IP", vector=stretched),
        "l2_words": with_client(explicit, metric="L2", words=True),
        "nullable": with_client(explicit, nullable=True),
        "l2_stretched": with_client(explicit, metric="L2", vector=stretched),
        "langchain": lambda name, rows: langchain(address, name, rows),
        "langchain_words": lambda name, rows: langchain(address, name, rows, words=True),
        "llama": lambda name, rows: llama(address, name, rows),
        "llama_words": lambda name, rows: llama(address, name, rows, words=True),
        "other_embedder": with_client(explicit, vector=drawn),
        "half": with_client(explicit, vector=lambda row: row["vector"][::2], dimension=192),
        "binary": with_client(binary),
        "two_vectors": with_client(two_vectors),
    }


def look(client, name):
    """All that a reader could change, in one form."""
    indexes = [client.describe_index(name, index) for index in sorted(client.list_indexes(name))]
    for index in indexes:
        for counted in ("total_rows", "indexed_rows", "pending_index_rows", "state"):  # of the server's own work
            index.pop(counted, None)
    rows = sorted(json.dumps(row, default=str, sort_keys=True) for row in client.query(name, filter="", limit=16000, output_fields=["*"]))
    return {
        "collection": client.describe_collection(name),
        "indexes": indexes,
        "rows": len(rows),
        "hash": hashlib.sha256("".join(rows).encode()).hexdigest(),
    }


def main(verb, address, *rest):
    from pymilvus import MilvusClient

    client = MilvusClient("http://" + address)
    if verb == "make":
        with open(rest[0], encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        make = makers(client, address)
        for wanted in rest[1:]:
            kind, _, name = wanted.partition("=")
            make[kind](name or kind, rows)
    elif verb == "call":
        print(json.dumps(getattr(client, rest[0])(**json.loads(rest[1])), default=str))
    elif verb == "look":
        for name in rest:
            print(json.dumps(look(client, name), default=str, sort_keys=True))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
