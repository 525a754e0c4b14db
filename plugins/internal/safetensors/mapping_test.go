package safetensors

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestMapping(t *testing.T) {
	for _, text := range []string{"", "x", string(make([]byte, 10000)) + "end"} {
		path := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		f, err := os.Open(path)
		must.Do(t, err)
		m, err := openMapping(f, int64(len(text)))
		must.Do(t, err)
		f.Close()
		m.forget(m.data)
		m.forget(m.data[len(text)/2:])
		if string(m.data) != text {
			t.Errorf("%d bytes came back as %d", len(text), len(m.data))
		}
	}
}
