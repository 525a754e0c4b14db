// Package simd holds the routines that racflow's own plugins spend their time
// in, most of them on float32: linear layers, softmax, GELU and layer norm for
// encoders, dot products for the store, of floats and of bytes, and products of sparse
// vectors for what is learnt from words.
//
// Each routine exists once per instruction set: AVX-512, AVX2 with FMA, and
// plain Go for every other machine. Linear layers have AMX as well, on Linux: its
// products of bfloat16 are put together such that results are no less exact than
// those of float32. A [Kernel] is one such set; [Best] is the
// fastest that this CPU can run, found once when the program starts. Code that
// wants a particular set, such as a test that compares two, takes it from
// [Kernels] or [Portable] and calls its methods.
//
// The package knows no goroutines and keeps no state between calls. It does not
// check shapes that come from outside the program: a wrong shape is a mistake
// of the caller and panics. Results of two kernels differ by rounding only,
// because they add the same products in a different order; those of whole numbers
// do not differ.
package simd
