package rerank

import (
	"context"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file is a reranker without a model. It corrects the order of the search: a candidate's score is a weighted sum
// of three features, each from 0 to 1 among the candidates of one item:
//
//   - its score so far, from the lowest to the highest, with the weight 1;
//   - fields: the share of the item's words in the context, in the terms added to it, or in the title, path and headings of
//     the metadata. Words count by their English stems and by the parts of identifiers. Rare words count more: by BM25's
//     idf among the candidates' fields;
//   - identifiers: the same share of the words that the item writes as code, in the text and the fields, without
//     stemming.
//
// The sum is reduced if a text is nearly a copy of a better candidate: maximal marginal relevance (Carbonell and
// Goldstein, SIGIR 1998). The similarity is the overlap of the sets of words (Jaccard), since candidates come without
// vectors. It counts only above the constant copied: chunks about the same topic are no copies, and moving them down
// harms prose. Contexts do not count here: chunks of one document have similar contexts and different texts.
//
// So the order stays unchanged if no field has the item's words, the item names no identifier, and no text is copied.
// More features would do harm, since the search's score is better evidence than anything counted here. Phrases, and
// the item's words in the text, helped on the collections that they were chosen with, and harmed on others.
//
// TestCrossValidated (with RACFLOW_TEST_QUALITY=1) chooses the weights and the overlap among 120 settings. It takes
// the one with the best mean of recall at 5, 10 and 20 and nDCG at 10 over all collections. Settings that lower nDCG
// by more than .002 on any collection are excluded. pipelines/measuring.md has the gains on collections that were
// left out.

// features are the features of a candidate, from 0 to 1 among the candidates of one item.
type features struct {
	score       float64 // the search's score, from the lowest to the highest
	fields      float64 // share of the query's words in the context, the terms and the metadata fields; rare words count more
	identifiers float64 // share of the query's identifiers in the same fields and the text
}

// localList holds what the order of an item's candidates depends on.
type localList struct {
	features []features
	sets     [][]int // the words of each text, as numbers
	words    int     // number of different words in all texts
}

// read reads an item's candidates.
func (r *localReranker) read(item *sdk.Item) localList {
	asked := r.code.Append(nil, item.Text)
	whole, stems := newQuery(asked), newQuery(r.stemmed(asked))
	n := len(item.Candidates)
	all, anywhere, heads := make([]features, n), make([][]bool, n), make([][]bool, n)
	sets, seen := make([][]int, n), vocabulary{numbers: map[string]int{}}
	var words []string
	for i := range item.Candidates {
		c := &item.Candidates[i]
		words = r.code.Append(words[:0], c.Text)
		sets[i] = seen.set(words)
		text := len(words)
		words = r.appendFields(words, c)
		anywhere[i], heads[i] = whole.match(words), stems.match(r.stemmed(words[text:]))
	}
	readScores(item.Candidates, all)
	fields, identifiers := rarity(heads, len(stems)), rarity(anywhere, len(whole))
	for n, is := range r.identifiers(whole, item.Text) {
		if !is {
			identifiers[n] = 0
		}
	}
	for i := range all {
		all[i].fields, all[i].identifiers = share(fields, heads[i]), share(identifiers, anywhere[i])
	}
	return localList{all, sets, len(seen.last)}
}

// appendFields appends the words of a candidate's context, terms and metadata.
func (r *localReranker) appendFields(words []string, c *sdk.Candidate) []string {
	context, terms := sdk.SplitContext(c.Context)
	words = r.code.Append(words, context)
	for _, term := range terms {
		words = r.code.Append(words, term)
	}
	for _, name := range r.Names {
		if text, ok := c.Meta[name].(string); ok {
			words = r.code.Append(words, text)
		}
	}
	return words
}

// stemmed returns the stems of words.
func (r *localReranker) stemmed(words []string) []string {
	return r.english.Append(nil, strings.Join(words, " "))
}

// word matches a word of an item's text, with the signs that mark it as code.
var word = regexp.MustCompile("`?([\\pL\\pM\\pN_]+)(?:`|\\(\\))?")

// identifiers marks the words of a query that its text writes as code. These are names with at least two parts of two
// characters or more, such as DiffExecutor and on_add, and words in backquotes or before the parentheses of a call.
// Short parts are no sign of code: genes and vitamins have them, too.
func (r *localReranker) identifiers(q query, text string) []bool {
	marked := make([]bool, len(q))
	for _, found := range word.FindAllStringSubmatch(text, -1) {
		words := r.code.Append(nil, found[1])
		long := 0
		for _, part := range words[min(1, len(words)):] {
			if utf8.RuneCountInString(part) > 1 {
				long++
			}
		}
		if long > 1 || len(words) > 0 && found[0] != found[1] {
			if n, ok := q[words[0]]; ok {
				marked[n] = true
			}
		}
	}
	return marked
}

// readScores sets the feature score. A score that is not finite counts as the lowest score.
func readScores(candidates []sdk.Candidate, all []features) {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range candidates {
		if s := float64(candidates[i].Score); finite(s) {
			low, high = min(low, s), max(high, s)
		}
	}
	for i := range candidates {
		if s := float64(candidates[i].Score); finite(s) {
			all[i].score = ratio(s-low, high-low)
		}
	}
}

func finite(score float64) bool { return !math.IsNaN(score) && !math.IsInf(score, 0) }

// ratio returns a / b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Weights are bounded so that scores stay finite. TestCrossValidated chooses the defaults on all sets.
type localConfig struct {
	Fields      float64  `config:"fields" default:"0.2" min:"0" max:"1000" doc:"Weight of the share of the item's words that the context, the terms added to it and the metadata in field_names have. The candidates' scores, from the lowest to the highest, have the weight 1."`
	Names       []string `config:"field_names" default:"title,path,headings" pattern:"." doc:"Keys of the metadata that count as fields."`
	Identifiers float64  `config:"identifiers" default:"0.2" min:"0" max:"1000" doc:"Weight of the share of the item's identifiers that the text or its fields have: words as DiffExecutor and on_add, and those in backquotes or before ()."`
	Diversity   float64  `config:"diversity" default:"0.5" min:"0" max:"1000" doc:"What is subtracted from the score of a text that has the same words as a better candidate; less from one that shares more than eight tenths of them; 0: off."`
}

// Local describes the reranker.
func Local() sdk.Stage {
	return sdk.RerankStage("local", "Reranks without a model: by the search's score, the item's words in fields, its identifiers, and diversity.",
		openLocal, sdk.Revision("4"), sdk.Reads(sdk.ColumnCandidateTexts))
}

func openLocal(_ context.Context, _ sdk.Setup, c localConfig) (sdk.Reranker, error) {
	code, err := support.NamedAnalyzer("code")
	if err != nil {
		return nil, err
	}
	english, err := support.NamedAnalyzer("english")
	return &localReranker{c, code, english}, err
}

type localReranker struct {
	localConfig
	code, english support.Analyzer
}

// Rerank implements sdk.Reranker.
func (r *localReranker) Rerank(ctx context.Context, b sdk.Batch) ([][]sdk.Ranked, error) {
	out := make([][]sdk.Ranked, len(b.Items))
	for i := range b.Items {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		out[i] = r.rank(&b.Items[i])
	}
	return out, nil
}

// rank returns all candidates of an item, best first.
func (r *localReranker) rank(item *sdk.Item) []sdk.Ranked {
	return r.read(item).order(r.Fields, r.Identifiers, copied, r.Diversity)
}

// order returns all candidates, best first.
func (l localList) order(fields, identifiers, copied, diversity float64) []sdk.Ranked {
	relevance := make([]float64, len(l.features))
	for i, f := range l.features {
		relevance[i] = f.score + fields*f.fields + identifiers*f.identifiers
	}
	order, values := diverse(relevance, l.sets, l.words, copied, diversity)
	ranked := make([]sdk.Ranked, len(order))
	for i, n := range order {
		ranked[i] = sdk.Ranked{Candidate: n, Score: float32(values[i])}
	}
	return ranked
}

// query holds the words of an item's text, numbered in the order in which they occur.
type query map[string]int

func newQuery(words []string) query {
	q := query{}
	for _, w := range words {
		if _, ok := q[w]; !ok {
			q[w] = len(q)
		}
	}
	return q
}

// match returns, by number, which words of the query are among words.
func (q query) match(words []string) []bool {
	matched := make([]bool, len(q))
	for _, w := range words {
		if n, ok := q[w]; ok {
			matched[n] = true
		}
	}
	return matched
}

// rarity returns BM25's idf of a query's words among the candidates.
func rarity(matched [][]bool, words int) []float64 {
	rarity := make([]float64, words)
	for n := range rarity {
		with := 0.0
		for _, m := range matched {
			if m[n] {
				with++
			}
		}
		rarity[n] = math.Log(1 + (float64(len(matched))-with+.5)/(with+.5))
	}
	return rarity
}

// share returns the weight of the matching words, divided by the weight of all words.
func share(weights []float64, matched []bool) float64 {
	has, all := 0.0, 0.0
	for i, w := range weights {
		all += w
		if matched[i] {
			has += w
		}
	}
	return ratio(has, all)
}
