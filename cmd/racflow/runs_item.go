package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/journal"
	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/result"
	"github.com/racflow/racflow/engine/terminal"
	"github.com/racflow/racflow/sdk"
)

// itemShown is an item of a run with what was seen of it.
type itemShown struct {
	Run    string          `json:"run"`
	Line   int             `json:"line"`
	Status string          `json:"status"`
	Result result.Result   `json:"result"`
	Seen   *journal.Seen   `json:"seen,omitempty"`
	Again  *engine.Rebuilt `json:"rebuilt,omitempty"`
	Gone   []string        `json:"gone,omitempty"`
}

var statusNames = map[journal.Status]string{
	journal.Answered: "answered", journal.Provisional: "provisional", journal.Failed: "failed", journal.Unreached: "not reached",
}

// showItem shows one item.
func showItem(c *cobra.Command, state string, j *journal.Journal, name string, asJSON bool) error {
	item, ok := find(j, name)
	if !ok {
		return fmt.Errorf("run %s has no item %q: it was not reached, or is called in another way", j.ID(), name)
	}
	shown := itemShown{Run: j.ID(), Line: item.Row.Line, Status: statusNames[item.Status], Seen: item.Seen}
	if err := read(j, &item); err != nil {
		shown.Gone = append(shown.Gone, fmt.Sprintf("the text of the item: %v", err))
	}
	switch {
	case item.Seen == nil && item.Result.RetrievalOnly:
	case item.Seen == nil:
		shown.Gone = append(shown.Gone, "what was seen: the journal has it of items that are flagged, failed, wrong or without an answer; run with --keep all for every item")
	default:
		again, err := rebuild(c.Context(), state, j.Manifest, &item)
		if err != nil {
			shown.Gone = append(shown.Gone, fmt.Sprintf("texts of what was seen: %s", message(err)))
		} else {
			shown.Again, shown.Gone = again, append(shown.Gone, again.Gone...)
		}
	}
	if err := c.Context().Err(); err != nil {
		return err
	}
	shown.Result = result.Of(item.Result, func(string, sdk.Usage) float64 { return 0 })
	if asJSON {
		return writeJSON(c.OutOrStdout(), shown)
	}
	return shown.write(c.OutOrStdout())
}

// find finds an item by its id, or by its line in the input.
func find(j *journal.Journal, name string) (found journal.Item, ok bool) {
	number, _ := strconv.Atoi(name)
	for item := range j.Kept() {
		if item.Row.ID == name {
			return item, true
		}
		if item.Row.Line == number {
			found, ok = item, true
		}
	}
	return found, ok
}

// read adds what the input of the run says of an item.
func read(j *journal.Journal, item *journal.Item) error {
	rows, err := j.Manifest.Rows()
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // it was only read
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("the input has no such line any more")
		}
		if err != nil {
			return err
		}
		if row.Line == item.Row.Line {
			item.Row.ID, item.Row.Text, item.Result.Text = row.ID, row.Text, row.Text
			return nil
		}
	}
}

// rebuild finds again what was seen, with the file and the variables of the run.
func rebuild(ctx context.Context, state string, m manifest.Manifest, item *journal.Item) (*engine.Rebuilt, error) {
	state, err := filepath.Abs(state)
	if err != nil {
		return nil, err
	}
	flags := fileFlags{state: state, pipeline: m.Pipeline, offline: true}
	c := &cobra.Command{}
	flags.register(c)
	flags.registerInput(c)
	flags.state, flags.pipeline = state, m.Pipeline
	if m.Command != nil {
		for _, f := range m.Command.Flags {
			if c.Flags().Lookup(f.Name) != nil {
				if err := c.Flags().Set(f.Name, f.Value); err != nil {
					return nil, err
				}
			}
		}
		if err := os.Chdir(m.Command.Dir); err != nil {
			return nil, err
		}
	}
	o, err := flags.options(nil)
	if err != nil {
		return nil, err
	}
	p, err := engine.Open(ctx, m.File, o)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	if rows, err := p.Rows(); err == nil { // with metadata, which prompts may read
		defer rows.Close() //nolint:errcheck // it was only read
		for row, err := rows.Next(); err == nil; row, err = rows.Next() {
			if row.Line == item.Row.Line && row.Text == item.Row.Text {
				item.Row.Meta = row.Meta
				break
			}
		}
	}
	return p.Rebuild(ctx, m, *item)
}

