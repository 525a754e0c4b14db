"""Records what the tokenizers library makes of words, for the tests of bpe, unigram and charsmap.

    python3 subwords.py TEXTS

TEXTS is a file of one JSON string a line: texts.jsonl in the test data of package encoder, of
which those that were written for this project are used. The models are trained on half of them
and asked about words of the others, and about words drawn at random from what makes such models
stumble. Recorded with the PyPI packages
tokenizers 0.23.3 and sentencepiece 0.2.3 in Python 3.11. Each line of a file that is written
is an object: the name of a variant, its model, and words with their ids.
"""

import base64
import copy
import io
import json
import pathlib
import random
import struct
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
TEXTS = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:599]
TRAIN, ASKED = TEXTS[0::2], TEXTS[1::2]
BYTES = ["<0x%02X>" % b for b in range(256)]


def write(name, rows):
    with open(HERE.parent / name / "testdata" / "recorded.jsonl", "w", encoding="utf-8") as f:
        for row in rows:
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")


def drawn(rng, pieces, count, longest):
    return ["".join(rng.choice(pieces) for _ in range(rng.randint(1, longest))) for _ in range(count)]


def asked(rng, whole):
    """Words of texts, whole texts, and words by chance."""
    texts = [t[: rng.randint(1, 90)] for t in ASKED if t.strip()]
    words = sorted({w for t in texts for w in t.split()})
    rng.shuffle(words)
    tricky = drawn(rng, list("abeinrst!.-é漢😀\u0301 ▁#</w>"), 60, 12)
    tricky += drawn(rng, ["a", "b", "aa", "!", "!!", "==", "ab", "\u00e9", "\U0001f468", "\u200d"], 60, 20)
    tricky += drawn(rng, [chr(c) for c in range(0x20, 0x250)] + [chr(c) for c in range(0x3040, 0x3100)], 40, 8)
    tricky += ["<unk>", "a<unk>b", "<unk><unk>", "<0x0A>", "\n", "\x00", "\ufffd", "a" * 70, "ab" * 60, "=" * 99, "é" * 80, "𝕏" * 40]
    out = words[:100] + tricky
    if whole:
        out += ["▁" + t.replace(" ", "▁") for t in texts[:50]] + texts[50:80]
    return out


def record(name, model, words):
    tok = Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    return {"name": name, "model": model, "words": [[w, tok.encode(w, add_special_tokens=False).ids] for w in words]}


def model_of(tok):
    return json.loads(tok.to_str())["model"]


def byte_letters(text):
    return "".join(w for w, _ in pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text))


