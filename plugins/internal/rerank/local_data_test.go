package rerank

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/chunk"
	"github.com/racflow/racflow/plugins/internal/enrich"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// shared is the folder with public collections, if it exists.
const shared = "../../../../shared/data/"

// question is an item with the entries that answer it: one entry of each group of gold is enough.
type question struct {
	item  sdk.Item
	gold  [][]string
	group string // questions with the same group are left out together
}

// set is a collection with its questions.
type set struct {
	name, analyzer string
	entries        []sdk.Entry
	questions      []question
}

func readLines[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the data is not here: ", err)
	}
	must.Do(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v T
		must.Do(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	must.Do(t, lines.Err())
	return all
}

// add makes entries from passages, with the context that enrich "path" gives them.
func (s *set) add(t testing.TB, ids []string, passages []sdk.Passage) {
	t.Helper()
	enricher, err := sdktest.Open(t, enrich.Path(), sdk.Setup{}, "{}")
	must.Do(t, err)
	additions, err := enricher.Enrich(t.Context(), passages)
	must.Do(t, err)
	for i, p := range passages {
		s.entries = append(s.entries, sdk.Entry{ID: ids[i], Text: p.Text(), Context: additions[i].Context})
	}
}

// codebases returns Anthropic's example of contextual retrieval: chunks of nine repositories. The
// questions about one repository are a group.
func codebases(t testing.TB) *set {
	type document struct{ ID, Repo, Path, Text string }
	type chunk struct {
		ID, Text string
		Document string `json:"doc_id"`
	}
	type line struct {
		ID, Query string
		Gold      [][]string
	}
	folder := shared + "anthropic_codebases/"
	s := &set{name: "codebases", analyzer: "code"}
	documents, repositories := map[string]*sdk.Document{}, map[string]string{}
	for _, d := range readLines[document](t, folder+"docs.jsonl") {
		documents[d.ID] = &sdk.Document{ID: d.ID, Text: d.Text, Meta: sdk.Meta{"path": d.Path}}
		repositories[d.ID] = d.Repo
	}
	var ids []string
	var passages []sdk.Passage
	ends := map[string]int{}
	for _, c := range readLines[chunk](t, folder+"chunks.jsonl") {
		start := ends[c.Document]
		ends[c.Document] += len(c.Text)
		ids = append(ids, c.ID)
		passages = append(passages, sdk.Passage{Document: documents[c.Document], Chunk: sdk.Chunk{Start: start, End: ends[c.Document]}})
		repositories[c.ID] = repositories[c.Document]
	}
	s.add(t, ids, passages)
	for _, q := range readLines[line](t, folder+"queries_public.jsonl") {
		s.questions = append(s.questions, question{sdk.Item{ID: q.ID, Text: q.Query}, q.Gold, repositories[q.Gold[0][0]]})
	}
	return s
}

// scifact returns abstracts of papers, and claims about some of them.
func scifact(t testing.TB) *set {
	type abstract struct{ ID, Title, Text string }
	type claim struct {
		ID, Query string
		Documents []string `json:"doc_ids"`
	}
	s := &set{name: "scifact", analyzer: "english"}
	for _, a := range readLines[abstract](t, shared+"scifact/corpus.jsonl") {
		s.entries = append(s.entries, sdk.Entry{ID: a.ID, Text: a.Text, Context: a.Title})
	}
	for _, file := range []string{"queries_train.jsonl", "queries_test_public.jsonl"} {
		for _, c := range readLines[claim](t, shared+"scifact/"+file) {
			q := question{item: sdk.Item{ID: c.ID, Text: c.Query}, group: s.name}
			for _, id := range c.Documents {
				q.gold = append(q.gold, []string{id})
			}
			s.questions = append(s.questions, q)
		}
	}
	return s
}

// collection reads any other collection in the same form: prose that may have titles, or code that may have paths,
// and queries with the ids that answer them. Documents with the same text answer a query together, as in codebases.
func collection(t testing.TB, name, analyzer string) *set {
	type document struct{ ID, Title, Path, Text string }
	type line struct {
		ID, Query string
		Gold      [][]string
	}
	s := &set{name: name, analyzer: analyzer}
	texts, same := map[string]string{}, map[string][]string{}
	var ids []string
	var passages []sdk.Passage
	for _, d := range readLines[document](t, shared+name+"/corpus.jsonl") {
		texts[d.ID], same[d.Text] = d.Text, append(same[d.Text], d.ID)
		if analyzer != "code" {
			s.entries = append(s.entries, sdk.Entry{ID: d.ID, Text: d.Text, Context: d.Title})
			continue
		}
		ids = append(ids, d.ID)
		passages = append(passages, sdk.Passage{Document: &sdk.Document{ID: d.ID, Text: d.Text, Meta: sdk.Meta{"path": d.Path}}, Chunk: sdk.Chunk{End: len(d.Text)}})
	}
	s.add(t, ids, passages)
	for _, q := range readLines[line](t, shared+name+"/queries.jsonl") {
		var gold [][]string
		seen := map[string]bool{}
		for _, g := range q.Gold {
			if text := texts[g[0]]; !seen[text] {
				seen[text] = true
				gold = append(gold, same[text])
			}
		}
		s.questions = append(s.questions, question{sdk.Item{ID: q.ID, Text: q.Query}, gold, name})
	}
	return s
}

// quoted matches a gold passage of a question: a document and a quote from it.
var quoted = regexp.MustCompile(`([^ "]+)"([^"]*)"`)

// manual returns the example documentation, with questions that it answers.
func manual(t testing.TB) *set {
	const folder = "../../../examples/docs/"
	s := &set{name: "manual", analyzer: "english"}
	chunker, err := sdktest.Open(t, chunk.Markdown(), sdk.Setup{}, "{}")
	must.Do(t, err)
	formats := map[string]string{".md": "markdown", ".html": "html", ".py": "code"}
	of := map[string][2]int{} // entries of a document: from, up to
	must.Do(t, filepath.WalkDir(folder+"quern", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		must.Do(t, err)
		name, err := filepath.Rel(folder+"quern", file)
		must.Do(t, err)
		document := sdk.Document{ID: name, Text: string(text), Meta: sdk.Meta{"path": name, "format": formats[filepath.Ext(name)]}}
		chunks, err := chunker.Chunk(t.Context(), []sdk.Document{document})
		must.Do(t, err)
		var ids []string
		var passages []sdk.Passage
		for i, c := range chunks[0] {
			ids = append(ids, fmt.Sprintf("%s#%d", name, i))
			passages = append(passages, sdk.Passage{Document: &document, Chunk: c})
		}
		from := len(s.entries)
		s.add(t, ids, passages)
		of[name] = [2]int{from, len(s.entries)}
		return nil
	}))
	questions, err := os.ReadFile(folder + "questions.tsv")
	must.Do(t, err)
	for line := range strings.Lines(string(questions)) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t") // id, kind, text, gold
		q := question{item: sdk.Item{ID: columns[0], Text: columns[2]}, group: s.name}
		for _, g := range quoted.FindAllStringSubmatch(columns[3], -1) {
			var holds []string
			for _, e := range s.entries[of[g[1]][0]:of[g[1]][1]] {
				if strings.Contains(strings.Join(strings.Fields(e.Text), " "), g[2]) {
					holds = append(holds, e.ID)
				}
			}
			if holds == nil {
				t.Errorf("%s: no chunk of %s holds %q", q.item.ID, g[1], g[2])
			}
			q.gold = append(q.gold, holds)
		}
		if q.gold != nil {
			s.questions = append(s.questions, q)
		}
	}
	return s
}
