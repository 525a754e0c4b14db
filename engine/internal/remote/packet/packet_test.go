package packet

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/sdk"
)

// compressed is a frame of zstd. Where it is not whole, it does not say how long its content is.
func compressed(t testing.TB, content []byte, whole bool) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		return z.EncodeAll(content, nil)
	}
	for part := range slices.Chunk(content, 1000) {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// content is a packet's, in CBOR.
func content(t testing.TB, value any) []byte {
	t.Helper()
	b, err := encoding.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type object = map[string]any

func TestFrames(t *testing.T) {
	good, err := EncodeOrder(run.Order{Rows: []source.Row{{Line: 2, Text: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	head := []byte{Version, byte(orders)}
	raw := func(plain []byte) []byte { return append(slices.Clone(head), compressed(t, plain, true)...) }
	of := func(value any) []byte { return raw(content(t, value)) }
	rows := func(values ...any) []byte { return of(object{"Rows": values}) }
	tests := map[string]struct {
		data []byte
		want string
	}{
		"nothing":             {nil, "a packet is cut off"},
		"one byte":            {[]byte{Version}, "a packet is cut off"},
		"another version":     {append([]byte{Version + 1}, good[1:]...), "a packet is of version 7, and this racflow reads version 6: let the same racflow run on all machines"},
		"an earlier version":  {append([]byte{1}, good[1:]...), "a packet is of version 1"},
		"another kind":        {append([]byte{Version, byte(answers)}, good[2:]...), "a packet has answers where an order is expected"},
		"no kind":             {append([]byte{Version, 'x'}, good[2:]...), "a packet has something else ('x') where an order is expected"},
		"no frame":            {head, "a packet is damaged: EOF"},
		"cut off":             {good[:len(good)-5], "a packet is damaged: "},
		"no CBOR":             {raw([]byte{0xff}), "a packet is damaged: "},
		"something follows":   {raw(append(content(t, object{"Rows": nil}), 0)), "a packet is damaged: cbor: 1 bytes of extraneous data"},
		"an unknown part":     {of(object{"Colour": 1}), "a packet is damaged: cbor: found unknown field"},
		"an unknown column":   {rows(object{"Colour": 1}), "a packet is damaged: cbor: found unknown field"},
		"a column twice":      {raw([]byte("\xa1dRows\x81\xa2bID`bID`")), "a packet is damaged: cbor: found duplicate map key"},
		"another type":        {rows(object{"Text": 1}), "a packet is damaged: cbor: cannot unmarshal"},
		"an unknown pass":     {of(object{"Pass": 3}), "a packet is damaged: there is no pass 3"},
		"an error of nothing": {rows(object{"Err": &sdk.Error{Code: sdk.CodeInvalid}}), "a packet is damaged: an error says nothing"},
		"an error of no kind": {rows(object{"Err": "no"}), "a packet is damaged: cbor: cannot unmarshal"},
		"too many items":      {of(object{"Rows": make([]object, maxItems+1)}), "a packet is damaged: cbor: exceeded max number of elements 131072"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeOrder(test.data); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	if _, err := DecodeOrder(good); err != nil {
		t.Error(err)
	}
}

// TestDamagedAnswers has parts that do not fit together.
func TestDamagedAnswers(t *testing.T) {
	one := func(more object) object {
		all := object{"Rows": []object{{}}, "Results": []object{{}}}
		maps.Copy(all, more)
		return all
	}
	nothing := &text{"no"}
	tests := map[string]struct {
		data object
		want string
	}{
		"fewer results than rows": {one(object{"Results": []object{}}), "0 results are not those of 1 rows"},
		"left":                    {one(object{"Left": map[int]error{1: nothing}}), "item 1 of 1 is left for no reason"},
		"left for nothing":        {one(object{"Left": map[int]error{0: nil}}), "item 0 of 1 is left for no reason"},
		"bill":                    {one(object{"Bills": map[int]outcome.Bill{-1: {Calls: 1}}}), "there is no item -1 of 1 for a bill"},
		"no failure":              {one(object{"Halted": []any{nil}}), "a failure is missing"},
		"a failure of nothing":    {one(object{"Halted": []any{&outcome.Failure{Stage: "a"}}}), "an error says nothing"},
		"skipped for nothing":     {one(object{"Results": []object{{"Skipped": []any{nil}}}}), "a failure is missing"},
		"left for an empty error": {one(object{"Left": map[int]error{0: &outcome.Failure{Err: &sdk.Error{}}}}), "an error says nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			data := append([]byte{Version, byte(answers)}, compressed(t, content(t, test.data), true)...)
			if _, _, err := DecodeAnswers(data); err == nil || !strings.HasPrefix(err.Error(), "a packet is damaged: "+test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestBombs unpacks what is larger than a packet may be: as one frame that says so, as one that
// does not, and as many small ones.
func TestBombs(t *testing.T) {
	const most = 1 << 16
	large := order{Rows: []row{{Row: source.Row{Text: strings.Repeat("x", most)}}}}
	plain := content(t, large)
	half := compressed(t, plain[:most/2], true)
	for name, frames := range map[string][]byte{
		"one frame": compressed(t, plain, true), "a stream": compressed(t, plain, false),
		"many frames": bytes.Repeat(half, 100),
	} {
		data := append([]byte{Version, byte(orders)}, frames...)
		err := openTo(orders, data, new(order), most)
		if err == nil || !strings.Contains(err.Error(), "a packet has more than 0 MB: no racflow writes one") {
			t.Errorf("%s of %d bytes: %v", name, len(data), err)
		}
	}
	if err := openTo(orders, append([]byte{Version, byte(orders)}, compressed(t, plain, true)...), new(order), 2*most); err != nil {
		t.Error(err)
	}
	if _, err := sealTo(orders, large, most); err == nil || !strings.Contains(err.Error(), "set a smaller batch in the pipeline block") {
		t.Errorf("what is too large was written: %v", err)
	}
}
