package row

import (
	"fmt"
	"math"
	"slices"

	"github.com/racflow/racflow/sdk"
)

// Check reports the first entry that Milvus cannot take, and returns the encoded
// metadata of each. Some servers would take it, or a part of it, all the same.
func Check(s sdk.Schema, entries []sdk.Entry) ([][]byte, error) {
	metas := make([][]byte, len(entries))
	for i, e := range entries {
		var err error
		switch metas[i], err = EncodeMeta(e.Meta); {
		case e.ID == "":
			return nil, fmt.Errorf("entry %d of the batch has no id", i)
		case len(e.Vector) != s.Dimension:
			return nil, fmt.Errorf("entry %q has a vector of %d dimensions and the collection's have %d", e.ID, len(e.Vector), s.Dimension)
		case !Finite(e.Vector):
			return nil, fmt.Errorf("entry %q has NaN or an infinity in its vector", e.ID)
		case err != nil:
			return nil, fmt.Errorf("entry %q has %w", e.ID, err)
		}
	}
	return metas, nil
}

// WithoutLong returns the entries that Milvus can take, and an error for each
// that has a string which is too long for it.
func WithoutLong(entries []sdk.Entry) ([]sdk.Entry, sdk.RowErrors) {
	failed := sdk.RowErrors{}
	for i, e := range entries {
		if err := tooLong(e); err != nil {
			failed[i] = sdk.Invalid(err)
		}
	}
	if len(failed) == 0 {
		return entries, nil
	}
	fit := make([]sdk.Entry, 0, len(entries)-len(failed))
	for i, e := range entries {
		if failed[i] == nil {
			fit = append(fit, e)
		}
	}
	return fit, failed
}

func tooLong(e sdk.Entry) error {
	for _, part := range []struct {
		name   string
		bytes  int
		advice string
	}{
		{"id", len(e.ID), "shorten it"}, {"text", len(e.Text), "split it into several rows"}, {"label", len(e.Label), "shorten it"},
		{"context", len(e.Context), "shorten it"}, {"metadata", metaSize(e.Meta), "keep fewer columns as metadata"}, {"hash", 2 * len(e.Hash), "shorten it"},
	} {
		if part.bytes > MaxBytes {
			return fmt.Errorf("the %s of entry %.40q has %d bytes and Milvus takes %d: %s", part.name, e.ID, part.bytes, MaxBytes, part.advice)
		}
	}
	return nil
}

// metaSize is the length of encoded metadata, or an upper bound that is short
// enough.
func metaSize(m sdk.Meta) int {
	n := 2
	for key, value := range m {
		text, _ := value.(string)
		n += 6*len(key) + 6*len(text) + 40 // JSON writes a byte as six at most
	}
	if n <= MaxBytes {
		return n
	}
	encoded, _ := EncodeMeta(m) // Check reports what is wrong with it
	return len(encoded)
}

// Unit returns a vector with norm 1; one that has norm 1 already, as those of
// embedders do, unchanged, and one without direction as zeros.
func Unit(x []float32) []float32 {
	var square float64
	for _, v := range x {
		square += float64(v) * float64(v)
	}
	const tolerance = 1e-6
	if square == 0 || math.Abs(square-1) <= tolerance {
		return x
	}
	norm := math.Sqrt(square)
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(float64(v) / norm)
	}
	return out
}

// Finite reports whether a vector holds neither NaN nor an infinity.
func Finite(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v-v != 0 })
}
