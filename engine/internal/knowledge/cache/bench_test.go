package cache

import (
	"log/slog"
	"strconv"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// BenchmarkCache keeps short answers, gets them, and opens a folder of them.
func BenchmarkCache(b *testing.B) {
	dir := b.TempDir()
	value := []byte(`{"text": "card_lost", "input": 812, "cached": 700, "output": 4}`)
	c := open(b, dir)
	b.Run("Put", func(b *testing.B) {
		for i := range b.N {
			must.Do(b, c.Put(sdk.KeyOf(strconv.Itoa(i)), "sample.openai", value))
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
			must.Do(b, err)
			must.Do(b, again.Close())
		}
		b.ReportMetric(float64(len(c.index)), "entries")
	})
}

// BenchmarkVectors keeps vectors of 384 numbers, 256 at a time, gets them, and opens a folder of
// them.
func BenchmarkVectors(b *testing.B) {
	const dimension, batch = 384, 256
	o := VectorOptions{Root: b.TempDir(), Limits: Limits{Bytes: 1 << 30}, Log: slog.New(slog.DiscardHandler)}
	made := make([][]float32, batch)
	for i := range made {
		made[i] = vectorOf("x", dimension)
	}
	texts := func(n int) []string {
		all := make([]string, batch)
		for i := range all {
			all[i] = "A passage of some words, as they stand in documents, number " + strconv.Itoa(n*batch+i)
		}
		return all
	}
	v := OpenVectors(o, "e", "e", dimension)
	n := 0
	b.Run("Put", func(b *testing.B) {
		for b.Loop() {
			v.room = 1 << 30
			v.Put(texts(n), made)
			n++
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/vector")
	})
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			if v.Get(texts(0))[0] == nil {
				b.Fatal("it is lost")
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/vector")
	})
	v.Close()
	o.Bytes = 1 << 40 // all of them stay
	b.Run("Open", func(b *testing.B) {
		for b.Loop() {
			again := OpenVectors(o, "e", "e", dimension)
			n = len(again.cache.index)
			again.Close()
		}
		b.ReportMetric(float64(n), "vectors")
	})
}
