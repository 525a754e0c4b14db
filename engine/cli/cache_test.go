package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk"
)

// The command shows, trims and clears answers and vectors of a state folder.
func TestCacheCommand(t *testing.T) {
	state, log := t.TempDir(), slog.New(slog.NewTextHandler(t.Output(), nil))
	answers, err := cache.Open(filepath.Join(state, workspace.CacheFolder), log)
	if err != nil {
		t.Fatal(err)
	}
	for _, question := range []string{"a", "b", "c"} {
		if err := answers.Put(sdk.KeyOf(question), "sample.openai", bytes.Repeat([]byte("x"), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	o := cache.VectorOptions{Root: filepath.Join(state, workspace.VectorsFolder), Limits: cache.Limits{Bytes: 1 << 20}, Log: log}
	vectors := cache.OpenVectors(o, "e", "minilm", 384)
	vectors.Put([]string{"a", "b"}, [][]float32{make([]float32, 384), make([]float32, 384)})
	vectors.Get([]string{"a", "b", "c"})

	steps := []struct {
		args string
		want string // the output or the error; a regular expression
		code int
	}{
		{"", `^STAGE +ANSWERS +SIZE +OLDEST +NEWEST\nsample.openai +3 +3.0 kB +20.*\nall, in 1 file +3 +3.3 kB *\n\n` +
			`EMBEDDER +VECTORS +.*\nminilm +2 +3.1 kB +20.*\nall vectors, in 1 file +2 +3.3 kB *\n$`, 0},
		{"stats --json", `(?s)"entries": 3,.*"about": "sample.openai".*"vectors": \{\s+"entries": 2,.*"about": "minilm"`, 0},
		{"clear vectors", `^removed 0 vectors, 0.0 kB\n$`, exitItemsFailed}, // a build writes them
		{"end", "", 0},
		{"stats", `all vectors, in 1 file +2 +3.3 kB *\n$`, 0},
		{"trim", "give --bytes, --age or both", 1},
		{"trim --bytes 1GB --age 720h", `^removed 0 answers, 0.0 kB\nremoved 0 vectors, 0.0 kB\n$`, 0},
		{"trim --bytes 3kB vectors", `^removed 2 vectors, 3.3 kB\n$`, 0},
		{"trim --bytes 2.5kB", `^removed 1 answer, 1.1 kB\nremoved 0 vectors, 0.0 kB\n$`, 0},
		{"trim --bytes much", "--bytes much: a size is a number above 0, with B, kB,", 1},
		{"trim --bytes 0", "--bytes 0: a size is a number above 0", 1},
		{"trim --bytes 1 answer", `there is no "answer" in the cache: it holds answers and vectors`, 1},
		{"clear everything", `there is no "everything" in the cache`, 1},
		{"clear", `^removed 2 answers, 2.2 kB\nremoved 0 vectors, 0.0 kB\n$`, 0},
		{"stats", `^STAGE.*\nall, in 0 files +0 +0.0 kB *\n\nEMBEDDER.*\nall vectors, in 0 files +0 +0.0 kB *\n$`, 0},
	}
	for _, step := range steps {
		if step.args == "end" {
			vectors.Close()
			if err := answers.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		c := newCache()
		var out, stderr bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&stderr)
		c.SilenceUsage, c.SilenceErrors = true, true
		c.SetArgs(append(strings.Fields(step.args), "--state", state))
		err := c.Execute()
		text, code := out.String(), 0
		if exit := new(exitError); errors.As(err, &exit) {
			code = exit.code
		} else if err != nil {
			text, code = err.Error(), 1
		}
		if code != step.code || !regexp.MustCompile(step.want).MatchString(text) {
			t.Errorf("%q: exit code %d, want %d\n%s\nwant %s\n%s", step.args, code, step.code, text, step.want, stderr.String())
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1000": 1000, "1kB": 1000, "64 KiB": 65536, "1.5GB": 1_500_000_000, "2GiB": 2 << 30, "1TB": 1e12, "7B": 7,
		"": 0, "GB": 0, "0": 0, "-1GB": 0, "1gb": 0, "1GBB": 0, "nan": 0, "infTB": 0, "1e30TB": 0, "1 000": 0,
	} {
		if got, err := parseSize(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
}