func (s *itemShown) write(w io.Writer) error {
	r := s.Result
	fmt.Fprintf(w, "item %s, line %d of the input of %s: %s\n", terminal.Escape(r.ID), s.Line, s.Run, s.Status)
	if r.Text != "" {
		fmt.Fprintf(w, "\n%s\n\n", indented(r.Text))
	}
	tw := terminal.NewTable(w)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t%s\n", name, terminal.Escape(fmt.Sprintf(format, args...)))
	}
	if r.Error != nil {
		line("error", "%s: %s", r.Error.Stage, r.Error.Message)
	} else {
		line("answer", "%s", shownAnswer(string(r.Answer)))
	}
	for _, part := range [][2]string{{"expected", r.Expected}, {"reason", r.Reason}, {"without", strings.Join(r.Missing, ", ")}} {
		if part[1] != "" {
			line(part[0], "%s", part[1])
		}
	}
	if r.Error == nil && len(r.Votes) > 0 {
		line("agreement", "%.3f, confidence %.3f, flagged %v", r.Agreement, r.Confidence, r.Flagged)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(r.Votes) > 0 {
		fmt.Fprintln(tw, "\nVOTER\tANSWER\tWEIGHT\tCOUNTS\tWHY NOT")
		for _, v := range r.Votes {
			fmt.Fprintf(tw, "%s\t%s\t%.3f\t%v\t%s\n", v.Voter, shownAnswer(v.Answer), v.Weight, v.Accepted, terminal.Escape(v.Reason))
		}
	}
	s.writeSeen(tw)
	for _, g := range s.Gone {
		fmt.Fprintf(tw, "\nnot there any more: %s\n", terminal.Sanitize(g))
	}
	return tw.Flush()
}

// writeSeen writes the candidates, prompts and replies.
func (s *itemShown) writeSeen(w io.Writer) {
	if s.Seen == nil {
		return
	}
	candidates := make([]sdk.Candidate, len(s.Seen.Candidates))
	for i, c := range s.Seen.Candidates {
		candidates[i] = sdk.Candidate{ID: c.ID, Score: c.Score}
	}
	if s.Again != nil {
		candidates = s.Again.Candidates
	}
	if len(candidates) > 0 {
		fmt.Fprintln(w, "\nCANDIDATE\tSCORE\tLABEL\tTEXT")
	}
	for _, c := range candidates {
		fmt.Fprintf(w, "%s\t%.4f\t%s\t%s\n", terminal.Escape(c.ID), c.Score, terminal.Escape(c.Label), terminal.Escape(terminal.Shorten(c.Text, 60)))
	}
	if s.Again == nil {
		return
	}
	for _, stage := range slices.Sorted(maps.Keys(s.Again.Prompts)) {
		for _, p := range s.Again.Prompts[stage] {
			fmt.Fprintf(w, "\nprompt of %s:\n", stage)
			if p.Text != "" {
				fmt.Fprintf(w, "%s\n", indented(p.Text))
			}
			for _, m := range p.Messages {
				fmt.Fprintf(w, "  [%s]\n%s\n", m.Role, indented(m.Text))
			}
		}
	}
	for _, voter := range slices.Sorted(maps.Keys(s.Again.Replies)) {
		for _, reply := range s.Again.Replies[voter] {
			fmt.Fprintf(w, "\nreply to sample.%s:\n%s\n", voter, indented(replyText(reply)))
		}
	}
}

// replyText is what a model wrote, where a cached reply has that apart.
func replyText(reply string) string {
	var known struct{ Text *string }
	if json.Unmarshal([]byte(reply), &known) == nil && known.Text != nil {
		return *known.Text
	}
	return reply
}

// indented is a text of several lines as a person may read it.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + terminal.Line(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return strings.TrimRight(out.String(), "\n")
}
