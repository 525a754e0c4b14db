package cache

import (
	"log/slog"
	"strconv"
	"testing"

	"github.com/racflow/racflow/sdk"
)

// BenchmarkCache keeps short answers, gets them, and opens a folder of them.
func BenchmarkCache(b *testing.B) {
	dir := b.TempDir()
	value := []byte(`{"text": "card_lost", "input": 812, "cached": 700, "output": 4}`)
	c := open(b, dir)
	b.Run("Put", func(b *testing.B) {
		for i := range b.N {
			if err := c.Put(sdk.KeyOf(strconv.Itoa(i)), "sample.openai", value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Get", func(b *testing.B) {
		put(b, c, "one", string(value))
		for b.Loop() {
			if _, ok := c.Get(sdk.KeyOf("one")); !ok {
				b.Fatal("it is lost")
			}
		}
	})
	const entries = 100_000
	for i := len(c.index); i < entries; i++ {
		put(b, c, "more"+strconv.Itoa(i), string(value))
	}
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			again, err := Open(dir, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			if err := again.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(c.index)), "entries")
	})
}
