// Package safetensors reads the weights of a model from files in the safetensors
// format (github.com/huggingface/safetensors), for what computes with them on this
// machine.
//
// A weights file may come from anywhere, and may be larger than memory should be. So
// headers are bounded and every tensor is checked against the size of its file before
// anything is allocated; tensors that overlap, and numbers that are not finite, are
// errors that name file and tensor. The files are mapped: numbers of 32 bits
// are used where they lie, others are widened to float32 tensor by tensor, and
// [Weights.Forget] gives back the pages that were read.
//
// The package does not write weights, and reads only types that widen to float32 without
// loss.
package safetensors
