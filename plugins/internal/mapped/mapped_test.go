package mapped

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestFile(t *testing.T) {
	for _, text := range []string{"", "x", string(make([]byte, 10000)) + "end"} {
		path := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		f, err := os.Open(path)
		must.Do(t, err)
		data, unmap, err := File(f)
		must.Do(t, err)
		f.Close()
		Forget(data)
		if string(data) != text {
			t.Errorf("%d bytes came back as %d", len(text), len(data))
		}
		unmap()
	}
}
