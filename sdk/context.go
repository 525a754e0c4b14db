package sdk

import "strings"

// Delimiter is the line of an Entry's Context behind which the terms stand.
const Delimiter = "---"

// JoinContext makes an Entry's Context of what situates its text and of the terms
// that were added to it. Each becomes a line; empty ones are left out, and so are
// those that are a Delimiter. SplitContext takes it apart again.
func JoinContext(situating, terms []string) string {
	before, behind := lines(situating), lines(terms)
	if len(behind) == 0 {
		return strings.Join(before, "\n")
	}
	return strings.Join(append(append(before, Delimiter), behind...), "\n")
}

// SplitContext returns what situates an entry's text, and the terms that were
// added to it. A context that JoinContext did not make and that has no line with
// the Delimiter alone has no terms.
func SplitContext(context string) (situating string, terms []string) {
	if situating, rest, ok := strings.Cut("\n"+context+"\n", "\n"+Delimiter+"\n"); ok {
		return strings.TrimPrefix(situating, "\n"), lines(strings.Split(rest, "\n"))
	}
	return context, nil
}

// lines makes a line of each text that says something.
func lines(texts []string) []string {
	var all []string
	for _, text := range texts {
		if line := strings.Join(strings.Fields(text), " "); line != "" && line != Delimiter {
			all = append(all, line)
		}
	}
	return all
}
