package model

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestVerify(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(dir string)
		files  int
		want   []string // the problems
		err    string
	}{
		"as pulled": {func(string) {}, 3, nil, ""},
		"changed, of the same size": {func(dir string) {
			modelWrite(t, dir, "model.safetensors", strings.Replace(weightsOf(10), "\x01", "\x02", 1))
		}, 3, []string{"model.safetensors has the sha256"}, ""},
		"missing": {func(dir string) { remove(t, dir, "tokenizer.json") }, 3, []string{"tokenizer.json is missing"}, ""},
		"both": {func(dir string) {
			remove(t, dir, "tokenizer.json")
			modelWrite(t, dir, "config.json", "{}")
		}, 3, []string{"config.json has the sha256", "tokenizer.json is missing"}, ""},
		"no record":         {func(dir string) { remove(t, dir, RecordFile) }, 0, []string{"there is no record to compare with"}, ""},
		"broken record":     {func(dir string) { modelWrite(t, dir, RecordFile, "{") }, 0, nil, "racflow.json: unexpected end"},
		"record of outside": {func(dir string) { modelWrite(t, dir, RecordFile, `{"files": [{"path": "../../secret"}]}`) }, 0, nil, `names "../../secret", which is outside`},
		"endless record":    {func(dir string) { modelWrite(t, dir, RecordFile, strings.Repeat(" ", 2<<20)) }, 0, nil, "has more than 1048576 bytes"},
		"gone":              {func(dir string) { _ = os.RemoveAll(dir) }, 0, nil, "model is not on this machine: racflow model pull model"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			isolate(t, h.URL)
			h.Put("owner/model", tiny())
			dir, _, err := Pull(context.Background(), Request{Model: "owner/model"})
			must.Do(t, err)
			test.damage(dir)
			v, err := Verify("model")
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %+v, %v, want %q", v, err, test.err)
				}
				return
			}
			if err != nil || v.Files != test.files || !slices.EqualFunc(v.Problems, test.want, strings.HasPrefix) {
				t.Errorf("got %+v, %v, want %q", v, err, test.want)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Error(err)
	}
}

// TestVerifyListed: a listed model that was put there without a record is compared with the list.
func TestVerifyListed(t *testing.T) {
	models := isolate(t, "")
	for _, f := range []string{"model.safetensors", "vocab.txt", "config.json", "sentence_bert_config.json"} {
		modelWrite(t, filepath.Join(models, "minilm"), f, "x")
	}
	if v, err := Verify("minilm"); err != nil || v.Files != 4 || len(v.Problems) != 4 {
		t.Errorf("got %+v, %v", v, err)
	}
}

// TestPutByHand: a model without a record is installed if its weights exist, in whatever files.
func TestPutByHand(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"one file":     {tiny(), true},
		"no weights":   {tiny("model.safetensors", ""), false},
		"shards":       {tiny("model.safetensors", "", "model.safetensors.index.json", indexOf, "model-00001-of-00002.safetensors", weightsOf(3), "model-00002-of-00002.safetensors", weightsOf(4)), true},
		"half of them": {tiny("model.safetensors", "", "model.safetensors.index.json", indexOf, "model-00001-of-00002.safetensors", weightsOf(3)), false},
		"in a folder": {map[string]string{"modules.json": `[{"path":"0_Transformer","type":"x.Transformer"}]`,
			"0_Transformer/config.json": tiny()["config.json"], "0_Transformer/vocab.txt": "x", "0_Transformer/model.safetensors": weightsOf(1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			models := isolate(t, "")
			for file, content := range test.files {
				modelWrite(t, filepath.Join(models, "own"), file, content)
			}
			if s, err := StatusOf("own"); err != nil || s.Installed != test.want {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
}

func TestInstalled(t *testing.T) {
	h := newFakeHub(t)
	models := isolate(t, h.URL)
	h.Put("owner/model", tiny())
	for _, as := range []string{"b", "a"} {
		if _, _, err := Pull(context.Background(), Request{Model: "owner/model", As: as}); err != nil {
			t.Fatal(err)
		}
	}
	modelWrite(t, filepath.Join(models, ".c.pull"), "files/config.json", "{}")
	modelWrite(t, models, "file", "x")
	if names, err := Installed(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("installed %q, %v", names, err)
	}
	for name, want := range map[string]string{"a": "", "c": "", "none": "none is not on this machine", "../a": "is not the name of a model"} {
		if err := Remove(name); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if names, err := Installed(); err != nil || !slices.Equal(names, []string{"b"}) {
		t.Errorf("installed %q, %v", names, err)
	}
	entries, err := os.ReadDir(models)
	if err != nil || len(entries) != 2 { // b and the file
		t.Errorf("left: %v, %v", entries, err)
	}
	t.Setenv(sdk.ModelsVariable, filepath.Join(models, "none"))
	if names, err := Installed(); err != nil || names != nil {
		t.Errorf("in no folder: %q, %v", names, err)
	}
}

// TestCheckWeights has files that are not complete safetensors files, whatever their header says.
func TestCheckWeights(t *testing.T) {
	for content, want := range map[string]string{
		weightsOf(10): "", headed("{}"): "",
		"x":                                  "it has less than 8 bytes",
		"\xff\xff\xff\xff\xff\xff\xff\x7f{}": "its header does not fit into it",
		headed("[]"):                         "its header is no JSON object",
		headed(`{"w":[]}`):                   "its header is no JSON object of tensors",
		headed(`{"w":{"data_offsets":[0,9223372036854775807]}}`): "its header says",
		weightsOf(10) + "x": "its header says",
	} {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		must.Do(t, os.WriteFile(path, []byte(content), 0o600))
		if err := checkWeights(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", content, err, want)
		}
	}
}

// TestKnown: the list is complete, and pinned values have the right form.
func TestKnown(t *testing.T) {
	commit, sum := regexp.MustCompile(`^[0-9a-f]{40}$`), regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]bool{}
	for _, m := range Known() {
		must.Equal(t, m.Name+": new, with a name, an owner, a title, a licence, parameters, and dimensions if it embeds", [7]bool{true, true, true, true, true, true, true},
			[7]bool{!seen[m.Name], sdk.ModelName.MatchString(m.Name), isOwned(m.Repository), m.Title != "", m.License != "", m.Parameters >= 1e7, (m.Kind == Embed) == (m.Dimensions > 0)})
		seen[m.Name] = true
		if !commit.MatchString(m.Commit) {
			t.Errorf("%s: commit %q", m.Name, m.Commit)
		}
		for _, f := range m.Files {
			if f.SHA256 != "" && !sum.MatchString(f.SHA256) || f.SHA256 == "" && !f.Optional {
				t.Errorf("%s: %+v", m.Name, f)
			}
		}
		if found, err := Find(m.Name); err != nil || found.Repository != m.Repository {
			t.Errorf("%s: found %+v, %v", m.Name, found, err)
		}
	}
}
