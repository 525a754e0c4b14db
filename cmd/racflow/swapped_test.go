package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/doctor"
	"github.com/racflow/racflow/engine/source"
)

// Of 500 rows of SNIPS, on which nothing was tuned, 5 % get another label at random. Most of them are
// found, and most of what is found is one of them, about as many as is said; so are nearly all that
// are relabelled, and they get their own label back. RACFLOW_DOCTOR=SET/EMBEDDER measures all rows of another set.
func TestSwappedLabels(t *testing.T) {
	set, embedder, rows := "snips", "hashing", 500
	if of := os.Getenv("RACFLOW_DOCTOR"); of != "" {
		set, embedder, _ = strings.Cut(of, "/")
		rows = 0
	} else if testing.Short() {
		t.Skip("it fits voters in folds")
	}
	file, err := os.ReadFile(filepath.Join("../../../shared/data", set, "train.tsv"))
	if err != nil {
		t.Skipf("without the data: %v", err)
	}
	dir := t.TempDir()
	own, swapped := swap(strings.Split(strings.TrimSpace(string(file)), "\n"), rows, filepath.Join(dir, "rows.tsv"))
	pipeline := fmt.Sprintf("knowledge \"k\" {\n  source { path = \"rows.tsv\" }\n  embed { use = %q }\n  store { use = \"local\" }\n}\n", embedder)
	if err := os.WriteFile(filepath.Join(dir, "p.hcl"), []byte(pipeline), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := engine.NewWorkspace(t.Context(), engine.Options{Builtin: builtin, State: filepath.Join(dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	found, err := w.Diagnose(t.Context(), filepath.Join(dir, "p.hcl"), 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := doctor.Propose(found.Knowledge[0]).Write(&out, source.JSONL); err != nil {
		t.Fatal(err)
	}
	var named, right, relabelled, sure, back float64
	for line := range strings.Lines(out.String()) {
		var row struct {
			ID, Label string
			Action    string `json:"doctor_action"`
			Why       string `json:"doctor_why"`
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(row.Why, "voters") {
			continue
		}
		named++
		if swapped[row.ID] {
			right++
		}
		if row.Action == doctor.Relabel {
			relabelled++
			if swapped[row.ID] {
				sure++
			}
			if row.Label == own[row.ID] {
				back++
			}
		}
	}
	expected := 0.
	for _, f := range found.Findings {
		expected = max(expected, f.Expected)
	}
	precision, recall := right/named, right/float64(len(swapped))
	t.Logf("%s, %s: %d of %d rows swapped; precision %.3f, expected %.3f, recall %.3f; relabelled %.0f: swapped %.3f, their own label again %.3f",
		set, embedder, len(swapped), len(own), precision, expected, recall, relabelled, sure/relabelled, back/relabelled)
	if rows > 0 && (precision < .7 || recall < .7 || relabelled < 5 || back/relabelled < .9 || expected < precision-.1 || expected > precision+.2) {
		t.Error("it was better")
	}
}

// TestExampleLabels: no label of the project's example is doubted, as none is wrong, though voters
// contradict one in four.
func TestExampleLabels(t *testing.T) {
	if testing.Short() || !hasMiniLM() {
		t.Skip("it fits voters in folds, to vectors of the model minilm")
	}
	w, err := engine.NewWorkspace(t.Context(), engine.Options{Builtin: builtin, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	found, err := w.Diagnose(t.Context(), "../../pipelines/intent.hcl", votedRows)
	if err != nil || found.Voted != 560 || len(found.Findings) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// swap writes n of the rows, 0 for all, with 5 % of the labels swapped, and returns the rows' own ones
// and which were swapped.
func swap(lines []string, n int, to string) (own map[string]string, swapped map[string]bool) {
	random := rand.New(rand.NewPCG(7, 7))
	rows := lines[1:]
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	if n > 0 {
		rows = rows[:n]
	}
	var labels []string
	seen := map[string]bool{}
	for _, row := range rows {
		if l := strings.Split(row, "\t")[1]; !seen[l] {
			seen[l] = true
			labels = append(labels, l)
		}
	}
	own, swapped = map[string]string{}, map[string]bool{}
	var b strings.Builder
	b.WriteString("id\ttext\tlabel\n")
	for i, row := range rows {
		id, fields := fmt.Sprint(i), strings.Split(row, "\t")
		label := fields[1]
		own[id] = label
		for random.Float64() < .05 || swapped[id] && label == fields[1] {
			label = labels[random.IntN(len(labels))]
			swapped[id] = true
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", id, fields[0], label)
	}
	if err := os.WriteFile(to, []byte(b.String()), 0o600); err != nil {
		panic(err)
	}
	return own, swapped
}
