package model

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder writes a model's files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		modelWrite(t, dir, name, content)
	}
	return dir
}

// A model is its weights, wherever they lie and whatever lies beside them; a folder without any is all of its files.
func TestDigest(t *testing.T) {
	record := func(sum string) string {
		return `{"files":[{"path":"model.safetensors","size":7,"sha256":"` + sum + `"}]}`
	}
	const sum = "f494ad33dc9f06111a16b403cd1af4e51be1e3b48a2c23a3b5fee0e2a9eaa6a3"
	base := map[string]string{"config.json": "{}", "model.safetensors": "weights"}
	of := func(change map[string]string) string {
		files := map[string]string{}
		for _, m := range []map[string]string{base, change} {
			for name, content := range m {
				if files[name] = content; content == "-" {
					delete(files, name)
				}
			}
		}
		digest, err := Digest(folder(t, files))
		must.Do(t, err)
		return digest
	}
	same := of(nil)
	for name, c := range map[string]struct {
		change map[string]string
		equal  bool
	}{
		"other settings":        {map[string]string{"config.json": `{"a":1}`, "README.md": "x"}, true},
		"hidden":                {map[string]string{".cache/x.safetensors": "x", ".x.safetensors": "x"}, true},
		"other weights":         {map[string]string{"model.safetensors": "weightz"}, false},
		"more weights":          {map[string]string{"2_Dense/model.safetensors": "dense"}, false},
		"another name":          {map[string]string{"model.safetensors": "-", "other.safetensors": "weights"}, false},
		"a record of others":    {map[string]string{RecordFile: record(sum)}, false},
		"a record, other sizes": {map[string]string{RecordFile: record(sum), "model.safetensors": "weights!"}, false},
		"no weights":            {map[string]string{"model.safetensors": "-"}, false},
	} {
		if (of(c.change) == same) != c.equal {
			t.Errorf("%s: equal: %v", name, !c.equal)
		}
	}
	if none := map[string]string{"model.safetensors": "-"}; of(none) == of(map[string]string{"model.safetensors": "-", "config.json": "other"}) {
		t.Error("of a folder without weights not all files count")
	}
	dir := folder(t, base)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	if linked, err := Digest(link); err != nil || linked != same {
		t.Errorf("by a link: %v", err)
	}
	if size, err := Size(link); err != nil || size != 7 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if _, err := Digest(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a digest")
	}
}
