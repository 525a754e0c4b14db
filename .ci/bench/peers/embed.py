"""Embedding: texts in, vectors of norm 1 out, by MiniLM or by an encoder of
random weights (see models.py)."""

import functools
import os
import pathlib
import sys

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from contender import lines, serve, whole

from models import model_folder

BATCH = 32


def sentence_transformers(model, threads, cache, bfloat16=False):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    encoder = SentenceTransformer(str(model_folder(model, cache)), device="cpu", model_kwargs={"dtype": torch.bfloat16 if bfloat16 else torch.float32})
    return lambda texts: encoder.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def onnxruntime(model, threads, cache, int8=False):
    import numpy
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    folder = model_folder(model, cache)
    path = export(folder, cache / f"{model}.onnx")
    session = onnxruntime.InferenceSession(quantise(path) if int8 else str(path), options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def encode(texts):
        vectors = []
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(texts), BATCH):
            chosen = order[first:first + BATCH]
            tokens = tokenizer.encode_batch([texts[i] for i in chosen])
            mask = numpy.array([t.attention_mask for t in tokens])
            hidden = session.run(None, {"input_ids": numpy.array([t.ids for t in tokens]), "attention_mask": mask})[0]
            mean = (hidden * mask[:, :, None].astype(numpy.float32)).sum(1)
            vectors.extend(zip(chosen, mean / numpy.linalg.norm(mean, axis=1, keepdims=True)))
        return numpy.array([vector for _, vector in sorted(vectors, key=lambda v: v[0])])

    return encode


def export(folder, path):
    """Writes the model as ONNX, once. The runtime then optimises it itself;
    its newer exporter and its offline optimiser gave slower ones."""
    if path.exists():
        return path
    import torch
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = AutoModel.from_pretrained(str(folder), attn_implementation="eager")

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    names = ["input_ids", "attention_mask"]
    example = torch.ones((2, 8), dtype=torch.long)
    partial = path.with_suffix(f".{os.getpid()}.part")  # another peer may write the same
    torch.onnx.export(
        Hidden().eval(), (example, example), str(partial), dynamo=False,
        input_names=names, output_names=["hidden"],
        dynamic_axes={n: {0: "batch", 1: "tokens"} for n in [*names, "hidden"]},
    )
    partial.rename(path)
    return path


def quantise(path):
    """Writes the model once more with weights of 8 bits, a scale for each
    output, whose activations the runtime quantises as it goes."""
    to = path.with_suffix(".int8.onnx")
    if not to.exists():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        partial = to.with_suffix(f".{os.getpid()}.part")
        quantize_dynamic(str(path), str(partial), per_channel=True, weight_type=QuantType.QInt8)
        partial.rename(to)
    return str(to)


ENCODERS = {
    "sentence-transformers": sentence_transformers,
    "sentence-transformers-bfloat16": functools.partial(sentence_transformers, bfloat16=True),
    "onnxruntime": onnxruntime,
    "onnxruntime-int8": functools.partial(onnxruntime, int8=True),
}


def main(name, data, threads, model):
    data = pathlib.Path(data)
    encode = ENCODERS[name](model, int(threads), data.parent)
    texts = {n: lines(data / f"{n}.txt") for n in ("short", "long")}
    answers = {n: encode(t[:8]).tolist() for n, t in texts.items()}
    serve({n: whole(len(t), lambda t=t: encode(t)) for n, t in texts.items()}, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
