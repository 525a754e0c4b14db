"""Makes tiny/, a BERT encoder with random weights, and records its vectors.

    python3 tiny.py

The tests use it where MiniLM is not at hand, and as a model that differs from
MiniLM in every size, in its pooling and in not normalising. It was made with the
same packages as record.py's files.
"""

import json
import pathlib
import shutil
import tempfile

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers import BertConfig, BertModel, BertTokenizer

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c un able ##able ##a ##b ! , the red blue house ##s é 漢".split()
TEXTS = ["", "the red house", "The BLUE houses!", "a, b, c", "unable unknown", "the [MASK] house [SEP] é漢", "a b c " * 10]
FILES = ["model.safetensors", "config.json", "modules.json", "sentence_bert_config.json", "tokenizer_config.json", "1_Pooling/config.json"]


def main():
    out = pathlib.Path("tiny")
    (out / "1_Pooling").mkdir(parents=True, exist_ok=True)
    vocab = out / "vocab.txt"
    vocab.write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    torch.manual_seed(1)
    # Two rows more than tokens, as in models that pad their vocabulary.
    config = BertConfig(vocab_size=len(TOKENS) + 2, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                        max_position_embeddings=16, layer_norm_eps=1e-6, initializer_range=0.5)
    with tempfile.TemporaryDirectory() as folder:
        BertModel(config).save_pretrained(folder)
        BertTokenizer(str(vocab)).save_pretrained(folder)
        model = SentenceTransformer(modules=[Transformer(folder), Pooling(24, pooling_mode="cls")], device="cpu")
        model.max_seq_length = 12
        model.save(folder + "/saved")
        for name in FILES:
            shutil.copyfile(f"{folder}/saved/{name}", out / name)
    with open(out / "vectors.jsonl", "w", encoding="utf-8") as file:
        for text, vector in zip(TEXTS, model.encode(TEXTS)):
            file.write(json.dumps([text, [round(float(x), 6) for x in vector]]) + "\n")


if __name__ == "__main__":
    main()
