package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/result"
)

var labels = []string{"fruit", "vehicle"}

const pipelineText = `
limit "api" { concurrency = 2 }
knowledge "k" {
  source { path = "rows.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}
pipeline "p" {
  batch = 2
  journal { sync = "batch" }
  input { path = "items.tsv" }
  retrieve "near" {
    from  = knowledge.k
    top_k = 3
  }
  sample "knn" { use = "neighbours" }
  sample "words" { use = "words" }
  prompt "ask" { use = "chat" }
  sample "a" {
    use   = "openai"
    limit = limit.api
    config {
      base_url = "http://model/v1"
      model    = "a"
      api_key  = secret("KEY")
    }
  }
  sample "b" {
    use   = "openai"
    limit = limit.api
    config {
      base_url = "http://model/v1"
      model    = "b"
      api_key  = secret("KEY")
    }
  }
  elect "e" { use = "majority" }
}
`

// files makes the folder of a first machine.
func (w *world) files(text string, items int) string {
	dir := filepath.Join(w.dir, "first")
	var rows, input strings.Builder
	rows.WriteString("text\tlabel\n")
	for i := range 8 {
		fmt.Fprintf(&rows, "%s number %d\t%s\n", []string{"apple", "car"}[i%2], i, labels[i%2])
	}
	input.WriteString("id\ttext\n")
	for i := range items {
		fmt.Fprintf(&input, "q%d\tan apple or a car, number %d\n", i, i)
	}
	for name, content := range map[string]string{"p.hcl": text, "rows.tsv": rows.String(), "items.tsv": input.String()} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
			w.Fatal(err)
		}
	}
	return dir
}

// options open the pipeline of a machine.
func (m *machine) options() engine.Options {
	return engine.Options{
		Builtin: builtin, Start: m.start(stages), Dir: m.dir, State: filepath.Join(m.dir, "state"), Journal: true,
		Getenv: func(string) (string, bool) { return secret + m.name, true },
	}
}

// run takes the input through the pipeline, as the command does.
func (m *machine) run(resume string, reported func([]outcome.Result)) (id string, err error) {
	o := m.options()
	o.Resume, o.Output = resume, filepath.Join(m.dir, "out.jsonl")
	o.Events.Begun = func(b engine.Begun) { id = b.Run }
	p, err := engine.Open(m.ctx, filepath.Join(m.dir, "p.hcl"), o)
	if err != nil {
		return "", err
	}
	defer p.Close()
	out, err := disk.OpenOutput(o.Output, nil, p.Reads()...)
	if err != nil {
		return "", err
	}
	defer out.Close()
	writer, err := result.NewWriter(out, result.JSONL, result.Options{})
	if err != nil {
		return "", err
	}
	write := func(batch []outcome.Result) error {
		for _, one := range batch {
			if err := writer.Write(one); err != nil {
				return err
			}
		}
		if err := writer.Flush(); err != nil {
			return err
		}
		reported(batch)
		return nil
	}
	_, err = p.Work(m.ctx, write, func(err error) error {
		if err == nil {
			err = errors.Join(writer.Close(), out.Commit())
		}
		return err
	})
	return id, err
}

func (m *machine) output() string {
	text, err := os.ReadFile(filepath.Join(m.dir, "out.jsonl"))
	if err != nil {
		return ""
	}
	return string(text)
}

// A run that dies and is resumed, again and again, ends as one that nothing disturbs.
func TestRuns(t *testing.T) {
	histories(t, 200, func(w *world) {
		s := w.service()
		dir := w.files(pipelineText, 8)
		s.limit = 2
		m := w.machine(dir)
		s.machines[m.name] = m
		id, err := m.run("", func([]outcome.Result) {})
		m.end()
		if err != nil {
			w.Fatal(id, err, context.Cause(m.ctx))
		}
		w.Log(m.output())
	})
}
