// Package simd holds the routines that racflow's own plugins spend their time
// in, most of them on float32: products of matrices, softmax, GELU and layer norm for
// encoders, dot products for the store, of floats and of bytes, and products of sparse
// vectors for what is learnt from words. Linear layers, also below float32, are in
// package linear.
//
// Each routine exists once per instruction set: AVX-512, AVX2 with FMA, and
// plain Go for every other machine. A [Kernel] is one such set; [Best] is the fastest that
// this CPU can run, found once when the program starts. Code that wants a particular set,
// such as a test that compares two, takes it from [Kernels] or [Portable] and calls its
// methods.
//
// The package knows no goroutines and keeps no state between calls. It does not
// check shapes that come from outside the program: a wrong shape is a mistake
// of the caller and panics. Results of two kernels differ by rounding only,
// because they add the same products in a different order; those of whole numbers
// do not differ.
package simd
