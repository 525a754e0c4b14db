package minilm

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
)

// tensorFile puts together a safetensors file.
func tensorFile(header string, data ...byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

func openBytes(file []byte) (*tensors, error) {
	return openTensors(file, "weights.safetensors")
}

func TestReadTensor(t *testing.T) {
	for name, c := range map[string]struct {
		dtype string
		data  []byte
	}{
		"F32":  {"F32", []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0}},
		"F16":  {"F16", []byte{0, 0x3c, 0, 0xc1}},
		"BF16": {"BF16", []byte{0x80, 0x3f, 0x20, 0xc0}},
	} {
		t.Run(name, func(t *testing.T) {
			end := map[int]string{8: "8", 4: "4"}[len(c.data)]
			ts, err := openBytes(tensorFile(`{"__metadata__":{"format":"pt"},"x":{"dtype":"`+c.dtype+
				`","shape":[2,1],"data_offsets":[0,`+end+`]}}`, c.data...))
			if err != nil {
				t.Fatal(err)
			}
			got, err := ts.read("x", 2, 1)
			if err != nil || len(got) != 2 || got[0] != 1 || got[1] != -2.5 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestFromHalf(t *testing.T) {
	for half, want := range map[uint16]float64{
		0: 0, 1: math.Ldexp(1, -24), 0x03ff: math.Ldexp(1023, -24), 0x0400: math.Ldexp(1, -14),
		0x7bff: 65504, 0xfc00: math.Inf(-1), 0x8001: -math.Ldexp(1, -24),
	} {
		if got := float64(fromHalf(half)); got != want {
			t.Errorf("%#04x: got %v, want %v", half, got, want)
		}
	}
	if !math.IsNaN(float64(fromHalf(0x7e00))) || !math.Signbit(float64(fromHalf(0x8000))) {
		t.Error("not-a-number or minus zero is lost")
	}
}

func TestMalformedTensors(t *testing.T) {
	entry := func(dtype, shape, offsets string) []byte {
		return tensorFile(`{"x":{"dtype":"`+dtype+`","shape":`+shape+`,"data_offsets":`+offsets+`}}`, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":             {nil, "too short"},
		"no header":         {[]byte{1, 0, 0, 0, 0, 0, 0, 0}, "cut off"},
		"header too large":  {[]byte{0, 0, 0, 0, 0, 0, 0, 0xff, '{', '}'}, "cut off"},
		"header not JSON":   {tensorFile(`{"x":`), "JSON"},
		"entry not JSON":    {tensorFile(`{"x":5}`), `"x"`},
		"cut off":           {entry("F32", "[4]", "[0,16]"), `"x": data from byte 0 to 16`},
		"negative offset":   {entry("F32", "[2]", "[-8,0]"), `"x": data`},
		"backwards":         {entry("F32", "[2]", "[8,0]"), `"x": data`},
		"shape and offsets": {entry("F32", "[3]", "[0,8]"), `"x": shape [3]`},
		"negative shape":    {entry("F32", "[-2,-1]", "[0,8]"), `"x": impossible`},
		"overflow":          {entry("F32", "[4294967296,4294967296,2]", "[0,8]"), `"x": impossible`},
		"wrong shape":       {entry("F32", "[1,2]", "[0,8]"), `"x": shape [1 2], expected [2]`},
		"wrong type":        {entry("I64", "[1]", "[0,8]"), `"x": type I64`},
		"missing":           {tensorFile(`{}`), `"x" is missing`},
	} {
		t.Run(name, func(t *testing.T) {
			ts, err := openBytes(c.file)
			if err == nil {
				_, err = ts.read("x", 2)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "weights.safetensors") {
				t.Errorf("error %v, want the file's name and %q", err, c.want)
			}
		})
	}
}

func FuzzTensors(f *testing.F) {
	f.Add(tensorFile(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(tensorFile(`{"x":{"dtype":"BF16","shape":[1,0],"data_offsets":[3,3]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		ts, err := openBytes(file)
		if err != nil {
			return
		}
		for name, e := range ts.entries {
			values, err := ts.read(name, e.Shape...)
			if err == nil && len(values)*2 > len(file) {
				t.Errorf("%d values from %d bytes", len(values), len(file))
			}
		}
	})
}
