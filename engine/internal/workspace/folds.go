package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/racflow/racflow/engine/internal/file/pipeline"
	"github.com/racflow/racflow/engine/internal/knowledge/generation"
	"github.com/racflow/racflow/engine/internal/measure/eval"
	"github.com/racflow/racflow/engine/internal/run/fitted"
	"github.com/racflow/racflow/engine/internal/run/stage"
	"github.com/racflow/racflow/engine/internal/source"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk/support"
)

// This file measures a pipeline on its own knowledge, without a file of items. It splits the rows into folds.
// Each fold gets a pipeline of its own: its knowledge lacks the fold's rows, and its items are these rows. So
// nothing that learns from the knowledge has seen the items.
//
// Copies of a text share a fold, and the rows of a label are spread evenly over all folds.

// foldOptions selects the part of a split knowledge that a pipeline has.
type foldOptions struct {
	fold int // the fold whose rows are the items, from 1 on; 0: all rows are items, and the knowledge is complete
	most int // limit of rows per label in the knowledge; 0: none
}

// split is a pipeline's knowledge in folds.
type split struct {
	count   int
	blocks  []*pipeline.Knowledge
	rows    [][]source.Row          // of each block, with people's decisions applied
	folds   map[string]int          // the fold of a text (from 1 on), by copyKey
	labels  []string                // labels with rows in at least two folds; other labels are unknown to their only fold
	invalid []generation.InvalidRow // examples of unusable rows
	unused  int                     // number of unusable rows
}

// splitKnowledge splits the knowledge by the rows of its last block.
func splitKnowledge(ctx context.Context, blocks []*pipeline.Knowledge, count int) (*split, error) {
	s := &split{count: count, blocks: blocks, folds: map[string]int{}}
	for _, block := range blocks {
		source, err := generation.ReadSource(ctx, block, nil)
		if err != nil {
			return nil, err
		}
		rows, err := rowsOf(ctx, source)
		if err != nil {
			return nil, err
		}
		s.rows, s.invalid, s.unused = append(s.rows, rows), append(s.invalid, source.Invalid...), s.unused+source.Count
	}
	labels := map[string]string{} // the first label of a text, by copyKey
	for _, row := range s.items() {
		if key := copyKey(row.Text); labels[key] == "" {
			labels[key] = row.Label
		}
	}
	keys := slices.SortedFunc(maps.Keys(labels), func(a, b string) int {
		return cmp.Or(cmp.Compare(labels[a], labels[b]), cmp.Compare(support.StratifiedRank(a), support.StratifiedRank(b)), cmp.Compare(a, b))
	})
	for i, key := range keys {
		s.folds[key] = 1 + i%count
	}
	only := map[string]int{} // the only fold of a label; 0: there are several
	for _, row := range s.items() {
		for _, label := range s.labelsOf(row) {
			fold := s.foldOf(row)
			if before, ok := only[label]; ok && before != fold {
				fold = 0
			}
			only[label] = fold
		}
	}
	for _, label := range slices.Sorted(maps.Keys(only)) {
		if only[label] == 0 {
			s.labels = append(s.labels, label)
		}
	}
	if len(keys) < 2 || len(s.labels) == 0 {
		return nil, optionError("Folds", "knowledge %[2]q cannot be measured in folds (%[1]s): no label has two rows with different texts", blocks[len(blocks)-1].Name)
	}
	return s, nil
}

// rowsOf returns the rows of a source. If the source has several files, each row names its file.
func rowsOf(ctx context.Context, s *generation.Source) (all []source.Row, err error) {
	paths := map[string]bool{}
	err = s.Load(ctx, s.Units, func(u generation.Unit, err error) error {
		at := s.At(u.ID, nil)
		row := source.Row{ID: u.ID, Text: u.Text, Label: u.Label, Context: u.Context, Meta: u.Meta, Line: len(all) + 1}
		for _, name := range slices.Sorted(maps.Keys(u.Meta)) {
			row.Fields = append(row.Fields, result.Field{Name: name, Value: u.Meta[name]})
		}
		paths[at.Path] = true
		all = append(all, row.At(at.Path, at.Line))
		return err
	})
	if len(paths) == 1 {
		for i, row := range all {
			_, row.Line = row.Place()
			all[i] = row.At("", row.Line)
		}
	}
	return all, err
}

// copyKey returns the same key for all copies of a text: it ignores case, white space and punctuation.
func copyKey(text string) string {
	normal := source.Normal(text)
	bare := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPunct(r) {
			return -1
		}
		return r
	}, normal)
	return cmp.Or(bare, normal)
}

// labelsOf returns the labels of a row.
func (s *split) labelsOf(row source.Row) []string {
	return s.blocks[len(s.blocks)-1].LabelForm().Split(row.Label)
}

func (s *split) foldOf(row source.Row) int { return s.folds[copyKey(row.Text)] }

// items returns the rows that have a label in the last block, since only these can be measured.
func (s *split) items() []source.Row {
	return slices.DeleteFunc(slices.Clone(s.rows[len(s.rows)-1]), func(row source.Row) bool { return row.Label == "" })
}

