"""Makes small encoders with random weights, and records what sentence-transformers makes of texts and pairs with them.

    python3 parity.py parity          the models of the tests, in the folder parity
    python3 parity.py FOLDER large    models of 768 columns and 2 layers: RACFLOW_PARITY=FOLDER go test -run TestParity

There is a model for each architecture, with a head for classification, so that its folder serves as an encoder and
as a cross-encoder. Tokenizers are trained on texts.jsonl; every fifth of its 1,000 texts is encoded, and scored
with the next of these. expected.json holds the ids of texts and pairs, the vectors (half-precision floats, little endian,
in base64) and the scores. Recorded with the PyPI packages sentence-transformers 6.2.0, transformers 5.23.0,
tokenizers 0.23.3, torch 2.15.0, safetensors and numpy, in Python 3.11, on the CPU.
"""

import base64
import json
import pathlib
import shutil
import sys
import tempfile

import numpy
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
LARGE = "large" in sys.argv
TEXTS = [json.loads(line) for line in (HERE / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
SPECIAL = ["", "<pad> the <pad> house", "[PAD] the [SEP] house", "a <mask> </s> [MASK]", "the red house " * 100]
SAMPLE = TEXTS[2::5][: 200 - len(SPECIAL)] + SPECIAL
PAIRS = list(zip(SAMPLE, SAMPLE[1:] + SAMPLE[:1]))
FILES = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", "1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"]

BERT = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
ROBERTA = dict(cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="<unk>", mask_token="<mask>")
PAD_FIRST = dict(pad_token="<pad>", cls_token="<s>", sep_token="</s>", unk_token="<unk>", mask_token="<mask>")


def train(kind, names, pair, segment=0):
    """A tokenizer whose ids begin with the special tokens in the order of names."""
    common = dict(special_tokens=list(names.values()), show_progress=False)
    if kind == "wordpiece":
        t = Tokenizer(models.WordPiece(unk_token=names["unk_token"]))
        t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=400, limit_alphabet=150, **common)
    elif kind == "bytes":
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=450, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), **common)
    else:
        t = Tokenizer(models.Unigram())
        t.normalizer, t.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=400, unk_token=names["unk_token"], **common)
    t.train_from_iterator([text for text in TEXTS[:599] if kind != "unigram" or text.isascii()], trainer)  # it needs a piece for every character
    cls, sep = names["cls_token"], names["sep_token"]
    ids = {name: t.token_to_id(name) for name in (cls, sep)}
    if pair == "roberta":
        t.post_processor = processors.RobertaProcessing((sep, ids[sep]), (cls, ids[cls]), add_prefix_space=False)
    else:
        t.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:{segment} {sep}:{segment}", special_tokens=list(ids.items()))
    return t


