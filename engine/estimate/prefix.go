package estimate

import (
	"hash/maphash"

	"github.com/racflow/racflow/sdk"
)

// block is the size of the pieces in which beginnings of prompts are compared, in bytes.
const block = 64

// prefixes are the beginnings of the prompts that came by, a hash for each multiple of
// block. They live for one dry run.
type prefixes struct {
	seed maphash.Seed
	seen map[uint64]bool
}

func newPrefixes() *prefixes { return &prefixes{maphash.MakeSeed(), map[uint64]bool{}} }

// shared is how many tokens of an item's requests stand at the beginning of an earlier
// one, of this item or of another.
func (p *prefixes) shared(prompts []sdk.Prompt, samples int, f sdk.Forecast) uint64 {
	prompts = prompts[:min(len(prompts), samples)]
	if f.Requests == 0 || len(prompts) == 0 {
		return 0
	}
	shared, all := 0, 0
	for request := range f.Requests {
		text := textOf(prompts[request%len(prompts)])
		all += len(text)
		shared += p.begin(text)
	}
	return uint64(float64(f.Likely.InputTokens) * float64(shared) / float64(max(all, 1)))
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
