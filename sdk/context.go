package sdk

import "strings"

// Delimiter is the line between the two parts of an Entry's Context.
const Delimiter = "---"

// JoinContext joins the lines that place a text in its document and the terms that were added
// to it to an Entry's Context. Empty ones, and those that equal Delimiter, are left out.
// SplitContext takes it apart again.
func JoinContext(placing, terms []string) string {
	before, behind := lines(placing), lines(terms)
	if len(behind) == 0 {
		return strings.Join(before, "\n")
	}
	return strings.Join(append(append(before, Delimiter), behind...), "\n")
}

// SplitContext returns the lines that place a text in its document, and the terms that were
// added to it. A context without a line Delimiter has no terms.
func SplitContext(context string) (placing string, terms []string) {
	if placing, rest, ok := strings.Cut("\n"+context+"\n", "\n"+Delimiter+"\n"); ok {
		return strings.TrimPrefix(placing, "\n"), lines(strings.Split(rest, "\n"))
	}
	return context, nil
}

// lines makes a line of each text that is not empty.
func lines(texts []string) []string {
	var all []string
	for _, text := range texts {
		if line := strings.Join(strings.Fields(text), " "); line != "" && line != Delimiter {
			all = append(all, line)
		}
	}
	return all
}
