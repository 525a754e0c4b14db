package safetensors

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMapping(t *testing.T) {
	for _, text := range []string{"", "x", string(make([]byte, 10000)) + "end"} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := openMapping(f, int64(len(text)))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		m.forget(m.data)
		m.forget(m.data[len(text)/2:])
		if string(m.data) != text {
			t.Errorf("%d bytes came back as %d", len(text), len(m.data))
		}
	}
}
