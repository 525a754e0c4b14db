package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/enginetest"
	"github.com/racflow/racflow/engine/internal/run"
	"github.com/racflow/racflow/engine/internal/run/outcome"
	"github.com/racflow/racflow/engine/internal/run/runtest"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/result"
)

// cast holds the votes on one item: the kNN vote, "" if it abstains, and the samples of each model.
type cast struct {
	knn    string
	models [][]string
}

const noLabel = "none of these" // the answer for no fitting label

// algorithm1 is the election of RAGE, Algorithm 1 of the paper. The votes are the acceptable answers
// of all models, after the kNN vote. The most frequent vote wins, and the first of a tie. Weights are
// votes per sample; the paper has one each. The answer that no label fits is acceptable and counts
// like a label.
func algorithm1(c cast, acceptable []string, knnWeight float64, weights []float64) (answer string, agreement float64, ok bool) {
	var votes []string
	var worth []float64
	if c.knn != "" {
		votes, worth = append(votes, c.knn), append(worth, knnWeight)
	}
	for i, samples := range c.models {
		for _, a := range samples {
			if a == noLabel || slices.Contains(acceptable, a) {
				votes, worth = append(votes, a), append(worth, weights[i])
			}
		}
	}
	count, total := map[string]float64{}, 0.0
	for i, vote := range votes {
		count[vote] += worth[i]
		total += worth[i]
	}
	best := 0.0
	for _, vote := range votes {
		if count[vote] > best {
			answer, best = vote, count[vote]
		}
	}
	if best == 0 {
		return "", 0, false
	}
	return answer, best / total, true
}

// randomCast makes a ballot. Ties, off-list answers, abstentions and votes for no label are frequent.
func randomCast(rng *rand.Rand, labels []string, models int) cast {
	var c cast
	if rng.IntN(5) > 0 {
		c.knn = labels[rng.IntN(len(labels))]
	}
	said := slices.Concat(labels, []string{"off the list", "Fruit", noLabel})
	said = said[:1+rng.IntN(len(said))]
	c.models = make([][]string, models)
	for m := range c.models {
		for range rng.IntN(7) {
			c.models[m] = append(c.models[m], said[rng.IntN(len(said))])
		}
	}
	return c
}

// elected runs ballots through sample/recorded, accept and elect/majority and returns the results.
func elected(t *testing.T, casts []cast, weights string) []outcome.Result {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("id\tvoter\tanswer\n")
	for id, c := range casts {
		for m, samples := range c.models {
			for _, a := range samples {
				fmt.Fprintf(&rows, "%d\tmodel%d\t%s\n", id, m, a)
			}
		}
		if c.knn != "" {
			fmt.Fprintf(&rows, "%d\tknn\t%s\n", id, c.knn)
		}
	}
	path := filepath.Join(folder(t, map[string]string{"answers.tsv": rows.String()}), "answers.tsv")
	body := `
		retrieve "near" {
			from = knowledge.k
			mode = "lexical"
		}`
	for _, voter := range []string{"knn", "model0", "model1", "model2"} {
		if !strings.Contains(rows.String(), "\t"+voter+"\t") {
			continue
		}
		body += fmt.Sprintf(`
		sample %q {
			use    = "recorded"
			accept = "answer in labels"
			config {
				path  = %q
				voter = %q
				none  = %q
			}
		}`, voter, path, voter, noLabel)
	}
	body += fmt.Sprintf(`
		elect "e" {
			use    = "majority"
			accept = "answer in labels"
			config { weights = { %s } }
		}`, weights)
	r, err := runtest.Open(t, enginetest.Catalog(builtin.Stages()), run.Options{}, map[string]string{
		"rows.tsv": "text\tlabel\nred apple\tfruit\nfast car\tvehicle\n",
		runtest.File: `
			knowledge "k" {
				source { path = "rows.tsv" }
				embed { use = "hashing" }
				store { use = "local" }
			}
			pipeline "p" {` + body + "\n}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	var results []outcome.Result
	items := make([]source.Row, len(casts))
	for i := range items {
		items[i] = source.Row{ID: fmt.Sprint(i), Text: "hm"}
	}
	_, err = r.Items(t.Context(), runtest.Rows(items...), nil, runtest.Each(func(result outcome.Result) error {
		results = append(results, result)
		return nil
	}))
	if err != nil || len(results) != len(casts) {
		t.Fatalf("%d results for %d items, error %v", len(results), len(casts), err)
	}
	return results
}

// checkElection compares a result with the expected election.
func checkElection(t *testing.T, c cast, got outcome.Result, answer string, agreement float64, ok bool) {
	t.Helper()
	reason := ""
	switch {
	case !ok && slices.ContainsFunc(got.Votes, func(v result.Vote) bool { return v.Accepted }):
		reason = "every voter that gave an acceptable answer has weight 0"
	case !ok:
		reason = "no voter gave an acceptable answer"
	case answer == noLabel:
		answer, reason = "", "the voters say that none of the labels fits"
	}
	if got.Failure != nil || got.Answer != answer || math.Abs(got.Agreement-agreement) > 1e-9 || got.Reason != reason {
		t.Errorf("%+v: got %q with agreement %v, reason %q, failure %v; want %q, %v, %q",
			c, got.Answer, got.Agreement, got.Reason, got.Failure, answer, agreement, reason)
	}
}

// TestElectionIsAlgorithm1 compares elections over random ballots.
func TestElectionIsAlgorithm1(t *testing.T) {
	labels := []string{"fruit", "vehicle"} // of the knowledge
	for _, test := range []struct {
		name    string
		models  int
		weights string
		knn     float64
		of      []float64
	}{
		{"one model", 1, "", 1, []float64{1}},
		{"three models", 3, "", 1, []float64{1, 1, 1}},
		{"weights", 3, `knn = "2.5", model0 = "0.5", model2 = "0"`, 2.5, []float64{.5, 1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(6, uint64(test.models)))
			casts := make([]cast, 1500)
			for i := range casts {
				casts[i] = randomCast(rng, labels, test.models)
			}
			outcomes := map[string]int{}
			for i, got := range elected(t, casts, test.weights) {
				answer, agreement, ok := algorithm1(casts[i], labels, test.knn, test.of)
				checkElection(t, casts[i], got, answer, agreement, ok)
				outcomes[fmt.Sprint(answer, ok)]++
			}
			if len(outcomes) != 4 {
				t.Errorf("the ballots do not try everything: %v", outcomes)
			}
		})
	}
}
