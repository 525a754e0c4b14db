// Package linear holds the linear layers of encoders, x·wᵀ + bias, in three precisions.
//
//   - float32: AVX-512, AVX2 or plain Go by package simd.
//   - bfloat16 rounds weights and inputs to 8 bits of mantissa, and then multiplies as float32 does.
//     It is no faster than that, and there for the vectors that were made with it.
//   - int8 has weights in whole numbers from -127 to 127 with a scale for each output,
//     and inputs from 0 to 255 with a scale and a lowest value for each row, found when
//     the row is set (dynamic quantisation, Jacob et al. 2018, arXiv:1712.05877; by row
//     as in ZeroQuant, Yao et al. 2022, arXiv:2206.01861). Sums are exact 32-bit
//     integers: VNNI of AVX-512, AVX-VNNI, AVX2, or plain Go. Every unit
//     gives the same bits for the same input.
//
// The package knows no goroutines, no models and no files. Like package simd it panics
// where shapes do not fit.
package linear