// itemsOf returns the items of a fold, or all items for fold 0. limit caps the total over all folds, by a
// random choice; 0: no cap.
func (s *split) itemsOf(fold, limit int) []source.Row {
	rows := s.items()
	if limit > 0 && limit < len(rows) {
		ranks := make([]uint64, len(rows))
		for i, row := range rows {
			ranks[i] = support.StratifiedRank(row.ID)
		}
		slices.Sort(ranks)
		rows = slices.DeleteFunc(rows, func(row source.Row) bool { return support.StratifiedRank(row.ID) >= ranks[limit] })
	}
	return slices.DeleteFunc(rows, func(row source.Row) bool { return fold > 0 && s.foldOf(row) != fold })
}

// without returns the rows of a block outside of a fold. It keeps at most o.most random rows of each label; 0
// keeps all.
func (s *split) without(block int, o foldOptions) []source.Row {
	rows := slices.DeleteFunc(slices.Clone(s.rows[block]), func(row source.Row) bool { return s.foldOf(row) == o.fold })
	if o.most == 0 {
		return rows
	}
	slices.SortStableFunc(rows, func(a, b source.Row) int {
		return cmp.Compare(support.StratifiedRank(copyKey(a.Text)), support.StratifiedRank(copyKey(b.Text)))
	})
	of := map[string]int{}
	return slices.DeleteFunc(rows, func(row source.Row) bool {
		enough := row.Label != ""
		for _, label := range s.labelsOf(row) {
			of[label]++
			enough = enough && of[label] > o.most
		}
		return enough
	})
}

// split turns rows of the knowledge into the input, and removes the rows of Options.fold from the knowledge.
func (p *Pipeline) split(ctx context.Context) error {
	o, block := p.workspace.options, p.searched()
	if o.Folds < 2 {
		return optionError("Folds", "%[1]s is a number of folds, at least 2")
	}
	if o.Input != "" {
		return optionError("Folds", "%[1]s measures on rows of the knowledge: leave the input out")
	}
	if _, err := p.elects(); err != nil || block == nil {
		return optionError("Folds", "%[1]s measures answers by labels of the knowledge: the pipeline needs an election, and a search before it")
	}
	var blocks []*pipeline.Knowledge
	for _, k := range p.chosen.Knowledge() {
		if k.Attached() || k.Documents() != nil || k.Stdin() {
			return optionError("Folds", "%[1]s leaves rows of files out of the knowledge in turn, and knowledge %[2]q is made of something else (documents, a collection that another program makes, or standard input): measure on a file of items", k.Name)
		}
		if k != block {
			blocks = append(blocks, k)
		}
	}
	s, err := splitKnowledge(ctx, append(blocks, block), o.Folds)
	if err != nil {
		return p.explain(err)
	}
	p.folds = s
	input := block.Main()
	input.Rows = s.itemsOf(o.fold, o.Limit)
	p.chosen.Input = &input
	if o.fold == 0 {
		return nil
	}
	for i, k := range s.blocks {
		main := k.Main()
		main.Path += fmt.Sprintf("%s%d of %d, %s)", withoutFold, o.fold, o.Folds, rand.Text())
		main.Rows = s.without(i, o.foldOptions)
		k.Sources = []pipeline.Source{main}
	}
	return nil
}

// withoutFold is appended to the path of a file to name a fold's source. So the index version of a fold does
// not replace that of a run, nor the reverse.
const withoutFold = " (without fold "

const (
	discarding = 10 * time.Second // time limit for removing what was built for a fold
	forgotten  = 24 * time.Hour   // older leftovers belong to killed processes
)

// discard removes what was built for a fold, and leftovers of killed processes. It works even after ctx has
// ended. The fold's own processes must have ended.
func (p *Pipeline) discard(ctx context.Context, fold *split) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discarding)
	defer cancel()
	var errs []error
	for _, k := range fold.blocks {
		path := k.Main().Path
		file, _, _ := strings.Cut(path, withoutFold)
		store, err := stage.LaunchKnowledge(k, p.launch).Store(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, generation.Discard(ctx, k, store, func(g generation.Generation) bool {
			return g.Path == path || strings.HasPrefix(g.Path, file+withoutFold) && generation.Now().Sub(g.Changed) > forgotten
		}, func(collection string) error { return fitted.Remove(p.workspace.fitted(), collection) }))
		if c, ok := store.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// Curve measures the pipeline with at most 1, 2, 4, ... rows of each label in its knowledge, and with all rows.
// It needs Options.Folds. Its errors are like Evaluate's.
func (p *Pipeline) Curve(ctx context.Context) (*eval.Curve, error) {
	if p.folds == nil {
		return nil, optionError("Folds", "a curve is measured in folds: set %[1]s")
	}
	rows, largest := map[string]int{}, 0
	for _, row := range p.folds.items() {
		for _, label := range p.folds.labelsOf(row) {
			rows[label]++
			largest = max(largest, rows[label])
		}
	}
	sizes := []int{}
	for most := 1; most*p.folds.count < largest*(p.folds.count-1); most *= 2 {
		sizes = append(sizes, most)
	}
	var points []eval.CurvePoint
	for _, most := range append(sizes, 0) {
		if say := p.workspace.options.Events.Measuring; say != nil && most > 0 {
			say(fmt.Sprintf("with at most %s of each label", terminal.Plural(most, "row")))
		}
		r, _, err := p.measure(ctx, nil, eval.Options{}, most == 1, func(to *Options) { to.most = most })
		if err != nil {
			return nil, err
		}
		points = append(points, eval.NewCurvePoint(most, r))
	}
	c := eval.NewCurve(p.folds.count, rows, points)
	return &c, nil
}
