package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/doctor/confident"
)

// suspect is a row whose label voters contradict that have not seen it.
type suspect struct {
	confident.Suspect
	row int // of the set
}

// suspects asks the voters.
func (k *Source) suspects(ctx context.Context, r *Report) {
	votes, err := k.Votes(ctx)
	if err != nil {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: labels were not checked by votes: %v", k.Name, err))
		return
	}
	r.Voted += len(votes)
	if len(votes) < fewVotes {
		return // shares of so few say nothing
	}
	found := k.join(votes)
	if len(found) == 0 {
		return
	}
	expected := 0.
	for _, s := range found {
		expected += s.Wrong / float64(len(found))
	}
	f := Finding{
		Check: "suspect", Severity: Warning, Count: len(found), Expected: expected,
		Message: fmt.Sprintf("%s: %s probably a wrong label, of %d that were checked: voters that have not seen the row contradict it; %.0f %% of these labels are expected to be wrong", k.Name, many(len(found), "row has", "rows have"), len(votes), 100*expected),
		Advice:  "look at them; --fix FILE writes a copy in which each is marked, and those that are nearly certain are relabelled",
	}
	for _, s := range found[:min(maxPlaces, len(found))] {
		p := k.Rows[s.row].place(s.why())
		p.Proposal = s.Label
		f.Rows = append(f.Rows, p)
	}
	k.Set.suspected = found
	r.add(f)
}

func (s suspect) why() string {
	return fmt.Sprintf("%s %.2f, its own label %.2f, %.0f %% likely wrong", s.Label, s.Share, s.Self, 100*s.Wrong)
}

// join finds the rows of votes again.
func (s *Set) join(votes []confident.Row) []suspect {
	at := make(map[[2]string]int, len(s.Rows))
	for i, row := range s.Rows {
		at[[2]string{row.Text, row.Label}] = i
	}
	var all []suspect
	for _, found := range confident.Suspects(votes) {
		v := votes[found.Row]
		if i, ok := at[[2]string{v.Text, v.Label}]; ok {
			all = append(all, suspect{found, i})
		}
	}
	return all
}

const fewVotes = 20

const (
	minLong = 200  // bytes of a text below which no embedder cuts
	same    = 1e-6 // the squared distance of vectors that are the same
)

// cut finds texts whose ends the embedder does not see: without its last tenth such a text has the same
// vector. How long a text may be is found by bisection, so that few are embedded.
func (k *Source) cut(ctx context.Context, r *Report) {
	var long []int
	for i, row := range k.Rows {
		if len(row.Text) >= minLong {
			long = append(long, i)
		}
	}
	slices.SortFunc(long, func(a, b int) int {
		return cmp.Or(cmp.Compare(len(k.Rows[a].Text), len(k.Rows[b].Text)), cmp.Compare(a, b))
	})
	var failed error
	from, _ := slices.BinarySearchFunc(long, true, func(i int, _ bool) int {
		is, err := k.unseen(ctx, k.Rows[i].Text)
		failed = cmp.Or(failed, err)
		if is {
			return 1
		}
		return -1
	})
	if failed != nil {
		r.Skipped = append(r.Skipped, fmt.Sprintf("%s: it was not checked whether the embedder cuts texts: %v", k.Name, failed))
		return
	}
	if from == len(long) {
		return
	}
	f := Finding{
		Check: "cut", Severity: Warning, Count: len(long) - from,
		Message: fmt.Sprintf("%s: about %s too long for the embedder, which does not see their ends: from about %d bytes on", k.Name, many(len(long)-from, "text is", "texts are"), len(k.Rows[long[from]].Text)),
		Advice:  "cut them with a chunk block, or take an embedder that reads more",
	}
	for _, i := range slices.Backward(long[max(from, len(long)-maxPlaces):]) {
		f.Rows = append(f.Rows, k.Rows[i].place(fmt.Sprintf("%d bytes", len(k.Rows[i].Text))))
	}
	r.add(f)
}

// unseen reports whether the end of a text makes no difference to its vector.
func (k *Source) unseen(ctx context.Context, text string) (bool, error) {
	end := len(text) * 9 / 10
	for !utf8.RuneStart(text[end]) {
		end--
	}
	vectors, err := k.Embed(ctx, []string{text, text[:end]})
	if err != nil || len(vectors) != 2 {
		return false, err
	}
	distance := 0.
	for i, x := range vectors[0] {
		d := float64(x - vectors[1][i])
		distance += d * d
	}
	return distance < same, nil
}
