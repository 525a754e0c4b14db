"""Makes tiny/, a BERT with random weights and a head for one label.

    python3 tiny.py

Its modules.json makes an encoder of the same folder, so that tests have both kinds of model. scores.json holds what
sentence-transformers makes of some pairs. Recorded with the PyPI packages sentence-transformers 6.2.0, transformers
5.23.0, tokenizers 0.23.3 and torch 2.15.0, in Python 3.11, on the CPU.
"""

import json
import pathlib

import torch
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

TEXTS = ["the red house is not the blue house", "some cards are lost, and some houses are red", "which card is it? what did it cost!"]
PAIRS = [["which card?", "the red card"], ["a red house", "some houses are red"], ["", "the house"], ["is it lost", ""],
         ["cards", "it did cost " * 30]]
NAMES = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")


def main():
    out = pathlib.Path(__file__).parent / "tiny"
    (out / "1_Pooling").mkdir(parents=True, exist_ok=True)
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=90, special_tokens=list(NAMES.values()), show_progress=False))
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    torch.manual_seed(1)
    config = BertConfig(vocab_size=t.get_vocab_size(), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                        max_position_embeddings=48, initializer_range=0.5, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(out)
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=48, model_input_names=inputs, **NAMES).save_pretrained(out)
    scores = CrossEncoder(str(out), device="cpu").predict(PAIRS, batch_size=1, show_progress_bar=False)
    kind = "sentence_transformers.models."
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind + name} for i, (path, name) in enumerate(steps)]
    (out / "modules.json").write_text(json.dumps(modules) + "\n")
    (out / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True}) + "\n")
    (out / "scores.json").write_text(json.dumps([[a, b, round(float(s), 6)] for (a, b), s in zip(PAIRS, scores)], indent=1) + "\n")


if __name__ == "__main__":
    main()
