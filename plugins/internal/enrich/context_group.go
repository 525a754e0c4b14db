package enrich

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/plugins/internal/fewshot"
	"github.com/racflow/racflow/plugins/internal/syntax"
	"github.com/racflow/racflow/sdk"
)

// acknowledged is the assistant's message between the document and the passage: some models require that user and
// assistant alternate.
const acknowledged = "I have read it. Which passage is the note for?"

// group holds passages whose requests show the same part of their document.
type group struct {
	*contextWork
	rows         []int // without an answer so far
	part         bool
	shared       []sdk.Message
	prefix       sdk.Key // of shared
	instructions string  // the text beside the document and the passage
}

// begin writes the shared messages of the group.
func (g *group) begin(v view, window int) error {
	g.part = v.steps != nil
	system, err := g.System.Write(contextData{Part: g.part})
	if err != nil {
		return err
	}
	g.shared = []sdk.Message{
		{Role: sdk.MessageSystem, Text: system, Shared: true},
		{Role: sdk.MessageUser, Text: v.show(window), Shared: true},
		{Role: sdk.MessageAssistant, Text: acknowledged},
	}
	g.prefix = g.Key(dialect.Request{Messages: g.shared})
	last, err := g.Prompt.Write(contextData{Part: g.part})
	g.instructions = system + "\n" + acknowledged + "\n" + last
	return err
}

// question returns the question about a passage, and the key of its answer.
func (g *group) question(row int) (dialect.Request, sdk.Key, error) {
	text, err := g.Prompt.Write(contextData{Part: g.part, Chunk: contextDelimiters.Wrap(chunkTag, g.passages[row].Text())})
	if err != nil {
		return dialect.Request{}, sdk.Key{}, err
	}
	q := g.Request(g.config.MaxTokens, usualTokens)
	q.Temperature, q.Messages = &g.config.Temperature, []sdk.Message{{Role: sdk.MessageUser, Text: text}}
	key := g.Key(q, string(g.prefix[:])) // hash the document once for all its passages
	q.Messages = append(g.shared[:len(g.shared):len(g.shared)], q.Messages...)
	return q, key, nil
}

// recall uses cached answers and returns the rows without one.
func (g *group) recall(ctx context.Context) (missing []int, err error) {
	keys := make([]sdk.Key, len(g.rows))
	for i, row := range g.rows {
		if err := ctx.Err(); err != nil {
			return g.rows, err
		}
		if _, keys[i], err = g.question(row); err != nil {
			return g.rows, err
		}
	}
	found, err := g.CacheGet(ctx, keys)
	if err != nil {
		return g.rows, err
	}
	for i, row := range g.rows {
		if !g.fromCache(row, found[i]) {
			missing = append(missing, row)
		}
	}
	return missing, nil
}

// fromCache uses a cached value and reports whether it is an answer.
func (g *group) fromCache(row int, cached []byte) bool {
	var r dialect.Choice
	if cached == nil || json.Unmarshal(cached, &r) != nil {
		return false
	}
	text, err := contextOf(r)
	if err == nil {
		g.note(row, text)
	}
	return err == nil
}

// note stores the note for a passage. A note with a flaw is not requested again, since the model would repeat it.
func (g *group) note(row int, text string) {
	text, err := checked(text, g.instructions, g.passages[row].Text())
	notes := g.notes.Add(1)
	if err == nil {
		g.additions[row].Context = text
		return
	}
	g.failed.Add(err, row)
	if useless := g.useless.Add(1); notes >= enoughNotes && 2*useless > notes {
		g.WarnOnce("useless", "most notes of this model are of no use, and are left out: a larger model is needed, or enrich with use = \"path\"", "notes", notes, "useless", useless, "why", err)
	}
}

// enoughNotes is how many notes show whether a model can write usable ones.
const enoughNotes = 8

// lead asks about the first passage alone, so that the service has cached the shared messages for the others, which
// stay in g.rows. Its error applies to all of them. In batches, lead asks nothing.
func (g *group) lead(ctx context.Context) error {
	if len(g.rows) == 0 || api.Later(ctx) {
		return nil
	}
	first := g.rows[0]
	g.rows = g.rows[1:]
	err := g.ask(ctx, first)
	if err == nil {
		return nil
	}
	if g.failed.Add(err, first); ctx.Err() != nil || api.TooLong(err) || api.Over(err) {
		return fmt.Errorf("other passages of the document got no answer: %w", err)
	}
	return nil
}

