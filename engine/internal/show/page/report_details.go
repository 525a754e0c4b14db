package page

import (
	"context"
	_ "embed" // of the assets
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/engine/internal/show/explain"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/sdk"
)

const (
	together = 100       // maximum of items in a block
	enough   = 512 << 10 // bytes of JSON at which a block ends
	most     = 12 << 20  // maximum of compressed bytes of all blocks, so that the page stays below 15 MB
	mostOf   = 4000      // maximum of characters of a candidate's text
)

// details collects the details of answers, in blocks.
type details struct {
	done    []Block
	pending []json.RawMessage
	waiting int         // bytes of pending
	at      map[int]int // an item's place, by its line
	items   int
	size    int // bytes of done, plus an estimate for entries
	full    bool

	entries entries
	known   map[string]int // a candidate's place in entries
}

// entries holds the candidates of all items, each once, by columns.
type entries struct {
	ID    []string   `json:"id"`
	Label []string   `json:"label"`
	Text  []string   `json:"text"`
	Meta  []sdk.Meta `json:"meta"`
}

func newDetails() *details { return &details{at: map[int]int{}, known: map[string]int{}} }

// read adds the details of the items on the wanted lines of a run, until the page is full.
func (d *details) read(ctx context.Context, run ReportedRun, wanted map[int]bool) error {
	if len(wanted) == 0 || d.full {
		return nil
	}
	for item, err := range run.Items(ctx, func(b *explain.Brief) bool { return wanted[b.Line] }) {
		if err != nil {
			return err
		}
		if err := d.add(item); err != nil {
			return err
		}
		if d.full {
			break
		}
	}
	return nil
}

// add adds an item, in the form for the page.
func (d *details) add(item *explain.Item) error {
	text, err := json.Marshal(d.pack(item))
	if err != nil {
		return fmt.Errorf("item of line %d: %w", item.Line, err)
	}
	d.at[item.Line] = len(d.done)*together + len(d.pending)
	d.items++
	d.pending, d.waiting = append(d.pending, text), d.waiting+len(text)
	if len(d.pending) < together && d.waiting < enough {
		return nil
	}
	return d.close()
}

// close ends the present block.
func (d *details) close() error {
	if len(d.pending) == 0 {
		return nil
	}
	packed, err := Pack(d.pending)
	if err != nil {
		return err
	}
	d.done = append(d.done, Block{ID: fmt.Sprintf("made-%d", len(d.done)), Data: packed})
	d.pending, d.waiting = nil, 0
	d.size += len(packed)
	d.full = d.size > most
	return nil
}

// blocks returns the finished blocks for the page.
func (d *details) blocks() ([]Block, error) {
	err := d.close()
	return append(d.done, Block{ID: "entries", Data: d.entries}), err
}

// place returns the number of an item's block times 100, plus its place in the block; -1: the page
// does not have the item.
func (d *details) place(line int) int {
	if at, ok := d.at[line]; ok {
		return at
	}
	return -1
}

// packed is an item that refers to its candidates by their places in entries.
type packed struct {
	*explain.Item
	Lists      []list  `json:"lists,omitempty"`
	Candidates [][]any `json:"candidates,omitempty"`
}

type list struct {
	Stage      string  `json:"stage"`
	Candidates [][]any `json:"candidates"`
}

// pack converts an item for the page.
func (d *details) pack(it *explain.Item) *packed {
	p := &packed{Item: it, Candidates: d.refer(it.Candidates)}
	for _, l := range it.Lists {
		p.Lists = append(p.Lists, list{l.Stage, d.refer(l.Candidates)})
	}
	return p
}

// refer returns candidates as [place, score], or [place, score, dense, lexical].
func (d *details) refer(found []result.Candidate) (all [][]any) {
	for _, c := range found {
		key := c.ID + "\x00" + c.Text
		at, ok := d.known[key]
		if !ok {
			at = len(d.entries.ID)
			d.known[key] = at
			text := cut(c.Text, mostOf)
			d.entries.ID, d.entries.Label, d.entries.Text, d.entries.Meta = append(d.entries.ID, c.ID), append(d.entries.Label, c.Label), append(d.entries.Text, text), append(d.entries.Meta, c.Meta)
			d.size += len(text)/2 + len(c.ID)
		}
		one := []any{at, c.Score}
		if c.Dense != nil || c.Lexical != nil {
			one = append(one, c.Dense, c.Lexical)
		}
		all = append(all, one)
	}
	return all
}
