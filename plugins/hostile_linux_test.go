package plugins_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/plugins"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// What opening any folder may take. The time is the processor's: other work on the machine
// does not count.
const (
	mostOpening = 3 * time.Second
	mostHeld    = 256 << 20 // bytes in memory at a time, those of the test itself included
)

// healthy is a folder that works, as an encoder and as a cross-encoder.
const healthy = "internal/rerank/testdata/tiny"

// openers are the stages that open such a folder.
var openers = map[string]sdk.Kind{"encoder": sdk.KindEmbed, "cross_encoder": sdk.KindRerank}

// files are those of a model's folder.
type files map[string][]byte

func folderOf(t testing.TB, dir string) files {
	t.Helper()
	f := files{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		f[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const weights = "model.safetensors"

// set changes a number, text or list in a JSON file.
func (f files) set(name, key string, value any) {
	object := map[string]any{}
	if err := json.Unmarshal(f[name], &object); err != nil {
		panic(err)
	}
	object[key] = value
	f[name], _ = json.Marshal(object)
}

// header gives the weights another header.
func (f files) header(change func(map[string]any)) {
	n := binary.LittleEndian.Uint64(f[weights])
	object := map[string]any{}
	if err := json.Unmarshal(f[weights][8:8+n], &object); err != nil {
		panic(err)
	}
	change(object)
	text, _ := json.Marshal(object)
	f[weights] = slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, f[weights][8+n:])
}

// entry changes a field of each tensor in the header.
func (f files) entry(key string, value any) {
	f.header(func(h map[string]any) {
		for name, e := range h {
			if e, ok := e.(map[string]any); ok && name != "__metadata__" {
				e[key] = value
			}
		}
	})
}

// floats overwrites all weights with one number.
func (f files) floats(x float32) {
	n := 8 + binary.LittleEndian.Uint64(f[weights])
	data := slices.Clone(f[weights])
	for i := int(n); i+4 <= len(data); i += 4 {
		binary.LittleEndian.PutUint32(data[i:], math.Float32bits(x))
	}
	f[weights] = data
}

// hostile are changes of a folder that works, and what the error has to name.
var hostile = map[string]struct {
	change func(f files, dir string)
	want   string
}{
	"no files":           {func(f files, _ string) { clear(f) }, "config.json"},
	"no weights":         {func(f files, _ string) { delete(f, weights) }, weights},
	"weights of nothing": {func(f files, _ string) { f[weights] = nil }, weights},
	"weights cut off":    {func(f files, _ string) { f[weights] = f[weights][:len(f[weights])/2] }, weights},
	"a header beyond the file": {func(f files, _ string) {
		f[weights] = append(binary.LittleEndian.AppendUint64(nil, 1<<62), f[weights][8:]...)
	}, weights},
	"a header of junk":          {func(f files, _ string) { f[weights] = junk(90<<20, "x") }, weights},
	"a header of brackets":      {func(f files, _ string) { f[weights] = junk(90<<20, "[") }, weights},
	"a header of many tensors":  {func(f files, _ string) { f[weights] = crowd() }, weights},
	"tensors beyond the file":   {func(f files, _ string) { f.entry("data_offsets", []int64{0, 1 << 62}) }, weights},
	"tensors before the file":   {func(f files, _ string) { f.entry("data_offsets", []int64{-8, 0}) }, weights},
	"tensors that end early":    {func(f files, _ string) { f.entry("data_offsets", []int64{8, 4}) }, weights},
	"shapes that overflow":      {func(f files, _ string) { f.entry("shape", []int64{1 << 32, 1 << 32}) }, weights},
	"shapes below zero":         {func(f files, _ string) { f.entry("shape", []int64{-1, -24}) }, weights},
	"shapes of many dimensions": {func(f files, _ string) { f.entry("shape", slices.Repeat([]int64{1}, 100_000)) }, weights},
	"a type of tensors":         {func(f files, _ string) { f.entry("dtype", "F8_E4M3") }, "F8_E4M3"},
	"weights that are NaN":      {func(f files, _ string) { f.floats(float32(math.NaN())) }, weights},
	"infinite weights":          {func(f files, _ string) { f.floats(float32(math.Inf(1))) }, weights},
	"a large file of zeros":     {func(_ files, dir string) { do(os.Truncate(filepath.Join(dir, weights), 1<<40)) }, weights},
	"a shard outside": {func(f files, dir string) {
		do(os.WriteFile(filepath.Join(dir, "..", "outside.safetensors"), f[weights], 0o600))
		do(os.Remove(filepath.Join(dir, weights)))
		f["model.safetensors.index.json"] = index(f[weights], "../outside.safetensors")
		delete(f, weights)
	}, "outside.safetensors"},
	"a shard that is not there": {func(f files, dir string) {
		f["model.safetensors.index.json"] = index(f[weights], "model-00001-of-00002.safetensors")
		do(os.Remove(filepath.Join(dir, weights)))
		delete(f, weights)
	}, "model-00001-of-00002.safetensors"},
	"no JSON":                        {func(f files, _ string) { f["config.json"] = []byte("<html>404</html>") }, "config.json"},
	"endless JSON":                   {func(_ files, dir string) { link("/dev/zero", dir, "config.json") }, "config.json"},
	"weights that nobody writes":     {func(_ files, dir string) { pipe(dir, weights) }, weights},
	"a tokenizer that nobody writes": {func(_ files, dir string) { pipe(dir, "tokenizer.json") }, "tokenizer.json"},
	"JSON that nobody writes":        {func(_ files, dir string) { pipe(dir, "config.json") }, "config.json"},
	"deep JSON":                      {func(f files, _ string) { f["config.json"] = bytes.Repeat([]byte(`{"a":`), 10<<20) }, "config.json"},
	"a folder as JSON": {func(_ files, dir string) {
		do(os.Remove(filepath.Join(dir, "config.json")))
		do(os.Mkdir(filepath.Join(dir, "config.json"), 0o700))
	}, "config.json"},
	"another kind of model":  {func(f files, _ string) { f.set("config.json", "model_type", "llama") }, "llama"},
	"an activation":          {func(f files, _ string) { f.set("config.json", "hidden_act", "swish\x1b[2J") }, "swish"},
	"many layers":            {func(f files, _ string) { f.set("config.json", "num_hidden_layers", 1<<40) }, "config.json"},
	"more layers than there": {func(f files, _ string) { f.set("config.json", "num_hidden_layers", 3) }, "layer.2"},
	"no layers":              {func(f files, _ string) { f.set("config.json", "num_hidden_layers", 0) }, "config.json"},
	"a large hidden size":    {func(f files, _ string) { f.set("config.json", "hidden_size", 1<<40) }, "config.json"},
	"a hidden size below 0":  {func(f files, _ string) { f.set("config.json", "hidden_size", -32) }, "config.json"},
	"another hidden size": {func(f files, _ string) {
		f.set("config.json", "hidden_size", 3<<10)
		f.set("config.json", "num_attention_heads", 4)
	}, weights},
	"many heads":              {func(f files, _ string) { f.set("config.json", "num_attention_heads", 1<<40) }, "config.json"},
	"many positions":          {func(f files, _ string) { f.set("config.json", "max_position_embeddings", 1<<40) }, "config.json"},
	"a number that is a text": {func(f files, _ string) { f.set("config.json", "num_hidden_layers", "two") }, "config.json"},
	"a fraction of layers":    {func(f files, _ string) { f.set("config.json", "num_hidden_layers", 1.5) }, "config.json"},
	"no tokenizer":            {func(f files, dir string) { unlinked(f, dir, "tokenizer.json", "vocab.txt") }, "tokenizer.json"},
	"an endless tokenizer":    {func(_ files, dir string) { link("/dev/zero", dir, "tokenizer.json") }, "tokenizer.json"},
	"a tokenizer of brackets": {func(f files, _ string) { f["tokenizer.json"] = bytes.Repeat([]byte("["), 50<<20) }, "tokenizer.json"},
	"a tokenizer of nothing":  {func(f files, _ string) { f["tokenizer.json"] = []byte("{}") }, "tokenizer.json"},
	"another tokenizer": {func(f files, _ string) {
		f["tokenizer.json"] = []byte(`{"model": {"type": "Quantum", "vocab": {}}}`)
	}, "Quantum"},
	"ids beyond the vocabulary": {func(f files, _ string) {
		f["tokenizer.json"] = []byte(`{"model": {"type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"a": 0, "b": 4000000000}}}`)
	}, "tokenizer.json"},
	"cyclic merges": {func(f files, _ string) {
		f["tokenizer.json"] = []byte(`{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b", "ab ab", "ab a", "a ab"]}}`)
	}, "tokenizer.json"},
}

// only are further cases of one of the stages.
var only = map[string]map[string]struct {
	change func(f files, dir string)
	want   string
}{
	"cross_encoder": {
		"an encoder without a head": {func(f files, _ string) { f.set("config.json", "architectures", []string{"BertModel"}) }, "head"},
		"too many labels":           {func(f files, _ string) { f.set("config.json", "id2label", labels(50_000)) }, "labels"},
		"many labels":               {func(f files, _ string) { f.set("config.json", "id2label", labels(900)) }, "900"},
	},
	"encoder": {
		"a cross-encoder": {func(f files, _ string) { delete(f, "modules.json") }, "cross-encoder"},
		"modules outside the folder": {func(f files, _ string) {
			f["modules.json"] = []byte(`[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},{"idx":1,"name":"1","path":"../../1_Pooling","type":"sentence_transformers.models.Pooling"}]`)
		}, "modules.json"},
		"modules of code": {func(f files, _ string) {
			f["modules.json"] = []byte(`[{"idx":0,"name":"0","path":"","type":"mine.Code"}]`)
		}, "mine.Code"},
		"pooling by its maximum": {func(f files, _ string) { f["1_Pooling/config.json"] = []byte(`{"pooling_mode_max_tokens": true}`) }, "max"},
	},
}

func do(err error) {
	if err != nil {
		panic(err)
	}
}

// junk is a weights file whose header, of n bytes, repeats a text.
func junk(n int, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(n)), bytes.Repeat([]byte(text), n/len(text))...)
}

