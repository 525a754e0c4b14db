package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/measure/doctor"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/workspace"
)

// BenchmarkSwappedLabels gives 5 % of the rows of SNIPS, on which nothing was tuned, another label at
// random. It shows the share of doubted labels that were swapped, the expected share, the share of
// swapped labels that were found, and the share of relabelled rows that get their own label back.
// RACFLOW_DOCTOR=SET/EMBEDDER selects another set.
func BenchmarkSwappedLabels(b *testing.B) {
	set, embedder, _ := strings.Cut(cmp.Or(os.Getenv("RACFLOW_DOCTOR"), "snips/hashing"), "/")
	file := readFile(b, "", sharedData(b, set+"/train.tsv"))
	for b.Loop() {
		swappedLabels(b, strings.Split(strings.TrimSpace(file), "\n"), embedder)
	}
}

func swappedLabels(t *testing.B, lines []string, embedder string) {
	rows, own, swapped := swap(lines)
	pipeline := fmt.Sprintf("knowledge \"k\" {\n  source { path = \"rows.tsv\" }\n  embed { use = %q }\n  store { use = \"local\" }\n}\n", embedder)
	dir := folder(t, map[string]string{"p.hcl": pipeline, "rows.tsv": rows})
	w, err := workspace.NewWorkspace(t.Context(), workspace.Options{Builtin: builtin, State: filepath.Join(dir, "state")})
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
	var named, right, relabelled, back float64
	for _, row := range jsonLines[struct {
		ID, Label string
		Action    string `json:"doctor_action"`
		Why       string `json:"doctor_why"`
	}](t, out.String()) {
		if !strings.Contains(row.Why, "voters") {
			continue
		}
		named++
		if swapped[row.ID] {
			right++
		}
		if row.Action == doctor.Relabel {
			relabelled++
			if row.Label == own[row.ID] {
				back++
			}
		}
	}
	expected := 0.
	for _, f := range found.Findings {
		expected = max(expected, f.Expected)
	}
	t.ReportMetric(right/named, "precision")
	t.ReportMetric(expected, "expected-precision")
	t.ReportMetric(right/float64(len(swapped)), "recall")
	t.ReportMetric(back/relabelled, "own-label-of-relabelled")
}

// TestExampleLabels: no label of the project's example is doubted, since none is wrong, though voters
// contradict one in four.
func TestExampleLabels(t *testing.T) {
	if testing.Short() || !hasMiniLM() {
		t.Skip("it fits voters in folds, to vectors of the model minilm")
	}
	w, err := workspace.NewWorkspace(t.Context(), workspace.Options{Builtin: builtin, State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	found, err := w.Diagnose(t.Context(), "../../pipelines/intent.hcl", votedRows)
	if err != nil || found.Voted != 560 || len(found.Findings) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// swap returns a file of rows with 5 % of the labels swapped, the original labels, and the set of
// swapped rows.
func swap(lines []string) (file string, own map[string]string, swapped map[string]bool) {
	random := rand.New(rand.NewPCG(7, 7))
	rows := lines[1:]
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	var labels []string
	for _, row := range rows {
		if l := strings.Split(row, "\t")[1]; !slices.Contains(labels, l) {
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
	return b.String(), own, swapped
}
