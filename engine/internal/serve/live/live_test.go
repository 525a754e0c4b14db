package live

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/run/journal"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

func TestAnswers(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	s := must.Get(Open(t.Context(), []string{filepath.Join(dir, "p.hcl")}, o))(t)
	defer s.Close()
	p := s.pipeline("intent")
	if p == nil || s.pipeline("other") != nil || len(s.Pipelines()) != 1 || p.Definition().Name != "intent" {
		t.Fatalf("%v", s.Pipelines())
	}
	if _, err := p.Answer(t.Context(), workspace.Item{Text: "red apple"}); !errors.Is(err, ErrStarting) {
		t.Errorf("before it is started: %v", err)
	}
	if s := p.Status(); s.Ready || len(s.Knowledge) > 0 {
		t.Errorf("%+v", s)
	}
	must.Do(t, s.Start(t.Context()))
	got := p.Status()
	must.Equal(t, "ready, not since ever, labels, answers, number of knowledge blocks", []any{true, true, []string{"fruit", "vehicle"}, journal.LabelAnswers, 1}, []any{got.Ready, !got.Since.IsZero(), got.Labels, got.Answers, len(got.Knowledge)})
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Errorf("it is %q", got)
	}
	r, err := p.Answer(t.Context(), workspace.Item{ID: "x", Text: " "})
	if err != nil || r.Error == nil || r.ID != "x" {
		t.Errorf("an empty text: %+v, %v", r, err)
	}
	vectors, err := p.Embed(t.Context(), []string{"red apple", "blue car", "red apple"})
	if err != nil || len(vectors) != 3 || len(vectors[0]) == 0 || !slices.Equal(vectors[0], vectors[2]) || slices.Equal(vectors[0], vectors[1]) {
		t.Errorf("vectors: %v, %v", vectors, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range embedding {
		p.embeds <- struct{}{}
	}
	if _, err := p.Embed(ended, []string{"red apple"}); !errors.Is(err, context.Canceled) {
		t.Errorf("many are under way: %v", err)
	}
	found, err := p.Retrieve(t.Context(), workspace.Item{Text: "blue car"})
	if err != nil || len(found) == 0 || found[0].Text != "blue car" || found[0].Label != "vehicle" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := p.Retrieve(t.Context(), workspace.Item{}); err == nil {
		t.Error("an empty text is searched for")
	}
}

func TestFollow(t *testing.T) {
	skipping := strings.Replace(intent, `  elect "e"`, "  sample \"never\" {\n    use  = \"prototype\"\n    when = \"margin < 0\"\n  }\n  elect \"e\"", 1)
	dir, o := folder(t, map[string]string{"p.hcl": skipping, "rows.tsv": fruit})
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	var events []Event
	r, err := p.Follow(t.Context(), workspace.Item{Text: "red apple"}, func(e Event) { events = append(events, e) })
	if err != nil || r.Answer != "fruit" {
		t.Fatalf("%+v, %v", r, err)
	}
	var stages []string
	for _, e := range events {
		stages = append(stages, e.Stage)
	}
	if got := strings.Join(stages, " "); got != "retrieve.near sample.vote sample.never elect.e" {
		t.Fatalf("%s", got)
	}
	if c := events[0].Candidates; len(c) != 3 || c[0].Text != "red apple" {
		t.Errorf("%+v", c)
	}
	if v := events[1].Votes; len(v) == 0 || v[0].Answer != "fruit" || events[1].Skipped != "" {
		t.Errorf("%+v", events[1])
	}
	if events[2].Skipped != "its when rule does not hold" {
		t.Errorf("%+v", events[2])
	}
}

func TestOpenRefuses(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "q.hcl": intent, "wrong.hcl": strings.Replace(intent, "hashing", "hashin", 1), "rows.tsv": fruit})
	file := func(name string) string { return filepath.Join(dir, name) }
	_, err := Open(t.Context(), []string{file("wrong.hcl")}, o)
	if found := new(workspace.DiagnosticsError); !errors.As(err, &found) {
		t.Errorf("%v is no error with diagnostics", err)
	}
	if _, err := Open(t.Context(), []string{file("p.hcl"), file("q.hcl")}, o); err == nil || !strings.Contains(err.Error(), `both have a pipeline "intent"`) {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), nil, o); err == nil {
		t.Error("no file is served")
	}
}

// TestVariables: each of several files gets the variables that it declares.
func TestVariables(t *testing.T) {
	with := "variable \"rows\" { default = \"none.tsv\" }\n" + strings.Replace(intent, `"rows.tsv"`, "var.rows", 1)
	dir, o := folder(t, map[string]string{"p.hcl": with, "q.hcl": strings.Replace(intent, `"intent"`, `"other"`, 1), "rows.tsv": fruit})
	files := []string{filepath.Join(dir, "p.hcl"), filepath.Join(dir, "q.hcl")}
	o.Engine.Vars = map[string]string{"rows": filepath.Join(dir, "rows.tsv")}
	s := started(t, o, files...)
	for _, p := range s.Pipelines() {
		if got := ask(t, p, "fast train"); got != "vehicle" {
			t.Errorf("%s: %q", p.Name(), got)
		}
	}
	o.Engine.Vars["rowz"] = "1"
	if _, err := Open(t.Context(), files, o); err == nil || !strings.Contains(err.Error(), `"rowz"`) {
		t.Errorf("%v", err)
	}
}

// TestDecide: a result for a decision lists all labels, other results as many as the file asks for.
func TestDecide(t *testing.T) {
	for file, shown := range map[string]int{`use    = "learned"`: 0, "use    = \"learned\"\n    config { labels = 1 }": 1, `use    = "soft"`: 0} {
		dir, o := folder(t, map[string]string{"p.hcl": strings.Replace(intent, `use    = "soft"`, file, 1), "rows.tsv": fruit})
		p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
		item := workspace.Item{Text: "red apple"}
		answer, decided := must.Get(p.Answer(t.Context(), item))(t), must.Get(p.Decide(t.Context(), item))(t)
		all := 2
		if strings.Contains(file, "soft") {
			all = 0
		}
		if answer.Answer != "fruit" || decided.Answer != "fruit" || len(answer.Labels) != shown || len(decided.Labels) > all || len(decided.Labels) < min(all, 1) {
			t.Errorf("%s: %+v and %+v", file, answer, decided)
		}
	}
}