def bpe():
    rng = random.Random(1)
    rows = []

    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.train_from_iterator(TRAIN, trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    model = model_of(tok)
    words = asked(rng, False)
    words += [w for t in ASKED[:60] for w, _ in pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(t[:60])]
    words = [byte_letters(w) for w in words[:272]] + words[200:]
    rows.append(record("bytes", model, words))

    old = copy.deepcopy(model)
    old["merges"] = ["#version: 0.2"] + [" ".join(m) for m in model["merges"]][:200]
    rows.append(record("lines of merges", old, words[:150]))

    whole = copy.deepcopy(model)
    whole["ignore_merges"] = True
    for i, w in enumerate(words[:40]):
        whole["vocab"].setdefault(w, 1000 + 2 * i)
    rows.append(record("words without merges", whole, words[:200]))

    # Merges shuffled: the pairs of a rank may need what later ranks make.
    odd = copy.deepcopy(model)
    rng.shuffle(odd["merges"])
    odd["merges"] += odd["merges"][:50]
    rows.append(record("shuffled", odd, words))

    def train(unk, **more):
        tok = Tokenizer(models.BPE(unk_token=unk))
        tok.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        kind = {k: v for k, v in more.items() if k != "fuse_unk"}
        tok.train_from_iterator(TRAIN, trainers.BpeTrainer(
            vocab_size=500, special_tokens=[unk] if unk else [], limit_alphabet=120, show_progress=False, **kind))
        return model_of(tok)

    plain = train("<unk>")
    rows.append(record("unknown characters", plain, asked(rng, False)))
    rows.append(record("unknown characters fused", {**plain, "fuse_unk": True}, asked(rng, False)))
    rows.append(record("unknown characters dropped", {**plain, "unk_token": None}, asked(rng, False)[100:]))

    # As SentencePiece's BPE is converted: one word is a whole text, bytes stand for what is unknown.
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.train_from_iterator(TRAIN, trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<unk>"] + BYTES, limit_alphabet=100, show_progress=False))
    model = model_of(tok)
    rows.append(record("bytes for unknown characters", model, asked(rng, True)))
    few = copy.deepcopy(model)
    for b in BYTES[0xC3:0xE4]:
        del few["vocab"][b]
    rows.append(record("some bytes for unknown characters", few, asked(rng, True)))
    rows.append(record("some bytes, unknown characters apart", {**few, "fuse_unk": False}, asked(rng, True)))
    write("bpe", rows)


def unigram():
    rng = random.Random(2)
    rows = []
    tok = Tokenizer(models.Unigram())
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    tok.train_from_iterator(TRAIN, trainers.UnigramTrainer(
        vocab_size=800, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False))
    model = model_of(tok)
    rows.append(record("trained", model, asked(rng, True)))

    less = copy.deepcopy(model)
    less["vocab"] = [p for p in less["vocab"] if len(p[0]) > 1 or p[0].isascii()]
    rows.append(record("few characters", less, asked(rng, True)))
    fall = copy.deepcopy(less)
    fall["byte_fallback"] = True
    fall["vocab"] += [[b, 0.0] for b in BYTES]
    rows.append(record("bytes for unknown characters", fall, asked(rng, True)))
    some = copy.deepcopy(fall)
    some["vocab"] = [p for p in some["vocab"] if p[0] not in BYTES[0xE0:]]
    rows.append(record("some bytes for unknown characters", some, asked(rng, True)))

    # Sums of the same scores in another order differ by their rounding alone.
    pieces = ["<unk>", "<unk>"] + ["a", "b", "aa", "aaa", "ab", "ba", "aab", "!", "!!", "!!!", "=", "==", "====", "é", "éé", "xx", "xyz", "a"]
    scores = [rng.choice([rng.uniform(-9, -0.5), float(-rng.randint(0, 4))]) for _ in pieces]
    tight = {"type": "Unigram", "unk_id": 1, "vocab": [list(p) for p in zip(pieces, scores)], "byte_fallback": False}
    words = drawn(rng, ["a", "b", "aa", "!", "=", "é", "x", "yz", "漢"], 150, 60)
    rows.append(record("equal sums", tight, words + asked(rng, False)[-60:]))
    # An unknown character costs less than a token here, and a run of them is a token.
    high = {"type": "Unigram", "unk_id": 0, "vocab": [[p, s + 100] for p, s in tight["vocab"]], "byte_fallback": False}
    rows.append(record("high scores", high, words))
    write("unigram", rows)


def entries(charsmap):
    """The entries of a precompiled map: what is written for which texts."""
    size = struct.unpack("<I", charsmap[:4])[0]
    units = struct.unpack("<%dI" % (size // 4), charsmap[4 : 4 + size])
    texts = charsmap[4 + size :]
    offset = lambda u: u >> 10 << ((u & 1 << 9) >> 6)
    out, todo = {}, [(offset(units[0]), b"")]
    while todo:
        at, key = todo.pop()
        for b in range(1, 256):
            unit = units[at ^ b]
            if unit & (1 << 31 | 0xFF) != b:
                continue
            to = at ^ b ^ offset(unit)
            if unit >> 8 & 1:
                start = units[to] & (1 << 31) - 1
                out[(key + bytes([b])).decode()] = texts[start : texts.index(b"\0", start)].decode()
            todo.append((to, key + bytes([b])))
    return out


def trained_map(**options):
    """The map of a tiny SentencePiece model."""
    f = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox %d" % i for i in range(50)]), model_writer=f, vocab_size=30,
        hard_vocab_limit=False, model_type="unigram", minloglevel=2, **options)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(f.getvalue())
    return model.normalizer_spec.precompiled_charsmap


def charsmap():
    rng = random.Random(3)
    full = trained_map(normalization_rule_name="nmt_nfkc")  # XLM-RoBERTa's, which is too large for here
    ranges = [(0, 0x180), (0x300, 0x400), (0x600, 0x660), (0x1100, 0x1110), (0x1E00, 0x1E20), (0x2000, 0x2190), (0x2460, 0x2480),
              (0x3000, 0x3100), (0xAC00, 0xAC10), (0xFB00, 0xFB10), (0xFEFF, 0xFF00), (0xFF00, 0xFFF0), (0x1D400, 0x1D410)]
    inside = lambda s: all(any(a <= ord(c) < b for a, b in ranges) for c in s)
    rules = {k: v for k, v in entries(full).items() if inside(k)}
    # Short entries that begin clusters: what follows them there is lost.
    rules.update({"ab": "[", "\r": "CR", "\u0601": "P", "👍": "thumb", "ไ": "th", "न": "na", "©": "(c)", "한": "han"})
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as f:
        for k, v in sorted(rules.items()):
            f.write(" ".join("%X" % ord(c) for c in k) + "\t" + " ".join("%X" % ord(c) for c in v) + "\n")
        f.flush()
        small = trained_map(normalization_rule_tsv=f.name)
    assert entries(small) == rules, "the map is not what was written"

    chars = sorted({c for k in rules for c in k})
    marks = ["\u0301", "\u0308", "\u0327", "\u3099", "\u309a", "\ufe0f", "\u200d", "\u0e33", "\u0600", "\u0601", "\r", "\n", "\r\n",
             "\u094d", "\u0915", "\u0928", "\u1100", "\u1161", "\u11a8", "\uac00", "\ud55c", "\U0001f1e9", "\U0001f1ea", "👍", "\U0001f3fd", "©", "☺",
             "\u00ad", "\u200b", "\x00", "a", "ab", "A", " ", "é", "e", "が", "ﾊ", "ﾟ", "ﬁ", "漢", "①", "\U000e0020"]
    texts = [t[:80] for t in ASKED if not t.isascii()][:150]
    texts += drawn(rng, marks, 400, 8) + drawn(rng, marks + chars, 250, 10) + ["", "plain", "a\r\nb", "e" + "\u0301" * 40]
    normalizer = normalizers.Precompiled(small)
    write("charsmap", [base64.b64encode(small).decode()] + [[t, normalizer.normalize_str(t)] for t in texts])


bpe()
unigram()
charsmap()