// crowd is a weights file with a million tensors of nothing.
func crowd() []byte {
	var b bytes.Buffer
	b.WriteString("{")
	for i := range 1_000_000 {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
	}
	b.WriteString("}")
	return append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.Bytes()...)
}

// index says that all tensors of a weights file lie in the given one.
func index(data []byte, shard string) []byte {
	object, weights := map[string]any{}, map[string]string{}
	do(json.Unmarshal(data[8:8+binary.LittleEndian.Uint64(data)], &object))
	for name := range object {
		if name != "__metadata__" {
			weights[name] = shard
		}
	}
	text, err := json.Marshal(map[string]any{"weight_map": weights})
	do(err)
	return text
}

func link(to, dir, name string) {
	_ = os.Remove(filepath.Join(dir, name))
	do(os.Symlink(to, filepath.Join(dir, name)))
}

func pipe(dir, name string) {
	do(os.Remove(filepath.Join(dir, name)))
	do(unix.Mkfifo(filepath.Join(dir, name), 0o600))
}

func unlinked(f files, dir string, names ...string) {
	for _, name := range names {
		delete(f, name)
		_ = os.Remove(filepath.Join(dir, name))
	}
}

func labels(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint(i)] = fmt.Sprint("LABEL_", i)
	}
	return all
}

