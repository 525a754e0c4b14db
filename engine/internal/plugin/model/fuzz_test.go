package model

import (
	"path/filepath"
	"testing"
)

// FuzzFolder reads any content of a folder: nothing leads out of the folder.
func FuzzFolder(f *testing.F) {
	for _, files := range []map[string]string{tiny(), tiny("modules.json", modulesOf, "index", indexOf), tiny("model.safetensors", headed(`{"w":{"shape":[-1]}}`))} {
		f.Add(files["config.json"], files["modules.json"], files["index"], files["model.safetensors"], `{"files":[{"path":"a/b"}]}`)
	}
	f.Fuzz(func(t *testing.T, config, modules, index, weights, record string) {
		dir := t.TempDir()
		for name, content := range map[string]string{configFile: config, modulesFile: modules, indexFile: index, weightsFile: weights, RecordFile: record} {
			modelWrite(t, dir, name, content)
		}
		if err := checkWeights(filepath.Join(dir, weightsFile)); err == nil && len(weights) < 8 {
			t.Error("what is shorter than the length of a header is taken for weights")
		}
		shards, err := readIndex(filepath.Join(dir, indexFile))
		for _, shard := range shards {
			if filepath.Base(shard) != shard || filepath.Ext(shard) != ".safetensors" {
				t.Errorf("the shard %q, %v", shard, err)
			}
		}
		if root, all, err := readModules(dir); err == nil {
			for _, m := range append(all, module{Path: root}) {
				if m.Path != "" && filepath.Base(m.Path) != m.Path || m.Path == ".." {
					t.Errorf("the module %q", m.Path)
				}
			}
		}
		if r, err := readRecord(dir); err == nil {
			for _, f := range r.Files {
				if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
					t.Errorf("the record's file %q", f.Path)
				}
			}
		}
	})
}
