package safetensors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder writes files, by name, to a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

// shape returns the dimensions of a tensor; nil: there is none with this name.
func (w *Weights) shape(tensor string) []int {
	if f := w.tensors[tensor]; f != nil {
		return f.entries[tensor].Shape
	}
	return nil
}

// one is a file with a tensor of one row.
func one(tensor string, data string) string {
	return string(tensorFile(fmt.Sprintf(`{%q:{"dtype":"BF16","shape":[1,%d],"data_offsets":[0,%d]}}`, tensor, len(data)/2, len(data)), []byte(data)...))
}

func TestShards(t *testing.T) {
	a, b := one("a", "\x80\x3f"), one("b", "\x20\xc0\x80\x3f")
	w, err := Open(folder(t, map[string]string{
		"m-1.safetensors": a, "m-2.safetensors": b,
		FileName + ".index.json": `{"metadata":{},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors"}}`,
	}))
	must.Do(t, err)
	var sum bytes.Buffer
	if err := w.Sum(t.Context(), &sum); err != nil || sum.String() != a+b {
		t.Errorf("sum of %q, %v", sum.String(), err)
	}
	w.Forget()
	values, err := w.Read(new([]float32), "b", AnyRows, 2)
	if err != nil || values[0] != -2.5 || values[1] != 1 {
		t.Errorf("got %v, %v", values, err)
	}
	table, err := w.Table("b", 2)
	if err != nil || table.Rows != 1 {
		t.Fatalf("table %+v, %v", table, err)
	}
	row := make([]float32, 2)
	if table.Read(row, 0); row[0] != -2.5 {
		t.Errorf("row %v", row)
	}
	if got := fmt.Sprint(w.shape("b"), w.shape("none"), w.Has("a"), w.Has("c")); got != "[1 2] [] true false" {
		t.Errorf("shapes and names: %s", got)
	}
	w.Close()
}

func TestShardsRefused(t *testing.T) {
	long := strings.Repeat("x", 300)
	many := make([]string, maxShards+1)
	for i := range many {
		many[i] = fmt.Sprintf(`"t%d":"m-%d.safetensors"`, i, i)
	}
	for name, c := range map[string]struct{ index, want string }{
		"escape":        {`{"weight_map":{"a":"../m.safetensors"}}`, `tensor "a" is in "../m.safetensors"`},
		"escape back":   {`{"weight_map":{"a":"..\\m.safetensors"}}`, `expected the name of a .safetensors file`},
		"absolute":      {`{"weight_map":{"a":"/etc/m.safetensors"}}`, `expected the name of a .safetensors file`},
		"another file":  {`{"weight_map":{"a":"vocab.txt"}}`, `expected the name of a .safetensors file`},
		"no name":       {`{"weight_map":{"a":""}}`, `expected the name of a .safetensors file`},
		"missing shard": {`{"weight_map":{"a":"m-2.safetensors"}}`, "m-2.safetensors"},
		"long name":     {`{"weight_map":{"a":"` + long + `.safetensors"}}`, long},
		"other shard":   {`{"weight_map":{"a":"m.safetensors","b":"m.safetensors"}}`, `tensor "b" is missing in`},
		"nothing":       {`{}`, "weight_map lists 0 tensors"},
		"wrong type":    {`{"weight_map":{"a":5}}`, "weight_map"},
		"not JSON":      {`{`, "JSON"},
		"many":          {`{"weight_map":{` + strings.Join(many, ",") + `}}`, "more than 256 files"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(folder(t, map[string]string{"m.safetensors": one("a", "\x80\x3f"), FileName + ".index.json": c.index}))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "index.json") {
				t.Errorf("error %v, want the index's name and %q", err, c.want)
			}
		})
	}
}

// TestHeaderMemory reads headers whose numbers, if trusted, would need much memory.
func TestHeaderMemory(t *testing.T) {
	var entries strings.Builder
	for i := range maxTensors + 1000 {
		fmt.Fprintf(&entries, `"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`, i)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"long header":  {tensorFile(`{"x":"` + strings.Repeat(" ", maxHeader) + `"}`), "at most"},
		"long name":    {tensorFile(`{"` + strings.Repeat("x", maxName+1) + `":5}`), "name has 513 bytes"},
		"long number":  {tensorFile(`{"x":{"dtype":` + strings.Repeat("1", 1<<20) + `}}`), `tensor "x": header entry`},
		"no tensors":   {tensorFile(`{}`, make([]byte, maxSpare+1)...), "1048577 bytes belong to no tensor"},
		"many tensors": {tensorFile(`{` + entries.String() + `"x":5}`), "more than 32768 tensors"},
		"deep":         {tensorFile(`{"x":` + strings.Repeat("[", maxHeader/2)), "not valid JSON"},
		"metadata":     {tensorFile(`{"__metadata__":` + strings.Repeat(`{"a":`, 20000) + `1`), "not valid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := openBytes(c.file)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("error %.200v, want %q", err, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 16*maxHeader {
				t.Errorf("%d bytes were allocated for %d", n, len(c.file))
			}
		})
	}
}

// FuzzIndex reads indexes of any content: weights are opened, or refused.
func FuzzIndex(f *testing.F) {
	f.Add(`{"weight_map":{"a":"m.safetensors"}}`)
	f.Add(`{"weight_map":{"a":"../m.safetensors","b":5}}`)
	dir := f.TempDir()
	must.Do(f, os.WriteFile(filepath.Join(dir, "m.safetensors"), []byte(one("a", "\x80\x3f")), 0o644))
	index := filepath.Join(dir, FileName+".index.json")
	f.Fuzz(func(t *testing.T, text string) {
		must.Do(t, os.WriteFile(index, []byte(text), 0o644))
		w, err := Open(dir)
		if err != nil {
			return
		}
		defer w.Close()
		for tensor := range w.Names() {
			if values, err := w.Read(nil, tensor, 1, 1); tensor != "a" || err != nil || values[0] != 1 {
				t.Errorf("%q: tensor %q is %v, %v", text, tensor, values, err)
			}
		}
	})
}

// TestSparse opens a file whose size is larger than any encoder, and which takes no space on disk.
func TestSparse(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	must.Do(t, os.WriteFile(path, tensorFile(`{}`), 0o644))
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	if _, err := Open(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "1024 GB: not the weights of an encoder") {
		t.Errorf("error %v", err)
	}
}

func TestSumEnds(t *testing.T) {
	w, err := Open(folder(t, map[string]string{FileName: one("a", "\x80\x3f")}))
	must.Do(t, err)
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Sum(ctx, &bytes.Buffer{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
