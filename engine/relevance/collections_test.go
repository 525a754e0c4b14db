package relevance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shared holds public collections, where they are at hand.
const shared = "../../../shared/data/"

// question is asked of a collection. nil gold: the collection does not answer it.
type question struct {
	text string
	gold []string // ids, or ids of documents, of what answers it: all of them are left out to make it unanswerable
}

// set is a collection with its questions.
type set struct {
	name      string
	source    string // the arguments of the source block
	rest      string // further blocks of the knowledge
	analyzer  string
	questions []question
}

// row is a line of a JSONL file.
type row map[string]any

func (r row) text(name string) string { s, _ := r[name].(string); return s }

// lines reads a JSONL file, or a TSV file with a header.
func lines(t testing.TB, path string) (all []row) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip("the data is not here: ", err)
	}
	defer f.Close()
	var header []string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		r := row{}
		switch cells := strings.Split(scanner.Text(), "\t"); {
		case filepath.Ext(path) == ".jsonl":
			if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
		case header == nil:
			header = cells
			continue
		default:
			for i, cell := range cells {
				r[header[i]] = cell
			}
		}
		all = append(all, r)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func strs(list any) (all []string) {
	for _, v := range list.([]any) {
		all = append(all, v.(string))
	}
	return all
}

// written keeps rows for a pipeline to read.
func written(t testing.TB, dir, name string, rows []row) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		line, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// every is about n rows, evenly spread.
func every[T any](all []T, n int) (some []T) {
	step := max(1, len(all)/n)
	for i := 0; i < len(all) && len(some) < n; i += step {
		some = append(some, all[i])
	}
	return some
}

// absolute is a path that a file anywhere can name.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// scifact is abstracts of papers, and claims that some of them speak about.
func scifact(t testing.TB, _ string) set {
	s := set{name: "scifact", analyzer: "english", source: fmt.Sprintf("path = %q\ncontext = \"title\"", absolute(t, shared+"scifact/corpus.jsonl"))}
	for _, r := range every(append(lines(t, shared+"scifact/queries_test_public.jsonl"), lines(t, shared+"scifact/queries_train.jsonl")...), 300) {
		s.questions = append(s.questions, question{r.text("query"), strs(r["doc_ids"])})
	}
	return s
}

// codebases is chunks of nine repositories.
func codebases(t testing.TB, dir string) set {
	s := set{name: "codebases", analyzer: "code"}
	paths, of := map[string]string{}, map[string][]string{}
	for _, d := range lines(t, shared+"anthropic_codebases/docs.jsonl") {
		paths[d.text("id")] = d.text("repo") + "/" + d.text("path")
	}
	var rows []row
	for _, c := range lines(t, shared+"anthropic_codebases/chunks.jsonl") {
		document := c.text("doc_id")
		of[document] = append(of[document], c.text("id"))
		rows = append(rows, row{"id": c["id"], "text": c["text"], "context": paths[document]})
	}
	s.source = fmt.Sprintf("path = %q\ncontext = \"context\"", written(t, dir, "codebases.jsonl", rows))
	for _, q := range lines(t, shared+"anthropic_codebases/queries_public.jsonl") {
		var gold []string
		for _, id := range strs(q["doc_ids"]) {
			document, _, _ := strings.Cut(id, "_chunk_")
			gold = append(gold, of[document]...)
		}
		s.questions = append(s.questions, question{q.text("query"), gold})
	}
	return s
}

// quoted is one of a question's gold passages: a document and a quote from it.
var quoted = regexp.MustCompile(`([^ "]+)"([^"]*)"`)

// manual is the example documentation.
func manual(t testing.TB, _ string) set {
	const folder = "../../examples/docs/"
	s := set{
		name: "manual", analyzer: "english", source: fmt.Sprintf("path = %q", absolute(t, folder+"quern")),
		rest: "chunk {\nuse = \"markdown\"\nconfig { size = 200 }\n}\nenrich \"path\" { use = \"path\" }",
	}
	for _, r := range lines(t, folder+"questions.tsv") {
		var gold []string
		for _, g := range quoted.FindAllStringSubmatch(r.text("gold"), -1) {
			gold = append(gold, g[1])
		}
		if gold != nil {
			s.questions = append(s.questions, question{r.text("text"), gold})
		}
	}
	return s
}

// utterances is short rows. A row of the same label answers, as a frequent question does;
// others are out of scope.
func utterances(t testing.TB, dir string) set {
	s := set{name: "utterances", analyzer: "english"}
	of := map[string][]string{}
	var rows []row
	for i, r := range lines(t, shared+"clinc150/train.tsv") {
		id := fmt.Sprintf("u%d", i)
		of[r.text("label")] = append(of[r.text("label")], id)
		rows = append(rows, row{"id": id, "text": r["text"]})
	}
	s.source = fmt.Sprintf("path = %q", written(t, dir, "utterances.jsonl", rows))
	for _, r := range every(lines(t, shared+"clinc150/val.tsv"), 300) {
		s.questions = append(s.questions, question{r.text("text"), of[r.text("label")]})
	}
	for _, r := range every(lines(t, shared+"clinc150/oos_test_public.tsv"), 300) {
		s.questions = append(s.questions, question{r.text("text"), nil})
	}
	return s
}
