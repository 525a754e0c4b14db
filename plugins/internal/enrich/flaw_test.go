package enrich

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/racflow/racflow/plugins/internal/chatmodel"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/modelserver"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A model that cannot write notes is reported before a build ends.
func TestUselessModel(t *testing.T) {
	for share, warns := range map[int]bool{2: false, 9: true} {
		var log strings.Builder
		f := openedContext(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
			var n int
			_, _ = fmt.Sscanf(chunkOf(a), "Text %d", &n)
			if n%10 < share {
				return acknowledged
			}
			return fmt.Sprintf("On line %d.", n)
		}}, "")
		f.Model = chatmodel.New(f.config.Config, sdk.Setup{Host: f.host, Log: slog.New(slog.NewTextHandler(&log, nil))})
		var lines []string
		for i := range 20 {
			lines = append(lines, fmt.Sprintf("Text %d of it", i))
		}
		_, _ = f.Enrich(t.Context(), contextDocument("Cards", lines...))
		if got := strings.Count(log.String(), "of no use"); (got == 1) != warns {
			t.Errorf("%d of 10 echoes: warned %d times: %s", share, got, &log)
		}
	}
}

func TestChecked(t *testing.T) {
	const told = "You write a short note that goes before the passage.\nI have read it. Which passage is the note for?\nWrite only the note, without an introduction."
	const passage = "A lost card is blocked at once, and a new one comes by mail within a week; the old number cannot be used again."
	for note, want := range map[string]string{ // the note, or behind "!" why there is none
		"This part of the card guide says what happens after a card is lost.": "This part of the card guide says what happens after a card is lost.",
		"Card guide: loss.": "Card guide: loss.",
		"The note.":         "The note.", // two words may be anybody's
		"I have read it. Which passage is the note for?":                                          "!instructions",
		"It is on lost cards. I write a short note that goes before the passage. See page 3.":     "It is on lost cards. See page 3.",
		"Without an introduction.":                                                                "!instructions",
		"A lost card is blocked at once, and a new one comes by mail within a week.":              "!copies",
		"From the card guide, on loss: a lost card is blocked at once. It names no fee.":          "From the card guide, on loss: a lost card is blocked at once. It names no fee.",
		strings.Repeat("It is about cards and fees. ", 4):                                         "It is about cards and fees.",
		strings.Repeat("it is about cards and fees and ", 4):                                      "!itself",
		"Of the guide's four parts on cards this is the third, on loss. It follows that on PINs.": "Of the guide's four parts on cards this is the third, on loss. It follows that on PINs.",
	} {
		got, err := checked(note, told, passage)
		why, bad := strings.CutPrefix(want, "!")
		if bad && (err == nil || got != "" || !strings.Contains(err.Error(), why)) || !bad && (err != nil || got != want) {
			t.Errorf("%q: %q, %v, want %q", note, got, err, want)
		}
	}
}

// A useless note is not indexed. Its passage is reported, and is not asked about again.
func TestUselessNotes(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(n int) string
		failed int
		why    string
		calls  int
	}{
		"echoes": {func(n int) string {
			return []string{acknowledged, fmt.Sprintf("On number %d of the guide.", n)}[min(n, 1)]
		}, 1, "instructions", 5},
		"one for all":   {func(int) string { return "This is from the guide to cards." }, 5, "same note", 5},
		"one for three": {func(n int) string { return []string{"On cards, in the guide.", fmt.Sprintf("On line %d.", n)}[n/3] }, 3, "same note", 5},
		"one for two": {func(n int) string {
			return []string{"On cards, in the guide.", fmt.Sprintf("On line %d.", n)}[min(n/2, 1)]
		}, 0, "", 5},
		"equal passages": {func(int) string { return "On cards, in the guide." }, 0, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := openedContext(t, modelserver.Options{Answer: func(a modelserver.Ask, _ int) string {
				var n int
				_, _ = fmt.Sscanf(chunkOf(a), "Text %d", &n)
				return test.answer(n)
			}}, "")
			passages := contextDocument("Cards", "Text 0 of it", "Text 1 of it", "Text 2 of it", "Text 3 of it", "Text 4 of it")
			if name == "equal passages" {
				passages = contextDocument("Cards", "Text 0 of it", "Text 0 of it", "Text 0 of it", "Text 0 of it", "Text 0 of it")
			}
			for range 2 {
				got, err := f.Enrich(t.Context(), passages)
				rows, _ := err.(sdk.RowErrors)
				without := 0
				for i, a := range got {
					if a.Context == "" {
						without++
						if rows[i] == nil || !strings.Contains(rows[i].Error(), test.why) {
							t.Errorf("row %d: error %v", i, rows[i])
						}
					}
				}
				must.Equal(t, "passages without a note, errors, calls", []int{test.failed, test.failed, test.calls}, []int{without, len(rows), f.server.Calls()})
				f.reopen(t, "")
			}
		})
	}
}

// Half of the passages may have one note, and few passages may have what they have.
func TestSameNotes(t *testing.T) {
	for notes, want := range map[string]int{"aabc": 0, "aaab": 3, "aaa": 0, "aabbc": 0, "aabba": 3} {
		var rows []int
		for i := range notes {
			rows = append(rows, i)
		}
		same := sameNotes(rows, func(i int) string { return "note " + notes[i:i+1] }, strconv.Itoa)
		if len(same) != want {
			t.Errorf("%s: %d rows with one note for most, want %d", notes, len(same), want)
		}
	}
}
