package safetensors

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// tensorFile puts together a safetensors file.
func tensorFile(header string, data ...byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

func openBytes(contents []byte) (*Weights, error) {
	const name = "weights.safetensors"
	entries, data, err := readHeader(contents, name)
	if err != nil {
		return nil, err
	}
	f := &file{name: name, data: data, entries: entries}
	w := &Weights{name: name, files: []*file{f}, tensors: map[string]*file{}}
	for tensor := range entries {
		w.tensors[tensor] = f
	}
	return w, nil
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
			must.Do(t, err)
			got, err := ts.Read(nil, "x", 2, 1)
			if err != nil || len(got) != 2 || got[0] != 1 || got[1] != -2.5 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestNotFinite(t *testing.T) {
	for dtype, numbers := range map[string][]string{
		"F32":  {"\x00\x00\x80\x7f", "\x00\x00\x80\xff", "\x01\x00\xc0\x7f", "\xff\xff\xff\xff"},
		"BF16": {"\x80\x7f", "\x80\xff", "\xc1\x7f"},
		"F16":  {"\x00\x7c", "\x00\xfc", "\x01\x7e"},
	} {
		largest := map[string]string{"F32": "\xff\xff\x7f\xff", "BF16": "\x7f\xff", "F16": "\xff\xfb"}[dtype]
		for _, n := range []int{1, 2, 3, 7, 600, 1025} {
			raw := []byte(strings.Repeat(largest, n))
			if i := notFinite(dtype, raw); i >= 0 {
				t.Errorf("%s: number %d of %d is finite", dtype, i, n)
			}
			for _, number := range numbers {
				for _, at := range []int{0, n / 2, n - 1} {
					other := append([]byte(nil), raw...)
					copy(other[at*len(number):], number)
					if i := notFinite(dtype, other); i != at {
						t.Errorf("%s: %x at %d of %d is found at %d", dtype, number, at, n, i)
					}
				}
			}
		}
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
		"twice":             {tensorFile(`{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), `"x" is there twice`},
		"not an object":     {tensorFile(`[]`), "object"},
		"dimensions":        {entry("F32", "[1,1,1,1,1,1,1,1,1,2]", "[0,8]"), `"x": impossible shape of 10`},
		"behind":            {append(tensorFile(`{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0), make([]byte, maxSpare+8)...), "bytes belong to no tensor"},
		"overlap": {tensorFile(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"y":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`,
			0, 0, 0, 0, 0, 0, 0, 0), `"x" (bytes 0 to 8) and "y" (4 to 8) overlap`},
		"not a number": {tensorFile(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 0, 0, 0, 0, 0, 0, 0xc0, 0x7f), `"x": number 1 is NaN`},
		"infinite":     {tensorFile(`{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}`, 0x80, 0xff, 0, 0), `"x": number 0 is -Inf`},
	} {
		t.Run(name, func(t *testing.T) {
			ts, err := openBytes(c.file)
			if err == nil {
				_, err = ts.Read(nil, "x", 2)
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
		for name := range ts.Names() {
			values, err := ts.Read(nil, name, ts.shape(name)...)
			if err == nil && len(values)*2 > len(file) {
				t.Errorf("%d values from %d bytes", len(values), len(file))
			}
			if shape := ts.shape(name); len(shape) == 2 {
				table, err := ts.Table(name, shape[1])
				if err == nil && table.Rows > 0 {
					table.Read(make([]float32, table.Cols), table.Rows-1)
				}
			}
		}
	})
}
