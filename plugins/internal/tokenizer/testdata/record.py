"""Records what the tokenizers library makes of texts, for the tests of package tokenizer.

    python3 record.py TEXTS

TEXTS is a file of one JSON string a line: texts.jsonl in the test data of package encoder, of
which those that were written for this project are used. The tokenizers are trained on them, and
asked about 1,000 texts that are put together from what tokenizers stumble over. The map of Precompiled is the one that the tests of package
charsmap keep. Recorded with the PyPI package tokenizers 0.23.3 in Python 3.11.

texts.json.gz has the texts. Each other file is one tokenizer: "tokenizer", and for every text
"ids", and "pairs", which are those of the text and the one 500 behind it, cut at a limit of 17
to 20 tokens, with the index of the first token of segment 1. parts.json.gz has normalizers and
pre-tokenizers alone, with what they make of some of the texts and of all characters.
"""

import gzip
import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, processors, trainers
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

HERE = pathlib.Path(__file__).parent
TRAIN = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")][:599]
TRAIN = [t for t in TRAIN if max(map(len, t.split()), default=0) < 60]
CHARSMAP = json.loads(open(HERE.parent / "charsmap/testdata/recorded.jsonl", encoding="utf-8").readline())

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
GPT2_SHORT = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = (
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
    r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
)

BITS = [
    " ", "  ", "   ", "     ", "\t", "\n", "\r\n", "\n\n", "\x0b", "\x0c", "\x85", "\u00a0", "\u2003", "\u2028", "\u3000", "\u1680", "\u200b",
    "\u200d", "\ufeff", "\u00ad", "\x00", "\x01", "\x1f", "\x7f", "\ufffd", "\ue000", "\u202e", "▁", "▁▁", "Ġ", "##", "#", "@@", "</w>",
    "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "[cls]", "[MASK", "<s>", "</s>", "<mask>", "<pad>", "<unk>", "< mask>", "<S>", "<0x41>",
    "<|end|>", "<|END|>", "|||IP|||", "|||ip|||", "Straße", "STRASSE", "tok", "Tok", "tokens", "newword", "NEWWORD", "strip", " strip ", "_tok", "é",
    "'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'d", "'ſ", "’s", "don't", "I'LL", "'", "''", "``", '"', "1", "12", "123", "1234", "12345", "3.14",
    "1,000", "²", "½", "Ⅷ", "٣٤", "१२", "①", "〇", "a", "I", "the", "Hello", "WORLD", "camelCase", "snake_case", "x=y+z", "e-mail@example.org",
    "https://example.org/?a=b&c", "C++", ".", "...", "?!", "–", "“", "”", "…", "¿", "«", "(", ")", "{", "}", "$", "€", "^", "~", "|", "\\", "/",
    "e\u0301", "E\u0301", "\u0301", "\u0301\u0301", "a\u0323\u0307", "a\u0307\u0323", "ạ̈", "Å", "\u212b", "ﬁ", "ﬀ", "ß", "ẞ", "İ", "ı", "ſ", "Ǆ", "ǅ", "Σ", "ς",
    "й", "Ё", "ўзб", "Привет", "Γειά", "漢", "漢字", "仮名", "カタカナ", "ｶﾀｶﾅ", "か\u3099", "한국어", "\u1112\u1161\u11ab", "中文字符", "、", "。", "𠀀", "豈", "שָׁלוֹם", "مُحَمَّد",
    "नमस्ते", "क्षि", "สวัสดี", "ไทย", "தமிழ்", "ქართ", "ᏣᎳᎩ", "𝕌𝕟𝕚", "𝒳", "ｆｕｌｌ", "１２", "①②", "㍿", "ﷺ", "™", "℃", "☃", "→", "∑", "🙂", "👍🏽", "👩‍👩‍👧", "🇩🇪", "🏴",
    "x" * 40, "é" * 20, "=" * 30, "-" * 7, " " * 20, "ab" * 30, "漢" * 30, "supercalifragilistic", "antidisestablishmentarianism", "e" + "\u0301" * 35,
]
WORDS = sorted({w for t in TRAIN for w in t.split() if len(w) < 20})
BLOCKS = [(0x20, 0x250), (0x250, 0x370), (0x370, 0x530), (0x590, 0x700), (0x900, 0xE00), (0x1000, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2300), (0x2460, 0x2600), (0x3000, 0x3200),
          (0xFB00, 0xFE00), (0xFE20, 0xFFF0), (0x1D400, 0x1D800), (0x1F300, 0x1F700)]


def tricky():
    rng = random.Random(20)
    out = ["", " ", "a", "\n", "<mask>", "[MASK] ", " <s>", "▁", "\u0301", "'s"]
    while len(out) < 600:
        n = rng.randint(1, 9)
        out.append("".join(rng.choice([rng.choice(BITS), rng.choice(BITS), rng.choice(WORDS), " " + rng.choice(WORDS)]) for _ in range(n)))
    while len(out) < 750:
        low, high = rng.choice(BLOCKS)
        out.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randint(1, 24))))
    while len(out) < 850:
        out.append(" ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 14))))
    for text in rng.sample(TRAIN, 146):
        start = rng.randrange(len(text) + 1)
        out.append(text[start : start + rng.randint(10, 90)])
    # longer than a block
    out += [" ".join(rng.choice([rng.choice(BITS), rng.choice(WORDS), rng.choice(WORDS), rng.choice(WORDS)]) for _ in range(n)) for n in (420, 500, 600)]
    out.append("".join(rng.choice(BITS) for _ in range(700)))
    return [t.encode("utf-8", "replace").decode() for t in out]


TEXTS = tricky()
assert len(TEXTS) == 1000


def write(name, value):
    with gzip.GzipFile(HERE / (name + ".json.gz"), "wb", mtime=0) as f:
        f.write(json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode())


def second(encoding):
    kinds = encoding.type_ids
    return kinds.index(1) if 1 in kinds else len(kinds)


def record(name, tok, change=None):
    text = json.loads(tok.to_str())
    if change:
        change(text)
    tok = Tokenizer.from_str(json.dumps(text))
    ids = [tok.encode(t).ids for t in TEXTS]
    pairs = []
    for i, a in enumerate(TEXTS):
        tok.enable_truncation(17 + i % 4)
        e = tok.encode(a, TEXTS[(i + 500) % 1000])
        pairs.append([e.ids, second(e)])
    text["decoder"] = None
    write(name, {"tokenizer": text, "ids": ids, "pairs": pairs})


def train(tok, kind, size, **more):
    trainer = kind(vocab_size=size, show_progress=False, **more)
    tok.train_from_iterator(TRAIN, trainer)
    return tok


def wordpiece(name, **normalizer):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = N.BertNormalizer(**normalizer)
    tok.pre_tokenizer = P.BertPreTokenizer()
    train(tok, trainers.WordPieceTrainer, 1200, special_tokens=special, limit_alphabet=300)
    return tok, {s: tok.token_to_id(s) for s in special}


def bert():
    tok, ids = wordpiece("uncased", lowercase=True)
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])])
    record("uncased", tok)

    tok, ids = wordpiece("cased", lowercase=False)
    tok.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tok.add_tokens([AddedToken("tok", single_word=True), AddedToken("newword"), AddedToken("strip", lstrip=True, rstrip=True, normalized=False)])
    record("cased", tok)

    tok, ids = wordpiece("odd", lowercase=True, strip_accents=False, clean_text=False, handle_chinese_chars=False)
    tok.add_tokens([AddedToken("Tok", single_word=True, normalized=True), AddedToken("NEWWORD"), AddedToken("Straße", normalized=True)])
    record("odd", tok)


ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"]


