package learned_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/elect/majority"
	"github.com/racflow/racflow/plugins/elect/soft"
	"github.com/racflow/racflow/plugins/elect/weighted"
	"github.com/racflow/racflow/plugins/embed/hashing"
	"github.com/racflow/racflow/plugins/sample/neighbours"
	"github.com/racflow/racflow/plugins/sample/prototype"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

const recorded = "../../../../shared/data/votes/"

// table reads a file of votes.
func table(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(recorded + name)
	if err != nil {
		t.Skip("the recorded votes are not here: ", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	all, err := r.ReadAll()
	must.Do(t, err)
	return all[1:]
}

// recordedVotes are rows with the answers of nine language models, and with those of
// neighbours and prototype above the knowledge beside them, on hashed words.
func recordedVotes(t *testing.T) (labels []string, rows []sdk.TrainingRow, models []string) {
	train := table(t, "train.tsv")
	e, err := hashing.Stage().Open(t.Context(), sdk.Setup{StateDir: t.TempDir()}, []byte(`{"dimension": 512}`))
	must.Do(t, err)
	embed := e.(sdk.Embedder)
	var known []sdk.TrainingRow
	named := map[string]bool{}
	for _, r := range train {
		known = append(known, sdk.TrainingRow{ID: r[0], Text: r[1], Label: r[2]})
		named[r[2]] = true
	}
	labels = slices.Sorted(maps.Keys(named))
	must.Do(t, e.(sdk.Fitter).Fit(t.Context(), func(yield func([]sdk.TrainingRow, error) bool) { yield(known, nil) }))
	vectors := func(role sdk.Role, texts []string) [][]float32 {
		v, err := embed.Embed(t.Context(), role, texts)
		must.Do(t, err)
		return v
	}
	var texts []string
	for _, r := range known {
		texts = append(texts, r.Text)
	}
	examples := vectors(sdk.RolePassage, texts)
	centres := map[string][]float32{}
	for i, r := range known {
		centre := centres[r.Label]
		if centre == nil {
			centre = make([]float32, len(examples[i]))
			centres[r.Label] = centre
		}
		for j, x := range examples[i] {
			centre[j] += x
		}
	}
	answers, place := map[string][]sdk.Sample{}, map[string]bool{}
	for _, v := range table(t, "votes.tsv") {
		answers[v[0]] = append(answers[v[0]], sdk.Sample{Voter: v[1], Answers: []sdk.Answer{{Label: v[2], Weight: 1, Accepted: named[v[2]]}}})
		place[v[1]] = true
	}
	models = slices.Sorted(maps.Keys(place))
	var items []sdk.Item
	for _, r := range table(t, "rows.tsv") {
		query := vectors(sdk.RoleQuery, []string{r[1]})[0]
		it := sdk.Item{ID: r[0]}
		for i, k := range known {
			it.Candidates = append(it.Candidates, sdk.Candidate{ID: k.ID, Label: k.Label, Score: float32(cosine(query, examples[i]))})
		}
		slices.SortStableFunc(it.Candidates, func(a, b sdk.Candidate) int { return -cmp.Compare(a.Score, b.Score) })
		for _, label := range labels {
			it.Prototypes = append(it.Prototypes, sdk.Candidate{Label: label, Dense: float32(cosine(query, centres[label]))})
		}
		slices.SortStableFunc(it.Prototypes, func(a, b sdk.Candidate) int { return -cmp.Compare(a.Dense, b.Dense) })
		items = append(items, it)
		rows = append(rows, sdk.TrainingRow{ID: r[0], Label: r[2]})
	}
	for _, s := range []sdk.Stage{neighbours.Stage(), prototype.Stage()} {
		voter, err := s.Open(t.Context(), sdk.Setup{}, nil)
		must.Do(t, err)
		samples, err := voter.(sdk.Sampler).Sample(t.Context(), sdk.Batch{Items: items, Labels: labels})
		must.Do(t, err)
		for i, ballots := range samples {
			for _, b := range ballots {
				for j := range b.Answers {
					b.Answers[j].Accepted = true
				}
				b.Voter = s.Name
				rows[i].Samples = append(rows[i].Samples, b)
			}
		}
	}
	for i := range rows {
		rows[i].Samples = append(rows[i].Samples, answers[rows[i].ID]...)
	}
	return labels, rows, models
}

func cosine(a, b []float32) float64 {
	ab, aa, bb := 0.0, 0.0, 0.0
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// halves deals rows into two halves.
func halves(rows []sdk.TrainingRow, seed uint64) (a, b []sdk.TrainingRow) {
	for i, at := range rand.New(rand.NewPCG(seed, 0)).Perm(len(rows)) {
		if i%2 == 0 {
			a = append(a, rows[at])
		} else {
			b = append(b, rows[at])
		}
	}
	return a, b
}

// For every subset of recorded voters: the voter that is best on one half of the rows is
// not better than the election on the other.
func TestNeverWorseOnRecordedVotes(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	voters := append([]string{"neighbours", "prototype"}, models...)
	sets := subsets(voters)
	if testing.Short() {
		sets = slices.DeleteFunc(sets, func(set []string) bool { return len(set) > 2 })
	}
	a, b := halves(rows, 1)
	c := newCompared(labels, a, b, voters)
	for _, set := range sets {
		c.add(t, set)
	}
	c.report(t)
	// Each bound is broken by chance for one subset in twenty where both are equally good.
	if float64(c.shown) < .95*float64(c.sets) {
		t.Errorf("for %d of %d subsets it is not shown that the best voter is at most half a point better", c.sets-c.shown, c.sets)
	}
}

// What elections reach by cross-validation, with the weights that each of them has by
// default or learns: weighted gets the voters' accuracies.
func TestAccuracyOnRecordedVotes(t *testing.T) {
	labels, rows, models := recordedVotes(t)
	pair := []string{"llama32_3b_fs", "qwen3_30b_fs5"} // one middling, one strong
	for name, set := range map[string][]string{
		"neighbours and prototype":         {"neighbours", "prototype"},
		"two models":                       append([]string{"neighbours", "prototype"}, pair...),
		"four models":                      append([]string{"neighbours", "prototype", "gemma3_4b_zs", "qwen3_8b_zs"}, pair...),
		"nine models":                      append([]string{"neighbours", "prototype"}, models...),
		"nine models, and nothing else":    models,
		"two models, and nothing else":     pair,
		"neighbours and eight weak models": append([]string{"neighbours"}, slices.DeleteFunc(slices.Clone(models), func(m string) bool { return m == "qwen3_30b_fs5" })...),
	} {
		rows := of(rows, set...)
		reached := map[string][]bool{}
		for fold := range 5 {
			var learnt, held []sdk.TrainingRow
			for i, r := range rows {
				if i%5 == fold {
					held = append(held, r)
				} else {
					learnt = append(learnt, r)
				}
			}
			accuracy := map[string]float64{}
			for _, v := range set {
				accuracy[v] = share(alone(learnt, v))
			}
			config, err := json.Marshal(map[string]any{"accuracy": accuracy})
			must.Do(t, err)
			for election, e := range map[string]sdk.Elector{
				"soft": open(t, soft.Stage(), ""), "majority": open(t, majority.Stage(), ""),
				"weighted": open(t, weighted.Stage(), string(config)), "learned": fitted(t, learnt),
			} {
				reached[election] = append(reached[election], right(held, elect(t, e, labels, held))...)
			}
		}
		line := ""
		for _, election := range slices.Sorted(maps.Keys(reached)) {
			line += fmt.Sprintf("  %s %.1f", election, 100*share(reached[election]))
			if by, se := better(reached[election], reached["learned"]); by-1.645*se > 0 {
				t.Errorf("%s: %s is better by %.1f points", name, election, 100*by)
			}
		}
		t.Logf("%s:%s", name, line)
	}
}
