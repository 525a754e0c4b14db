package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/embed/minilm"
	store "github.com/racflow/racflow/plugins/store/local"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
)

// shared holds public collections, where they are at hand.
const shared = "../../../../shared/data/"

// question is an item with the entries that answer it: of each group one is
// enough.
type question struct {
	item sdk.Item
	gold [][]string
}

// set is a collection with its questions.
type set struct {
	entries   []sdk.Entry
	questions []question
}

func readLines[T any](t testing.TB, path string) (all []T) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the data is not here")
	}
	must(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var v T
		must(t, json.Unmarshal(lines.Bytes(), &v))
		all = append(all, v)
	}
	must(t, lines.Err())
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// codebases reads Anthropic's example of contextual retrieval: chunks of source
// code, of all repositories or of those given. With their context, repository and path
// are embedded and searched, too.
func codebases(t testing.TB, context bool, repositories ...string) set {
	type document struct{ ID, Repo, Path string }
	type chunk struct {
		ID, Text string
		Document string `json:"doc_id"`
	}
	type line struct {
		ID, Query string
		Gold      [][]string
	}
	folder := shared + "anthropic_codebases/"
	documents := map[string]document{}
	for _, d := range readLines[document](t, folder+"docs.jsonl") {
		documents[d.ID] = d
	}
	var s set
	known := map[string]bool{}
	for _, c := range readLines[chunk](t, folder+"chunks.jsonl") {
		d := documents[c.Document]
		if len(repositories) > 0 && !slices.Contains(repositories, d.Repo) {
			continue
		}
		known[c.ID] = true
		e := sdk.Entry{ID: c.ID, Text: c.Text, Meta: sdk.Meta{"repo": d.Repo, "path": d.Path}}
		if context {
			e.Context = d.Repo + " " + d.Path
		}
		s.entries = append(s.entries, e)
	}
	for _, q := range readLines[line](t, folder+"queries_public.jsonl") {
		if known[q.Gold[0][0]] {
			s.questions = append(s.questions, question{sdk.Item{ID: q.ID, Text: q.Query}, q.Gold})
		}
	}
	return s
}

// scifact reads abstracts of papers, and claims that some of them speak about.
func scifact(t testing.TB, queries string) set {
	type abstract struct{ ID, Title, Text string }
	type claim struct {
		ID, Query string
		Documents []string `json:"doc_ids"`
	}
	var s set
	for _, a := range readLines[abstract](t, shared+"scifact/corpus.jsonl") {
		s.entries = append(s.entries, sdk.Entry{ID: a.ID, Text: a.Title + "\n" + a.Text, Meta: sdk.Meta{"title": a.Title}})
	}
	for _, c := range readLines[claim](t, shared+"scifact/"+queries) {
		q := question{item: sdk.Item{ID: c.ID, Text: c.Query}}
		for _, id := range c.Documents {
			q.gold = append(q.gold, []string{id})
		}
		s.questions = append(s.questions, q)
	}
	return s
}

// retrieve gives the questions of a set their 150 candidates, as a retrieve
// block does.
func (s set) retrieve(t testing.TB, analyzer string, fusion sdk.Fusion) []question {
	t.Helper()
	embedder, err := sdktest.Open(t, minilm.Stage(), sdk.Setup{StateDir: t.TempDir()}, "{}")
	if err != nil {
		t.Skip("without the model: ", err)
	}
	shelf, err := sdktest.Open(t, store.Stage(), sdk.Setup{StateDir: t.TempDir()}, `{"sync": false}`)
	must(t, err)
	_, err = shelf.Open(t.Context(), "c", sdk.Schema{Dimension: embedder.Dimension(), Analyzer: analyzer})
	must(t, err)
	for part := range slices.Chunk(s.entries, 256) {
		texts := make([]string, len(part))
		for i, e := range part {
			texts[i] = strings.TrimSpace(e.Context + "\n" + e.Text)
		}
		vectors, err := embedder.Embed(t.Context(), sdk.RolePassage, texts)
		must(t, err)
		for i := range part {
			part[i].Vector = vectors[i]
		}
		must(t, shelf.Put(t.Context(), "c", part))
	}
	must(t, shelf.Commit(t.Context(), "c", nil))
	ranking := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeHybrid, NumCandidates: 600, Texts: true}, Fusion: fusion, TopK: 150}
	for part := range slices.Chunk(s.questions, 32) {
		texts, queries := make([]string, len(part)), make([]sdk.Query, len(part))
		for i, q := range part {
			texts[i] = q.item.Text
		}
		vectors, err := embedder.Embed(t.Context(), sdk.RoleQuery, texts)
		must(t, err)
		for i := range part {
			queries[i] = sdk.Query{Text: texts[i], Vector: vectors[i]}
		}
		lists, err := shelf.Retrieve(t.Context(), "c", ranking, queries)
		must(t, err)
		for i := range part {
			part[i].item.Candidates = lists[i]
		}
	}
	return s.questions
}

// order are the ids of an item's candidates as retrieve has them.
func order(it sdk.Item) []string {
	ids := make([]string, len(it.Candidates))
	for i, c := range it.Candidates {
		ids[i] = c.ID
	}
	return ids
}

// pass is the mean share of gold groups with an entry among the first k.
func pass(questions []question, k int, order func(sdk.Item) []string) float64 {
	sum := 0.0
	for _, q := range questions {
		first := order(q.item)
		first = first[:min(k, len(first))]
		for _, gold := range q.gold {
			if slices.ContainsFunc(first, func(id string) bool { return slices.Contains(gold, id) }) {
				sum += 1 / float64(len(q.gold))
			}
		}
	}
	return sum / float64(len(questions))
}

// ndcg is the mean nDCG of the first ten (Järvelin and Kekäläinen 2002), where
// an entry is relevant or not.
func ndcg(questions []question, order func(sdk.Item) []string) float64 {
	sum := 0.0
	for _, q := range questions {
		found, ideal := 0.0, 0.0
		for i, id := range order(q.item) {
			if i < 10 && slices.ContainsFunc(q.gold, func(gold []string) bool { return slices.Contains(gold, id) }) {
				found += 1 / math.Log2(float64(i+2))
			}
		}
		for i := range min(10, len(q.gold)) {
			ideal += 1 / math.Log2(float64(i+2))
		}
		sum += found / ideal
	}
	return sum / float64(len(questions))
}
