package result

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/outcome"
)

func TestCount(t *testing.T) {
	results := []outcome.Result{{ID: "1", Text: "line\nend, and \"more\""}, {ID: "2"}, {ID: "3", Text: "x"}}
	dir := t.TempDir()
	for _, format := range []string{JSONL, TSV, CSV, Parquet} {
		for _, compression := range []string{"", GZ, ZST} {
			if format == Parquet && compression != "" {
				continue
			}
			for n := range len(results) + 1 {
				path := filepath.Join(dir, "out")
				content := writeAll(t, format, Options{Compression: compression}, results[:n])
				if err := os.WriteFile(path, content, 0o600); err != nil {
					t.Fatal(err)
				}
				if got, err := Count(path, format, compression); got != int64(n) || err != nil {
					t.Errorf("%s %s: %d of %d results, %v", format, compression, got, n, err)
				}
				if format == JSONL && compression == "" && n > 0 {
					if err := os.WriteFile(path, content[:len(content)-1], 0o600); err != nil {
						t.Fatal(err)
					}
					if got, err := Count(path, format, ""); got != int64(n) || err != nil {
						t.Errorf("without its last line end: %d of %d results, %v", got, n, err)
					}
				}
			}
		}
	}
	path := filepath.Join(dir, "other")
	if err := os.WriteFile(path, []byte("a text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, as := range [][2]string{{Parquet, ""}, {CSV, GZ}, {TSV, ZST}} {
		if n, err := Count(path, as[0], as[1]); err == nil {
			t.Errorf("a text has %d results as %v", n, as)
		}
	}
	if _, err := Count(filepath.Join(dir, "none"), CSV, ""); err == nil {
		t.Error("a file that is not there is counted")
	}
}
