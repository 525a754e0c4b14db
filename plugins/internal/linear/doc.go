// Package linear holds the linear layers of encoders, x·wᵀ + bias, in three precisions.
//
//   - float32 is as exact as float32 on every processor: AVX-512, AVX2 or plain Go by
//     package simd; AMX by products of bfloat16 that together lose no more than a
//     multiplication of float32 does (bf16x3.go).
//   - bfloat16 rounds weights and inputs to 8 bits of mantissa and adds up in float32:
//     AVX512_BF16, AMX or plain Go.
//   - int8 has weights in whole numbers from -127 to 127 with a scale for each output,
//     and inputs from 0 to 255 with a scale and a lowest value for each row, found when
//     the row is set (dynamic quantisation, Jacob et al. 2018, arXiv:1712.05877; by row
//     as in ZeroQuant, Yao et al. 2022, arXiv:2206.01861). Sums are exact 32-bit
//     integers: VNNI of AVX-512, AVX-VNNI, AMX, AVX2, or plain Go. Every unit
//     gives the same bits for the same input.
//
// The products of int8 and of single bfloat16 with AMX were never executed where they were
// written, where no processor has it. So the first use in a process compares them with plain
// Go on small products, and takes the next best unit where they differ; [Unit] says so.
//
// The package knows no goroutines, no models and no files. Like package simd it panics
// where shapes do not fit.
package linear
