// Package safetensors reads the weights of a model from files in the safetensors format
// (github.com/huggingface/safetensors).
//
// A weights file may come from anywhere and may be larger than memory. So the package bounds headers and checks every
// tensor against the size of its file before it allocates memory. Overlapping tensors and numbers that are not finite
// are errors that name the file and the tensor. The files are mapped into memory. 32-bit numbers are used where they
// lie; other types are widened to float32 tensor by tensor, and [Weights.Forget] gives back the pages that were read.
//
// The package does not write weights, and reads only types that widen to float32 without loss.
package safetensors
