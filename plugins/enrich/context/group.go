package context

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

const maxLeaders = 3 // passages that may fail before the others are given up

// acknowledged is the assistant's turn between the document and the passage: some models
// want the user and the assistant to take turns.
const acknowledged = "I have read it. Which passage is the note for?"

// group are passages whose requests show the same part of their document.
type group struct {
	*work
	rows   []int // without an answer yet
	part   bool
	shared []sdk.Message
	prefix sdk.Key // of shared
}

// begin writes the messages that the group shares.
func (g *group) begin(v view, window int) error {
	g.part = v.steps != nil
	system, err := g.System.Write(Data{Part: g.part})
	if err != nil {
		return err
	}
	g.shared = []sdk.Message{
		{Role: sdk.MessageSystem, Text: system, Shared: true},
		{Role: sdk.MessageUser, Text: v.show(window), Shared: true},
		{Role: sdk.MessageAssistant, Text: acknowledged},
	}
	g.prefix = g.Key(dialect.Request{Messages: g.shared})
	return nil
}

// question returns the question about a passage, and the key of its answer.
func (g *group) question(row int) (dialect.Request, sdk.Key, error) {
	text, err := g.Prompt.Write(Data{Part: g.part, Chunk: delimiters.Wrap(chunkTag, g.passages[row].Text())})
	if err != nil {
		return dialect.Request{}, sdk.Key{}, err
	}
	q := g.Request(g.config.MaxTokens, usualTokens)
	q.Temperature, q.Messages = &g.config.Temperature, []sdk.Message{{Role: sdk.MessageUser, Text: text}}
	key := g.Key(q, string(g.prefix[:])) // the document is hashed once for all its passages
	q.Messages = append(g.shared[:len(g.shared):len(g.shared)], q.Messages...)
	return q, key, nil
}

// recall takes cached answers and returns the other rows.
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
		if !g.take(row, found[i]) {
			missing = append(missing, row)
		}
	}
	return missing, nil
}

// take takes a cached value and reports whether it is an answer.
func (g *group) take(row int, cached []byte) bool {
	var r dialect.Choice
	if cached == nil || json.Unmarshal(cached, &r) != nil {
		return false
	}
	text, err := contextOf(r)
	g.additions[row].Context = text
	return err == nil
}

// lead asks about one passage after the other until the service has answered one, and so
// has cached what they share. It leaves the others in g.rows; its error is theirs. Nobody leads where
// answers come later.
func (g *group) lead(ctx context.Context) error {
	if api.Later(ctx) {
		return nil
	}
	for tried := 0; len(g.rows) > 0; {
		first := g.rows[0]
		g.rows = g.rows[1:]
		answered, err := g.ask(ctx, first)
		if err != nil {
			g.failed.Add(err, first)
			tried++
		}
		if answered {
			return nil
		}
		if err != nil && (tried == maxLeaders || ctx.Err() != nil || api.TooLong(err) || api.Over(err)) {
			return fmt.Errorf("other passages of the document got no answer: %w", err)
		}
	}
	return nil
}

// ask gets the context of a passage. Answered says that the model has replied, even
// where the reply is of no use.
func (g *group) ask(ctx context.Context, row int) (answered bool, err error) {
	select {
	case g.room <- struct{}{}:
		defer func() { <-g.room }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	q, key, err := g.question(row)
	if err != nil {
		return false, err
	}
	leave, err := g.Turn(ctx, key)
	if err != nil {
		return false, err
	}
	defer leave()
	found, err := g.CacheGet(ctx, []sdk.Key{key}) // an equal passage may have been asked about
	if err != nil || g.take(row, found[0]) {
		return false, err
	}
	err = g.Send(api.For(ctx, key), q, func(reply dialect.Reply, _ dialect.Request) error {
		answered = true
		r := reply.Choices[0]
		text, err := contextOf(r)
		if err != nil {
			return err
		}
		g.additions[row].Context = text
		g.CachePut(ctx, []sdk.Key{key}, [][]byte{api.Value(r)})
		return nil
	})
	if api.TooLong(err) {
		err = fmt.Errorf("%w; a smaller context_tokens shows less of the document", err)
	}
	return answered, err
}
