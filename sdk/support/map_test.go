package support

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestMap(t *testing.T) {
	for _, text := range []string{"", "x", string(make([]byte, 10000)) + "end"} {
		path := filepath.Join(t.TempDir(), "file")
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		f, err := os.Open(path)
		must.Do(t, err)
		data, unmap, err := Map(f)
		must.Do(t, err)
		f.Close()
		Unread(data)
		if string(data) != text {
			t.Errorf("%d bytes came back as %d", len(text), len(data))
		}
		unmap()
	}
}
