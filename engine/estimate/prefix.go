package estimate

import (
	"hash/maphash"

	"github.com/racflow/racflow/sdk"
)

// block is the size of the pieces in which beginnings of prompts are compared, in bytes.
const block = 64

// Services cache a beginning of at least leastCached tokens, in steps of cachedStep: so
// OpenAI's, and others begin no later.
const (
	leastCached = 1024
	cachedStep  = 128
)

// prefixes are the beginnings of the prompts that came by, a hash for each multiple of
// block. They live for one dry run.
type prefixes struct {
	seed maphash.Seed
	seen map[uint64]bool
}

func newPrefixes() *prefixes { return &prefixes{maphash.MakeSeed(), map[uint64]bool{}} }

// shared is how many tokens of an item's requests a service may have cached: those at the
// beginning of an earlier one, of this item or of another, that are enough for it.
func (p *prefixes) shared(prompts []sdk.Prompt, samples int, f sdk.Forecast) uint64 {
	prompts = prompts[:min(len(prompts), samples)]
	if f.Requests == 0 || len(prompts) == 0 {
		return 0
	}
	all, begin := 0, make([]int, f.Requests) // in bytes
	for request := range f.Requests {
		text := textOf(prompts[request%len(prompts)])
		all += len(text)
		begin[request] = p.begin(text)
	}
	cached := uint64(0)
	for _, bytes := range begin {
		tokens := uint64(float64(f.Likely.InputTokens) * float64(bytes) / float64(max(all, 1)))
		if tokens >= leastCached {
			cached += tokens / cachedStep * cachedStep
		}
	}
	return cached
}

// begin returns how many bytes of a text an earlier one begins with, and notes it.
func (p *prefixes) begin(text string) (shared int) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for end := block; end <= len(text); end += block {
		_, _ = h.WriteString(text[end-block : end]) // a hash takes everything
		if p.seen[h.Sum64()] {
			shared = end
		}
		p.seen[h.Sum64()] = true
	}
	return shared
}

// textOf is a prompt as one text.
func textOf(p sdk.Prompt) string {
	text := p.Text
	for _, m := range p.Messages {
		text += m.Role + "\n" + m.Text + "\n"
	}
	return text
}
