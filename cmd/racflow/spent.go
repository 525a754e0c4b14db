package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/racflow/racflow/engine/governor"
	"github.com/racflow/racflow/engine/terminal"
)

// tellSpent says what the calls of a session came to, however it ended.
func (s *session) tellSpent(w io.Writer) {
	spent, any := s.Spent()
	if !any {
		return
	}
	told := 0
	for _, stage := range spent.Stages {
		if text := describeCalls(stage.Counts); text != "" {
			fmt.Fprintf(w, "%s: %s\n", stage.Stage, text)
			told++
		}
	}
	if told > 1 {
		fmt.Fprintf(w, "all calls: %s\n", describeCalls(spent.Total))
	}
}

// describeCalls says what calls came to; nothing where there were none.
func describeCalls(c governor.Counts) string {
	var parts []string
	if c.Calls > 0 {
		text := terminal.Plural(c.Calls, "call")
		if c.Failed > 0 {
			text += fmt.Sprintf(" (%d failed)", c.Failed)
		}
		parts = append(parts, text)
	}
	if c.InputTokens+c.OutputTokens > 0 {
		text := fmt.Sprintf("%d tokens in", c.InputTokens)
		if c.CachedTokens > 0 {
			text += fmt.Sprintf(" (%d cached)", c.CachedTokens)
		}
		parts = append(parts, text, fmt.Sprintf("%d out", c.OutputTokens))
	}
	if c.Cost > 0 {
		parts = append(parts, "cost "+governor.Money(c.Cost))
	}
	if c.CacheHits > 0 {
		parts = append(parts, terminal.Plural(c.CacheHits, "answer")+" from the cache")
	}
	return strings.Join(parts, ", ")
}
