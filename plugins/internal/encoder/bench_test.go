package encoder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// BenchmarkEncode reports texts per second on all cores; with -cpu 1 it reports texts per CPU-second.
func BenchmarkEncode(b *testing.B) {
	const sentence = "how do I reset the password of my account on the new router "
	eachKernelAndPrecision(b, func(name string, m *Encoder) {
		for _, copies := range []int{1, 14} {
			texts := make([]string, 128/copies)
			for i := range texts {
				texts[i] = strings.Repeat(sentence, copies)
			}
			tokens := len(m.tokenizer.Encode(texts[0], m.limit))
			b.Run(fmt.Sprintf("%v/%dtokens", name, tokens), func(b *testing.B) {
				for b.Loop() {
					encode(b, m, texts...)
				}
				b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
			})
		}
	})
}

// eachKernelAndPrecision runs f for float32 with every kernel, and for int8 with the best one.
func eachKernelAndPrecision(b *testing.B, f func(name string, m *Encoder)) {
	for _, k := range simd.Kernels() {
		f(k.String(), loadFor(b, modelDir(b), k))
	}
	f(string(Int8), openFor(b, modelDir(b), Options{Precision: Int8, MiniLM: true}))
}

// BenchmarkEncodeOne measures the latency of one short text, which runs on one core.
func BenchmarkEncodeOne(b *testing.B) {
	eachKernelAndPrecision(b, func(name string, m *Encoder) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				encode(b, m, "how do I reset the password of my account on the new router")
			}
		})
	})
}

func BenchmarkLoad(b *testing.B) {
	dir := modelDir(b)
	for b.Loop() {
		loadFor(b, dir, simd.Best())
	}
}