def make(name, config, tokenizer, names, limit, dtype, sizes, pooling, activation=None, prompt=None, shard=None, dense=None, normalize=True):
    print(name, flush=True)
    out = pathlib.Path(sys.argv[1]) / name
    shutil.rmtree(out, ignore_errors=True)
    torch.manual_seed(1)
    pad = list(names).index("pad_token")
    config = config(vocab_size=tokenizer.get_vocab_size() + 2, pad_token_id=pad, **sizes)
    model = transformers.AutoModelForSequenceClassification.from_config(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            norm = "norm" in key.lower()
            if p.dim() == 1:
                p.copy_(torch.randn_like(p) * 0.3 + (1 if norm and key.endswith("weight") else 0))
            else:
                embeds = "embeddings" in key or "relative" in key
                p.copy_(torch.randn_like(p) * (1 if embeds else 1.5 / p.shape[1] ** 0.5))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=limit, **names,
        model_input_names=["input_ids", "attention_mask"] + ["token_type_ids"] * (config.model_type == "bert"))
    with tempfile.TemporaryDirectory() as temporary:
        cross = pathlib.Path(temporary) / "cross"
        model.to(dtype).save_pretrained(cross, **({"max_shard_size": shard} if shard and not LARGE else {}))
        fast.save_pretrained(cross)
        if activation:
            path = cross / "config.json"
            text = json.loads(path.read_text())
            text["sentence_transformers"] = {"activation_fn": activation, "version": "6.2.0"}
            path.write_text(json.dumps(text, indent=1, sort_keys=True))
        kwargs = dict(device="cpu", model_kwargs={"dtype": torch.float32})
        scorer = CrossEncoder(str(cross), **kwargs)
        scores = scorer.predict(PAIRS, batch_size=1, show_progress_bar=False)
        if scores.ndim == 2:
            scores = scores[:, [key for key, label in config.id2label.items() if label == "entailment"][0]]
        transformer = Transformer(str(cross), model_kwargs={"dtype": torch.float32})
        modules = [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling, include_prompt=prompt is None)]
        if dense:
            modules.append(Dense(transformer.get_embedding_dimension(), dense, activation_function=torch.nn.Tanh()))
        if normalize:
            modules.append(Normalize())
        prompts = {"query": "", "document": prompt} if prompt else None
        embedder = SentenceTransformer(modules=modules, device="cpu", prompts=prompts)
        embedder.save(temporary + "/embedder")
        vectors = embedder.encode_document(SAMPLE, batch_size=1, show_progress_bar=False)
        shutil.copytree(cross, out)
        for file in FILES:
            path = pathlib.Path(temporary) / "embedder" / file
            if path.exists():
                (out / file).parent.mkdir(exist_ok=True)
                shutil.copyfile(path, out / file)
    expected = {
        "prompt": prompt or "",
        "ids": fast([(prompt or "") + text for text in SAMPLE], truncation=True)["input_ids"],
        "pairs": fast(PAIRS, truncation="longest_first", return_token_type_ids=False)["input_ids"],
        "scores": [round(float(x), 6) for x in scores],
        "dim": vectors.shape[1],
        "vectors": base64.b64encode(vectors.astype("<f2").tobytes()).decode(),
    }
    (out / "expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


def sizes(hidden, heads, intermediate, positions, layers=2, **more):
    if LARGE:
        hidden, heads, intermediate, positions = 768, 12, 3072, max(positions, 514)
    return dict(hidden_size=hidden, num_attention_heads=heads, intermediate_size=intermediate, num_hidden_layers=layers,
                max_position_embeddings=positions, **more)


def main():
    make("bert", transformers.BertConfig, train("wordpiece", BERT, "template", 1), BERT, 48, torch.float16,
         sizes(32, 4, 72, 64, num_labels=1), "mean")
    s = sizes(64, 2, 96, 40)
    make("distilbert", transformers.DistilBertConfig, train("wordpiece", BERT, "template"), BERT, 40, torch.bfloat16,
         dict(dim=s["hidden_size"], n_heads=s["num_attention_heads"], hidden_dim=s["intermediate_size"], n_layers=2,
              max_position_embeddings=s["max_position_embeddings"], num_labels=1), "cls", dense=24, activation="torch.nn.modules.linear.Identity")
    make("roberta", transformers.RobertaConfig, train("bytes", ROBERTA, "roberta"), ROBERTA, 48, torch.float32,
         sizes(48, 3, 64, 50, num_labels=1, type_vocab_size=1, layer_norm_eps=1e-5), "lasttoken", normalize=False)
    make("xlm-roberta", transformers.XLMRobertaConfig, train("unigram", PAD_FIRST, "roberta"), PAD_FIRST, 48, torch.bfloat16,
         sizes(64, 2, 100, 52, num_labels=1, type_vocab_size=1, layer_norm_eps=1e-5), "mean", shard="60KB")
    make("mpnet", transformers.MPNetConfig, train("wordpiece", ROBERTA, "roberta"), ROBERTA, 160, torch.float16,
         sizes(64, 2, 96, 162, layer_norm_eps=1e-5, id2label={0: "contradiction", 1: "entailment", 2: "neutral"}), "mean")
    make("modernbert", transformers.ModernBertConfig, train("bytes", BERT, "template"), BERT, 100, torch.bfloat16,
         sizes(64, 2, 80, 128, layers=4, num_labels=1, local_attention=16, classifier_pooling="mean"), "mean", prompt="search_document: ")


if __name__ == "__main__":
    main()
