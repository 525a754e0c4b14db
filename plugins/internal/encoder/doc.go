// Package encoder computes encoders of the BERT family on this machine, in pure Go, from a
// folder as sentence-transformers lay it out: vectors of texts ([Encoder], Reimers and
// Gurevych 2019, arXiv:1908.10084), and scores of pairs of a query and a passage
// ([CrossEncoder]).
//
// A run must work on a machine that has nothing installed, and it spends most of its time
// on embedding. So there is a forward pass of our own (transformer.go) over the kernels
// of packages simd and linear, on weights that package safetensors reads. Its
// vectors have a cosine of at least 0.9999 with those of sentence-transformers on a
// thousand texts (testdata) at float32; the linear layers can also be computed in int8.
//
// The texts of a call go through the layers as one matrix with a row for each token and
// no padding, in batches of about 512 tokens, which the cores share. The weights are
// mapped into memory: the word embeddings are read from there, the rest is packed for
// the CPU's kernel. So the files must not be changed in place while a model is loaded,
// only replaced.
//
// A model whose differences would change the vectors is refused with the reason (package
// folder). The package does not fetch models and does not train them. It does not cache
// vectors.
package encoder