def mask(tok, **more):
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False, **more)])


def roberta():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    train(tok, trainers.BpeTrainer, 1200, special_tokens=ROBERTA, initial_alphabet=P.ByteLevel.alphabet())
    mask(tok)
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    record("roberta", tok)

    tok.pre_tokenizer = P.ByteLevel(add_prefix_space=True)
    record("prefix", tok)


def modern():
    tok = Tokenizer(models.BPE())
    tok.normalizer = N.NFC()
    tok.pre_tokenizer = P.ByteLevel(add_prefix_space=False)
    train(tok, trainers.BpeTrainer, 1200, special_tokens=[AddedToken("|||IP|||", normalized=True, special=False), "<|end|>"], initial_alphabet=P.ByteLevel.alphabet())
    tok.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    tok.add_special_tokens([AddedToken(s, lstrip=s == "[MASK]", normalized=False) for s in ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]])
    ids = {s: tok.token_to_id(s) for s in ["[CLS]", "[SEP]"]}
    tok.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", special_tokens=list(ids.items()))
    record("modern", tok)


def llama3():
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.pre_tokenizer = P.Sequence([P.Split(Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(tok, trainers.BpeTrainer, 1200, initial_alphabet=P.ByteLevel.alphabet())
    tok.add_special_tokens(["<s>", "<|end|>"])
    ids = {s: tok.token_to_id(s) for s in ["<s>", "<|end|>"]}
    template = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", ids["<s>"])])
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    record("llama3", tok)


def unigram(normalizer, pre_tokenizer, **more):
    tok = Tokenizer(models.Unigram())
    tok.normalizer, tok.pre_tokenizer = normalizer, pre_tokenizer
    train(tok, trainers.UnigramTrainer, 1500, special_tokens=ROBERTA, unk_token="<unk>", **more)
    return tok


def xlmr():
    pair = [("<s>", 0), ("</s>", 2)]
    template = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=pair)
    import base64
    table = N.Precompiled(base64.b64decode(CHARSMAP))
    tok = unigram(table, P.Sequence([P.WhitespaceSplit(), P.Metaspace()]))
    mask(tok)
    tok.post_processor = template
    record("xlmr", tok)

    tok.pre_tokenizer = P.Metaspace(prepend_scheme="first")
    tok.normalizer = N.Sequence([N.Nmt(), N.NFKC(), N.Strip(left=True, right=True), N.Replace(Regex(" {2,}"), " ")])
    record("first", tok)

    albert = N.Sequence([N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), table])
    tok = unigram(albert, P.Sequence([P.WhitespaceSplit(), P.Metaspace()]))
    mask(tok)
    tok.post_processor = processors.Sequence([template])
    record("albert", tok)


def metaspace():
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.pre_tokenizer = P.Metaspace(prepend_scheme="first")
    train(tok, trainers.BpeTrainer, 1300, special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)], limit_alphabet=120)
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 1)])
    record("metaspace", tok)

    # Llama 2's: a whole text is one word.
    tok.pre_tokenizer = None
    tok.normalizer = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    record("llama2", tok)


