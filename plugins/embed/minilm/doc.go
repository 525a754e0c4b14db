// Package minilm embeds texts with a MiniLM sentence encoder, in pure Go: it
// needs no server, no cgo and no Python, only the files of the model.
//
// A run must work on a machine that has nothing installed, and embedding is what
// it waits for. So the package carries its own reader for safetensors and its
// own forward pass over the kernels of the package simd, tokenizes with the package
// wordpiece, and is held to the vectors of sentence-transformers on a
// thousand texts (testdata) to a cosine of 0.9999. All arithmetic is as exact as
// float32, whatever the CPU.
//
// The texts of a call go through the layers as one matrix with a row for each
// token and no padding, in batches of about 512 tokens, which the cores share.
// What is wider than the hidden states is computed, used and forgotten a few
// columns at a time. The weights file is mapped into memory: the word embeddings
// are read from there, the rest is packed for the CPU's kernel. So it must not be
// changed in place while a model is loaded, only replaced.
//
// The model is all-MiniLM-L6-v2 (Wang et al. 2020, arXiv:2002.10957; Reimers and
// Gurevych 2019, arXiv:1908.10084), or any other uncased BERT encoder in the
// same layout with mean or [CLS] pooling, of any size, with weights of 32 or 16
// bits in one safetensors file; one that differs in a way that would change the
// vectors is refused with the reason.
//
// The package does not fetch models, train or quantise them, and knows no other
// architecture. It does not cache vectors.
package minilm
