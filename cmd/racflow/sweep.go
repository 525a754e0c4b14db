package main

import (
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/pipeline"
)

// sweepFlag is a target with the values that it is given in turn.
type sweepFlag struct {
	target string
	values []string
}

// maxCombinations bounds a product that was surely not meant.
const maxCombinations = 1000

// parseSweep reads --sweep flags: TARGET=VALUE,VALUE,... each.
func parseSweep(flags []string) ([]sweepFlag, error) {
	var all []sweepFlag
	combinations := 1
	for _, f := range flags {
		target, values, ok := strings.Cut(f, "=")
		s := sweepFlag{strings.TrimSpace(target), splitValues(values)}
		if !ok || s.target == "" || len(s.values) == 0 {
			return nil, fmt.Errorf("--sweep %s: write TARGET=VALUE,VALUE, such as neighbours.top_k=5,15,60 or var.election=soft,majority", f)
		}
		for _, other := range all {
			if other.target == s.target {
				return nil, fmt.Errorf("--sweep %s is given twice: name all its values in one", s.target)
			}
		}
		if combinations *= len(s.values); combinations > maxCombinations {
			return nil, fmt.Errorf("--sweep asks for more than %d combinations", maxCombinations)
		}
		all = append(all, s)
	}
	return all, nil
}

// splitValues splits at the commas that stand outside of quotes and brackets.
func splitValues(text string) []string {
	var values []string
	depth, from, quoted := 0, 0, false
	add := func(to int) {
		if v := strings.TrimSpace(text[from:to]); v != "" {
			values = append(values, v)
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case c == ',' && depth <= 0:
			add(i)
			from = i + 1
		}
	}
	add(len(text))
	return values
}

// combinations is the product of the values, the last target's changing
// fastest.
func combinations(sweep []sweepFlag) [][]pipeline.Override {
	all := [][]pipeline.Override{nil}
	for _, s := range sweep {
		var longer [][]pipeline.Override
		for _, c := range all {
			for _, v := range s.values {
				longer = append(longer, append(c[:len(c):len(c)], pipeline.Override{Target: s.target, Value: v}))
			}
		}
		all = longer
	}
	return all
}