def characters():
    """The characters that each class holds, as runs, and those that change between two letters."""
    every = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    alone = lambda p, c: not p.pre_tokenize_str(chr(c))
    apart = lambda p, c: len(p.pre_tokenize_str("a" + chr(c))) == 2
    joined = lambda p, c: len(p.pre_tokenize_str("a" + chr(c))) == 1 and not alone(p, c) and len(p.pre_tokenize_str(chr(c) + ".")) == 2
    classes = {r: (alone, P.Split(Regex(r), "removed")) for r in (r"\p{L}", r"\p{N}", r"\s", r"\p{M}", r"\p{P}", r"\p{Lu}")}
    classes |= {"Digits": (apart, P.Digits(individual_digits=True)), "WhitespaceSplit": (alone, P.WhitespaceSplit()), "Punctuation": (apart, P.Punctuation()), "Whitespace": (joined, P.Whitespace())}
    out = {}
    for name, (test, p) in classes.items():
        runs = []
        for c in every:
            if test(p, c):
                if runs and runs[-1][1] == c - 1:
                    runs[-1][1] = c
                else:
                    runs.append([c, c])
        out[name] = runs
    for name, n in {"StripAccents": N.StripAccents(), "Lowercase": N.Lowercase(), "NFC": N.NFC(), "NFD": N.NFD(), "NFKD": N.NFKD()}.items():
        changed = [[c, n.normalize_str("q" + chr(c) + "q")[1:-1]] for c in every if not 0xAC00 <= c < 0xD7A4]
        out[name] = [[c, s] for c, s in changed if s != chr(c)]
    return out


def parts():
    texts = TEXTS[:200] + TEXTS[600:660]
    splits = [(r, b, i) for r in (GPT2, GPT2_SHORT, LLAMA3, QWEN2, O200K, r"\s+", r"\d", r"[\s\d]+") for b, i in [("isolated", False)]]
    splits += [(r, b, i) for r in (r"\s", r"\p{P}") for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous") for i in (False, True)]
    pre = [P.Split(Regex(r), b, invert=i) for r, b, i in splits]
    pre += [P.Split(s, b) for s in (" ", "▁", "  ") for b in ("merged_with_previous", "merged_with_next", "removed")]
    pre += [P.BertPreTokenizer(), P.Whitespace(), P.WhitespaceSplit(), P.Digits(), P.Digits(individual_digits=True)]
    pre += [P.Punctuation(b) for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")]
    pre += [P.Metaspace(prepend_scheme=s, split=c) for s in ("always", "first", "never") for c in (True, False)]
    pre += [P.ByteLevel(add_prefix_space=a, use_regex=r) for a in (True, False) for r in (True, False)]
    pre += [P.Sequence([P.Whitespace(), P.Digits(individual_digits=True), P.Punctuation()]), P.Sequence([P.WhitespaceSplit(), P.Metaspace(prepend_scheme="first")])]
    norm = [N.Lowercase(), N.NFC(), N.NFD(), N.NFKC(), N.NFKD(), N.StripAccents(), N.Strip(), N.Strip(right=False), N.Strip(left=False), N.Prepend("▁"),
            N.ByteLevel(), N.Replace(" ", "▁"), N.Replace("ab", ""), N.Replace(Regex(" {2,}"), " "), N.Replace(Regex(r"\s+"), " "), N.Replace(Regex(r"[a-z]+\d*"), "x"),
            N.BertNormalizer(), N.BertNormalizer(lowercase=False), N.BertNormalizer(lowercase=False, strip_accents=True), N.BertNormalizer(strip_accents=False),
            N.BertNormalizer(clean_text=False), N.BertNormalizer(handle_chinese_chars=False), N.Sequence([N.NFD(), N.StripAccents(), N.NFC(), N.Lowercase()])]
    holder = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    rows = {"texts": texts, "normalizers": [], "pre_tokenizers": []}
    for n in norm:
        holder.normalizer = n
        rows["normalizers"].append([json.loads(holder.to_str())["normalizer"], [n.normalize_str(t) for t in texts]])
    for p in pre:
        holder.pre_tokenizer = p
        rows["pre_tokenizers"].append([json.loads(holder.to_str())["pre_tokenizer"], [[w for w, _ in p.pre_tokenize_str(t)] for t in texts]])
    rows["characters"] = characters()
    write("parts", rows)


def main():
    write("texts", TEXTS)
    parts()
    bert()
    roberta()
    modern()
    llama3()
    xlmr()
    metaspace()


if __name__ == "__main__":
    main()
