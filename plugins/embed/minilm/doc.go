// Package minilm embeds texts with a MiniLM sentence encoder, in pure Go: it
// needs no server, no cgo and no Python, only the files of the model.
//
// A run must work on a machine that has nothing installed, and it spends most of its time
// on embedding. So the package has its own reader for safetensors and its own forward
// pass over the kernels of package simd, and tokenizes with package wordpiece. Its
// vectors have a cosine of at least 0.9999 with those of sentence-transformers on a
// thousand texts (testdata). All arithmetic is as exact as float32, whatever the CPU: so
// nothing is resolved when a model opens, and machines of all kinds share a generation.
//
// The texts of a call go through the layers as one matrix with a row for each token and
// no padding, in batches of about 512 tokens, which the cores share. Matrices wider than
// the hidden states are computed and used a few columns at a time. The weights file is
// mapped into memory: the word embeddings are read from there, the rest is packed for
// the CPU's kernel. So the file must not be changed in place while a model is loaded,
// only replaced.
//
// The model is all-MiniLM-L6-v2 (Wang et al. 2020, arXiv:2002.10957; Reimers and
// Gurevych 2019, arXiv:1908.10084), or any other uncased BERT encoder in the
// same layout with mean or [CLS] pooling, of any size, with weights of 32 or 16
// bits in one safetensors file; one whose differences would change the vectors
// is refused with the reason.
//
// The package does not fetch models, train or quantise them, and knows no other
// architecture. It does not cache vectors.
package minilm
