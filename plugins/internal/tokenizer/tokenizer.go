package tokenizer

import (
	"github.com/racflow/racflow/plugins/internal/tokenizer/bert"
	"github.com/racflow/racflow/plugins/internal/tokenizer/normalizer"
	"github.com/racflow/racflow/plugins/internal/tokenizer/pretokenizer"
	"github.com/racflow/racflow/plugins/internal/tokenizer/wordpiece"
)

// Tokenizer turns texts into ids. It is read-only and safe for concurrent use.
type Tokenizer struct {
	added      *addedTokens // found in the text as it is
	normalized *addedTokens // found in the normalised text
	normalizer *normalizer.Normalizer
	words      *pretokenizer.PreTokenizer
	model      model
	template   template

	bert        *bert.Normalizer // that of normalizer and words, where these are BERT's
	pieces      *wordpiece.Model // model, where bert is set and that is WordPiece
	blocks      bool             // texts may be read in blocks
	size        int
	fingerprint string
}

// model divides words into tokens.
type model interface {
	// Append appends the ids of one word; it may stop once ids has limit elements or more.
	Append(ids []int32, word string, limit int) []int32
	// ID returns the id of a token.
	ID(token string) (int32, bool)
	// Size is the highest id plus one.
	Size() int
}

// Size is the number of ids, which run from 0 to Size-1. Not each of them needs to be a
// token's.
func (t *Tokenizer) Size() int { return t.size }

// Fingerprint returns the SHA-256, in hexadecimal, of what the ids depend on: of the parts
// of tokenizer.json without its truncation, padding and decoder, or of vocab.txt.
func (t *Tokenizer) Fingerprint() string { return t.fingerprint }

// finish sets what follows from the other fields.
func (t *Tokenizer) finish() {
	t.size = max(t.model.Size(), t.added.size, t.normalized.size)
	if t.words.BERT() && len(t.normalized.tokens) == 0 {
		if t.bert = t.normalizer.BERT(); t.bert != nil {
			t.pieces, _ = t.model.(*wordpiece.Model)
		}
	}
	t.blocks = t.normalizer.Local() && t.words.Cuts() && t.added.local() && t.normalized.local()
}