// trial is what a child process opens, and opened what it says of it.
type trial struct{ Stage, Dir string }

type opened struct {
	Error    string
	Argument string // that the error names
	Held     int    // bytes, at most
	Took     time.Duration
}

const childVariable = "RACFLOW_TEST_HOSTILE"

// TestHostileFolders opens folders that are made to do harm, each in a process of its own, whose
// memory and time are measured. Each is an error that names the argument and the file.
func TestHostileFolders(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	for stage := range openers {
		all := maps.Clone(hostile)
		maps.Copy(all, only[stage])
		for name, c := range all {
			t.Run(stage+"/"+name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "model")
				do(os.CopyFS(dir, os.DirFS(healthy)))
				changed(t, dir, c.change)
				got := inChild(t, trial{stage, dir})
				t.Logf("%v, %d MiB: %s", got.Took, got.Held>>20, got.Error)
				if got.Argument != "model" || !strings.Contains(got.Error, c.want) {
					t.Errorf("argument %q: error %q, want %q", got.Argument, got.Error, c.want)
				}
				if got.Took > mostOpening || got.Held > mostHeld || len(got.Error) > 2000 || strings.ContainsAny(got.Error, "\x1b\n") {
					t.Errorf("it took %v and %d MiB, and said %d bytes: %.300q", got.Took, got.Held>>20, len(got.Error), got.Error)
				}
			})
		}
	}
}

// changed changes the files in dir.
func changed(t *testing.T, dir string, change func(files, string)) {
	f := folderOf(t, dir)
	before := maps.Clone(f)
	change(f, dir)
	for file, text := range f {
		if !bytes.Equal(text, before[file]) {
			do(os.WriteFile(filepath.Join(dir, file), text, 0o600))
		}
	}
	for file := range before {
		if _, ok := f[file]; !ok {
			_ = os.Remove(filepath.Join(dir, file)) // the change may have done so
		}
	}
}

// inChild opens a folder in a process of its own, which has little memory and is ended if it
// hangs.
func inChild(t *testing.T, given trial) (o opened) {
	t.Helper()
	text, err := json.Marshal(given)
	do(err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHostileChild$")
	c.Env = append(os.Environ(), childVariable+"="+string(text))
	out, err := c.CombinedOutput()
	line, _, _ := bytes.Cut(out, []byte("\n"))
	if err != nil || json.Unmarshal(line, &o) != nil {
		t.Fatalf("it ended by %v\n%.1000s", err, out)
	}
	return o
}

func open(t *testing.T, name string) sdk.Stage {
	t.Helper()
	for _, s := range plugins.All() {
		if s.Kind == openers[name] && s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no stage %s", name)
	return sdk.Stage{}
}

// TestHostileChild is the process of inChild.
func TestHostileChild(t *testing.T) {
	text := os.Getenv(childVariable)
	if text == "" {
		t.Skip("another test starts it")
	}
	do(unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 2 << 30, Max: 2 << 30})) // what takes all memory ends
	var given trial
	do(json.Unmarshal([]byte(text), &given))
	config, err := json.Marshal(map[string]any{"model": given.Dir})
	do(err)
	o := opened{Error: "it was opened"}
	before := must.Worked(t, syscall.RUSAGE_SELF)
	if _, err := open(t, given.Stage).Open(t.Context(), sdk.Setup{}, config); err != nil {
		o.Error = err.Error()
		if of := (*sdk.ArgumentError)(nil); errors.As(err, &of) {
			o.Argument = of.Argument
		}
	}
	o.Took = must.Worked(t, syscall.RUSAGE_SELF) - before
	o.Held = must.Size(t, must.Status(t), "VmHWM")
	out, err := json.Marshal(o)
	do(err)
	fmt.Printf("%s\n", out)
}