// ask requests the context of a passage.
func (g *group) ask(ctx context.Context, row int) error {
	select {
	case g.room <- struct{}{}:
		defer func() { <-g.room }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q, key, err := g.question(row)
	if err != nil {
		return err
	}
	leave, err := g.Turn(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	found, err := g.CacheGet(ctx, []sdk.Key{key}) // an equal passage may have been answered meanwhile
	if err != nil || g.fromCache(row, found[0]) {
		return err
	}
	err = g.Send(api.For(ctx, key), q, func(reply dialect.Reply, _ dialect.Request) error {
		r := reply.Choices[0]
		text, err := contextOf(r)
		if err != nil {
			return err
		}
		g.note(row, text)
		g.CachePut(ctx, []sdk.Key{key}, [][]byte{api.Value(r)})
		return nil
	})
	if api.TooLong(err) {
		err = fmt.Errorf("%w; a smaller context_tokens shows less of the document", err)
	}
	return err
}

// maxCharacters bounds an answer of a server that ignores limits.
const maxCharacters = 2000

// contextOf returns the context in a reply as one line.
func contextOf(r dialect.Choice) (string, error) {
	text, err := r.Written()
	if err != nil {
		return "", err
	}
	if first, rest, ok := strings.Cut(text, "\n"); ok && strings.HasSuffix(strings.TrimSpace(first), ":") {
		text = rest // drop the introduction
	}
	text = fewshot.OneLine(text)
	if n := len(text); n > 1 && text[0] == '"' && text[n-1] == '"' && strings.Count(text, `"`) == 2 {
		text = strings.TrimSpace(text[1 : n-1])
	}
	if !fewshot.HasWord(text) {
		return "", sdk.Invalid(errors.New("the model's answer says nothing"))
	}
	if utf8.RuneCountInString(text) > maxCharacters {
		return wholeSentences(fewshot.Clip(text, maxCharacters)), nil
	}
	if r.Cut() {
		return wholeSentences(text), nil
	}
	return text, nil
}

// wholeSentences shortens a truncated text to its last whole sentence, or to its last whole word if it has no
// sentence.
func wholeSentences(text string) string {
	end := 0
	for p := syntax.NextSentence(text, 0, len(text)); p > 0; p = syntax.NextSentence(text, p, len(text)) {
		end = p
	}
	if end == 0 {
		if end = strings.LastIndexByte(text, ' '); end < 0 {
			return text
		}
	}
	return strings.TrimSpace(text[:end])
}

const (
	headShare = 8    // the beginning of a document is at most 1/headShare of the part that is shown
	maxHead   = 2000 // and at most this many characters
	maxName   = 300  // characters of a title, and of a path
	leftOut   = "[A part of the document is left out here.]"
)

const (
	documentTag = "document"
	chunkTag    = "chunk"
)

var contextDelimiters = syntax.NewDelimiters(documentTag, chunkTag)

// view shows a document whole or in windows of a grid.
type view struct {
	document *sdk.Document
	path     bool  // shown even if there is a title
	head     int   // bytes of the beginning, which precedes every window but the first
	steps    []int // starts of the grid's steps, and the end of the text; a window is two steps. nil: the whole document is shown
}

// newView returns the view that shows at most the given number of tokens of a document.
func newView(document *sdk.Document, tokens int) view {
	v := view{document: document}
	text, most := document.Text, sdk.CharactersPerToken*tokens
	if len(text) <= most || utf8.RuneCountInString(text) <= most {
		return v
	}
	head := min(most/headShare, maxHead)
	step := (most - head) / 2
	n := 0
	for i := range text {
		if n == head {
			v.head = breakBefore(text, i)
		}
		if n%step == 0 {
			v.steps = append(v.steps, breakBefore(text, i))
		}
		n++
	}
	v.steps = append(v.steps, len(text))
	return v
}

// breakBefore returns the last position up to i that follows white space, if there is one near.
func breakBefore(text string, i int) int {
	const near = 100
	for j := i; j > max(0, i-near); {
		r, n := utf8.DecodeLastRuneInString(text[:j])
		if unicode.IsSpace(r) {
			return j
		}
		j -= n
	}
	return i
}

// window returns the number of the window whose middle half contains the middle of a passage, or the nearest window
// at the ends of the document. It is 0 if there is only one.
func (v view) window(p sdk.Chunk) int {
	last := len(v.steps) - 3
	if last < 0 {
		return 0
	}
	middle := (p.Start + p.End) / 2
	step := sort.SearchInts(v.steps, middle+1) - 1
	if step+1 < len(v.steps) && middle < (v.steps[step]+v.steps[step+1])/2 {
		step--
	}
	return min(max(0, step), last)
}

// show writes the part of the document in a window.
func (v view) show(window int) string {
	var out strings.Builder
	title, _ := v.document.Meta["title"].(string)
	file, _ := v.document.Meta["path"].(string)
	if !v.path && strings.TrimSpace(title) != "" && title != path.Base(file) {
		file = "" // the content names the document, so that a renamed file needs no new requests
	}
	for _, line := range [][2]string{{"Title", title}, {"Path", file}} {
		if strings.TrimSpace(line[1]) != "" {
			out.WriteString(line[0] + ": " + fewshot.Clip(fewshot.OneLine(line[1]), maxName) + "\n")
		}
	}
	text := v.document.Text
	if v.steps == nil {
		out.WriteString(text)
		return contextDelimiters.Wrap(documentTag, out.String())
	}
	if window > 0 {
		out.WriteString(text[:v.head] + "\n" + leftOut + "\n")
	}
	out.WriteString(text[v.steps[window]:v.steps[window+2]])
	if window+3 < len(v.steps) {
		out.WriteString("\n" + leftOut)
	}
	return contextDelimiters.Wrap(documentTag, out.String())
}
