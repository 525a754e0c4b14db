// Package linear holds the linear layers of encoders, x·wᵀ + bias, in two precisions.
//
//   - float32 uses AVX-512, AVX2 or plain Go, by package simd.
//   - int8 stores weights as integers from -127 to 127 with a scale for each output. Inputs are integers from 0 to 255 with
//     a scale and a lowest value for each row, computed when the row is set (dynamic quantisation, Jacob et al. 2018,
//     arXiv:1712.05877; by row as in ZeroQuant, Yao et al. 2022, arXiv:2206.01861). Sums are exact 32-bit integers, computed
//     by VNNI of AVX-512, AVX-VNNI, AVX2, or plain Go. Every unit gives the same bits for the same input.
//
// The package uses no goroutines, models or files. Like package simd, it panics on wrong shapes.
package linear
