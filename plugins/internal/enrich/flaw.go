package enrich

import (
	"errors"
	"strings"

	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/support"
)

// This file finds the useless notes of small models: a note that repeats the instructions, the passage or itself, or
// one note for all passages. In an index, such notes would make all passages alike. A useless note has runs of words
// in common with another text.

const (
	echoRun  = 7   // number of successive words from the instructions that count as repeating them
	echoPart = 3   // the same, if the note has no other words
	copyRun  = 5   // number of successive words from the passage
	copied   = 0.8 // share of a note's runs that makes it a copy
	loopRun  = 4   // number of words
	looped   = 3   // repetitions of a run, if they are a third of the text
	fewNotes = 4   // in a document with at least this many passages, more than half must not have the same note
)

// checked returns a note without the sentences that repeat the instructions or an earlier sentence. The error says
// why the remaining text is useless.
func checked(note, instructions, passage string) (string, error) {
	rules, seen := support.Words(instructions), map[string]bool{}
	var kept []string
	for at := 0; at < len(note); {
		end := syntax.NextSentence(note, at, len(note))
		if end <= at {
			end = len(note)
		}
		if said := support.Words(note[at:end]); !seen[joined(said)] && !echoes(said, rules) {
			seen[joined(said)] = true
			kept = append(kept, strings.TrimSpace(note[at:end]))
		}
		at = end
	}
	note = strings.Join(kept, " ")
	switch said := support.Words(note); {
	case len(said) == 0, echoes(said, rules):
		return "", sdk.Invalid(errors.New("the model's note repeats its instructions"))
	case len(said) > copyRun && shared(said, support.Words(passage), copyRun) >= copied:
		return "", sdk.Invalid(errors.New("the model's note copies the passage"))
	case loops(said):
		return "", sdk.Invalid(errors.New("the model's note repeats itself"))
	}
	return note, nil
}

// echoes reports whether words repeat instructions.
func echoes(said, instructions []string) bool {
	return shared(said, instructions, echoRun) > 0 || len(said) >= echoPart && strings.Contains(joined(instructions), joined(said))
}

// errSame is the error of a note that most passages of a document have.
var errSame = sdk.Invalid(errors.New("the model wrote the same note for most passages of the document"))

// sameNotes returns the rows of a document with the same note, if more than half of the passages have that note.
// Equal passages count once.
func sameNotes(rows []int, note, passage func(row int) string) (same []int) {
	rowsOf, passagesOf, all := map[string][]int{}, map[string]map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		text := joined(support.Words(note(row)))
		if passagesOf[text] == nil {
			passagesOf[text] = map[string]bool{}
		}
		rowsOf[text] = append(rowsOf[text], row)
		passagesOf[text][passage(row)], all[passage(row)] = true, true
	}
	for text, passages := range passagesOf {
		if len(all) >= fewNotes && 2*len(passages) > len(all) {
			same = rowsOf[text]
		}
	}
	return same
}

func joined(words []string) string { return " " + strings.Join(words, " ") + " " }

// runs counts each run of n words.
func runs(words []string, n int) map[string]int {
	all := map[string]int{}
	for i := 0; i+n <= len(words); i++ {
		all[strings.Join(words[i:i+n], " ")]++
	}
	return all
}

// shared returns the share of a text's runs of n words that also occur in another text.
func shared(text, other []string, n int) float64 {
	theirs, both, all := runs(other, n), 0, 0
	for run, times := range runs(text, n) {
		if all += times; theirs[run] > 0 {
			both += times
		}
	}
	return float64(both) / float64(max(all, 1))
}

// loops reports whether a run of words is repeated many times.
func loops(words []string) bool {
	for _, times := range runs(words, loopRun) {
		if times > looped && 3*times*loopRun >= len(words) {
			return true
		}
	}
	return false
}
