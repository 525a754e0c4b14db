// Package encoder runs encoders of the BERT family on this machine, in pure Go. It reads folders in the layout of
// sentence-transformers. An [Encoder] computes vectors of texts (Reimers and Gurevych 2019, arXiv:1908.10084); a
// [CrossEncoder] scores pairs of a query and a passage.
//
// A run must work on a machine that has nothing installed, and it spends most of its time on embedding. So the
// package has its own forward pass (transformer.go). It uses the kernels of packages simd and linear, and the weights
// that package safetensors reads. On a thousand texts (testdata) its float32 vectors have a cosine of at least 0.9999
// with those of sentence-transformers. The linear layers can also be computed in int8.
//
// The texts of a call pass through the layers as one matrix with a row for each token and no padding, in batches of
// about 512 tokens, which the cores share. The weights are mapped into memory. Word embeddings are read from the
// mapping; other weights are packed for the CPU's kernel. So nobody may change the files in place while a model is
// loaded, only replace them.
//
// The package refuses a model with differences that would change the vectors, and gives the reason (folder.go).
// It does not fetch models, train them, or cache vectors.
package encoder
