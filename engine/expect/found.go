package expect

import (
	"context"
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/sdk"
)

// amongFirst is how many candidates a passage has to be among where the rule does not say.
const amongFirst = 20

// found is whether a passage is among the first that are found for a question.
func found(ctx context.Context, v *engine.Examined, args []any) (Figure, error) {
	question, passage, k := args[0].(string), args[1].(string), amongFirst
	if len(args) > 2 {
		k = whole(args[2])
	}
	is := passageOf(passage)
	list, err := v.Retrieve(ctx, engine.Item{Text: question})
	switch {
	case ctx.Err() != nil || sdk.CodeOf(err) == sdk.CodeStopped:
		return Figure{}, err
	case err != nil:
		return impossible("%v", err), nil
	}
	for i, c := range list {
		if is(c) {
			return Figure{Value: i < k, Note: fmt.Sprintf("rank %d of %d: %s", i+1, len(list), c.ID)}, nil
		}
	}
	f := Figure{Value: false, Note: fmt.Sprintf("it is not among the %d that are found", len(list))}
	if len(list) > 0 {
		f.Note += "; the first is " + list[0].ID
	}
	return f, nil
}

// passageOf reads which passage is meant: an id or a path, a path with a quote as in
// guide.md"the port is 8080", or, where there is white space, words that it holds.
func passageOf(text string) (is func(engine.Candidate) bool) {
	path, quote, ok := strings.Cut(text, `"`)
	if quote, closed := strings.CutSuffix(quote, `"`); ok && closed && path != "" && len(strings.Fields(path)) == 1 {
		return func(c engine.Candidate) bool {
			return isAt(c, path) && strings.Contains(spaced(c.Text), spaced(quote))
		}
	}
	words := spaced(text)
	return func(c engine.Candidate) bool {
		return isAt(c, text) || strings.Contains(words, " ") && strings.Contains(spaced(c.Text), words)
	}
}

// isAt reports whether a candidate is an entry, or stands in a document, of a path or of one that
// ends so.
func isAt(c engine.Candidate, path string) bool {
	path = strings.TrimPrefix(path, "/")
	for _, at := range []any{c.ID, c.Meta["document"], c.Meta["path"]} {
		if at, ok := at.(string); ok && (at == path || strings.HasSuffix(at, "/"+path)) {
			return true
		}
	}
	return false
}

// spaced has one space for each piece of white space.
func spaced(text string) string { return strings.Join(strings.Fields(text), " ") }
