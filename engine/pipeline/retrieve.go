package pipeline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/racflow/racflow/engine/rule"
	"github.com/racflow/racflow/sdk"
)

// readRetrieve reads how a retrieve block searches.
func (l *loader) readRetrieve(b stageBody, a arguments, scope rule.Scope) *Retrieve {
	r := &Retrieve{From: l.readFrom(b)}
	r.Ranking.TopK = a.int("top_k", 60, 1)
	r.Ranking.NumCandidates = a.int("num_candidates", max(4*r.Ranking.TopK, 100), 1)
	if r.Ranking.NumCandidates < r.Ranking.TopK {
		l.errorAt(b.attrs["num_candidates"].Expr.Range(), "Value out of range", "num_candidates is how many entries each leg finds; it is at least top_k, which is %d.", r.Ranking.TopK)
	}
	r.Ranking.Mode = sdk.Mode(a.choice("mode", string(sdk.ModeHybrid), string(sdk.ModeHybrid), string(sdk.ModeDense), string(sdk.ModeLexical)))
	r.Ranking.Method = a.choice("fusion", "weighted", "weighted", "rrf")
	r.Ranking.DenseWeight = a.share("dense_weight", 0.7)
	r.Ranking.K = a.int("rrf_k", 60, 1)
	r.Filter = l.readFilter(r.From, a, scope)
	if r.Whole = a.rule("whole", rule.Whole, scope); r.Whole != nil && r.Filter != nil {
		l.errorAt(a.attrs["whole"].NameRange, "Contradicting arguments", "Where whole holds, all entries are given and nothing is searched, so filter would not count. Leave one of them out, or narrow down what is given by keep.")
	}
	return r
}

// readFilter reads which entries are searched; the store has to see to it.
func (l *loader) readFilter(from *Knowledge, a arguments, scope rule.Scope) *rule.Filter {
	scope.Texts = len(from.Sources) > 0 && !slices.ContainsFunc(from.Sources, func(s Source) bool { return !s.Reviewed && !s.Form.Format.OfTexts() })
	f := a.filter("filter", scope)
	if store := from.Store; f != nil && store.Info.Name != "" && !store.Info.Filters {
		l.errorAt(a.attrs["filter"].Expr.Range(), "Unsupported filter",
			"The store %q of knowledge %q does not offer filters. Use one that does, or narrow down what has been found by keep.", store.Use, from.Name)
	}
	return f
}

// readFrom reads from = knowledge.NAME, which is a reference and no value.
func (l *loader) readFrom(b stageBody) *Knowledge {
	none := &Knowledge{Embed: &Stage{}, Store: &Stage{}}
	attr, ok := b.attrs["from"]
	if !ok {
		l.errorAt(b.block.DefRange, "Missing argument", "Say what is searched: from = knowledge.NAME.%s", l.known())
		return none
	}
	name, ok := reference(attr.Expr, "knowledge")
	if !ok {
		l.errorAt(attr.Expr.Range(), "Not a knowledge", "from names a knowledge block: knowledge.NAME.%s", l.known())
		return none
	}
	var names []string
	for _, k := range l.file.Knowledge {
		if k.Name == name {
			return k
		}
		names = append(names, k.Name)
	}
	l.errorAt(attr.Expr.Range(), "Unknown knowledge", "There is no knowledge block %q.%s", name, OrList(name, names))
	return none
}

// reference reads BLOCK.NAME, which names a block of that type and is no value.
func reference(e hcl.Expression, block string) (name string, ok bool) {
	t, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() || t.RootName() != block || len(t) != 2 {
		return "", false
	}
	attr, ok := t[1].(hcl.TraverseAttr)
	return attr.Name, ok
}

func (l *loader) known() string {
	var names []string
	for _, k := range l.file.Knowledge {
		names = append(names, "knowledge."+k.Name)
	}
	if len(names) == 0 {
		return " There is no knowledge block yet."
	}
	return fmt.Sprintf(" There is %s.", strings.Join(names, ", "))
}

// checkKeep warns of a keep that asks only for the score of the side that does
// not search, or for any where whole may hold.
func (l *loader) checkKeep(s *Stage, attrs hcl.Attributes) {
	if s.Retrieve == nil || s.Keep == nil {
		return
	}
	if s.Retrieve.Whole != nil && (s.Keep.Reads("dense") || s.Keep.Reads("lexical") || s.Keep.Reads("score")) {
		l.warn(attrs["keep"].Expr.Range(), "Score that is never there",
			"Where whole holds, nothing is searched: dense and lexical are not there, comparing them is false, and score is 0. Such a keep may drop everything then.")
	}
	mode := s.Retrieve.Ranking.Mode
	other := map[sdk.Mode]string{sdk.ModeLexical: "dense", sdk.ModeDense: "lexical"}[mode]
	if other == "" || !s.Keep.Reads(other) || s.Keep.Reads(string(mode)) || s.Keep.Reads("score") {
		return
	}
	l.warn(attrs["keep"].Expr.Range(), "Score that is never there",
		"In mode %q no candidate has a %s score, and comparing it is false. Ask for %s or score.", mode, other, mode)
}

// checkWhole warns of a voter on candidates that may be a knowledge as a whole.
func (l *loader) checkWhole(voter, retrieve *Stage) {
	columns := sdk.Of(sdk.ColumnCandidates, sdk.ColumnPrototypes, sdk.ColumnVector)
	if reads := voter.reads(); retrieve == nil || retrieve.Retrieve.Whole == nil || reads&columns == 0 || reads.Has(sdk.ColumnPrompts) {
		return
	}
	l.warn(voter.UseRange, "Voter without candidates",
		"Where whole of retrieve %q holds, nothing is searched, so that %s has nothing to vote on, and abstains.", retrieve.Name, voter.Use)
}
