package wire

import (
	"fmt"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// The bounds of what a reply may hold, beside MaxMessage. They are far beyond what means
// anything. Without them a message of MaxMessage bytes could become a hundred times as much
// in memory: in it a sample without content takes one byte.
const (
	// MaxElements bounds the elements of one column of lists, over all rows of a message:
	// answers, chunks, ranks, terms.
	MaxElements = 4 << 20
	// MaxRecords bounds those that are large in memory: samples, candidates, prompts, entries.
	MaxRecords = 1 << 20
	// MaxSamples bounds the samples of an item, and MaxAnswers the answers of a sample: a
	// distribution has one for each label.
	MaxSamples = 10_000
	MaxAnswers = 100_000
	// MaxText bounds each text of a sample or verdict, in bytes: an answer, a reason, what a
	// model wrote.
	MaxText = 4 << 20
	// MaxMeta bounds the metadata of an entry, chunk or document, in bytes of JSON.
	MaxMeta = 4 << 20
	// MaxErrorText bounds the text of an error, in bytes: what is longer is cut.
	MaxErrorText = 16 << 10
)

// few checks that there are at most so many of what a message holds.
func few(name string, n, most int) error {
	if n > most {
		return fmt.Errorf("column %s has %d elements; a message has at most %d of them: use smaller batches, or return less for each row", name, n, most)
	}
	return nil
}

// Cut cuts the text of an error to MaxErrorText bytes.
func Cut(text string) string {
	if len(text) <= MaxErrorText {
		return text
	}
	cut := MaxErrorText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes in all)", text[:cut], len(text))
}

// checkAmount wants at most MaxSamples samples of MaxAnswers answers each, and no text of
// more than MaxText bytes.
func checkAmount(list []sdk.Sample) error {
	if len(list) > MaxSamples {
		return fmt.Errorf("%d samples for an item; there are at most %d", len(list), MaxSamples)
	}
	for i := range list {
		s := &list[i]
		if n := len(s.Answers); n > MaxAnswers {
			return fmt.Errorf("%d answers in sample %d; a sample has at most %d", n, i+1, MaxAnswers)
		}
		longest := max(len(s.Text), len(s.Voter), len(s.Model))
		for _, a := range s.Answers {
			longest = max(longest, len(a.Label), len(a.Reason), len(a.Reading), len(a.Explanation))
		}
		if err := checkText(longest); err != nil {
			return fmt.Errorf("%w (sample %d)", err, i+1)
		}
	}
	return nil
}

func checkText(bytes int) error {
	if bytes > MaxText {
		return fmt.Errorf("a text of %d bytes; a text has at most %d", bytes, MaxText)
	}
	return nil
}
