// Package simd holds the routines in which racflow's own plugins spend most of their time. Most work on float32:
// matrix products, softmax, GELU and layer norm for encoders; dot products of floats and of bytes for the store;
// products of sparse vectors for models that learn from words. Linear layers, also in int8, are in package linear.
//
// Each routine exists once per instruction set: AVX-512, AVX2 with FMA, and plain Go for every other machine. A
// [Kernel] is the set of routines for one of them. [Best] is the fastest kernel that this CPU can run, found once
// when the program starts. Code that wants a particular kernel, such as a test that compares two, takes it from
// [Kernels] or [Portable] and calls its methods.
//
// The package uses no goroutines and keeps no state between calls. A wrong shape is a mistake of the caller and
// panics; callers must check shapes that come from outside the program. Float results of two kernels differ by
// rounding only, because they add the same products in a different order. Integer results do not differ.
package simd
