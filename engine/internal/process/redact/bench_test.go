package redact

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkResult(b *testing.B) {
	text := strings.Repeat("Where is my parcel? It was sent on Monday, as skilled staff said. ", 4)[:200]
	for _, n := range []int{0, 1, 8, 64} {
		var s Secrets
		for i := range n {
			s.Add(fmt.Sprintf("sk-proj-%032x", i*7919))
		}
		b.Run(fmt.Sprintf("%d secrets", n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Result(text)
			}
		})
		if n > 0 {
			b.Run(fmt.Sprintf("%d secrets, all at once", n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				r := s.get().long.all
				for b.Loop() {
					r.Replace(text)
				}
			})
		}
	}
}
