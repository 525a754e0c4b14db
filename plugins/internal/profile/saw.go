package profile

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/plugins/internal/dialect"
	"github.com/racflow/racflow/sdk"
)

// roomier is how many times the room for thoughts is larger than the most that were seen.
const roomier = 4

// mostRoom is the most room for thoughts that is found, in tokens.
const mostRoom = 32768

// silence is how many tokens of an answer need no text: those that end it, and the names of
// channels and tools.
const silence = 32

// Saw returns what is known after a request was answered that was sent as it is.
func (p Profile) Saw(sent dialect.Request, reply dialect.Reply) Profile {
	if len(reply.Choices) == 0 {
		return p
	}
	if reply.Usage.Plausible() && reply.Usage.CachedTokens > 0 {
		p.CachedUsage = Yes
	}
	if reply.Streamed { // whether it was asked to or not: asked to, it reports its tokens
		p.Streaming = Yes
	}
	texts := visible(reply)
	starved := slices.ContainsFunc(reply.Choices, dialect.Choice.Starved)
	switch thoughts, thinks := thoughts(reply, texts); {
	case thinks || starved:
		p.Thinks = Yes
		p.Thoughts = max(p.Thoughts, thoughts)
		if starved && sent.MaxTokens > fewTokens {
			p.Room = min(max(p.Room, 2*sent.MaxTokens, LeastRoom), mostRoom)
		}
		if p.Room > 0 {
			p.Room = min(max(p.Room, 2*p.Thoughts), mostRoom)
		}
	case p.Thinks == "" && !slices.Contains(texts, ""):
		p.Thinks = No
	}
	if size := textBytes(sent); p.BytesPerToken == 0 && p.Usage != No && sent.Schema == nil && size >= leastText && reply.Usage.InputTokens > 0 && reply.Usage.Plausible() {
		p.Usage, p.BytesPerToken = Yes, rounded(float64(size)/float64(reply.Usage.InputTokens))
	}
	return p
}

// leastText is how many bytes a prompt has at least beside which what the chat template
// adds counts little.
const leastText = 500

// textBytes are the bytes of a prompt.
func textBytes(r dialect.Request) int {
	n := len(r.Prompt)
	for _, m := range r.Messages {
		n += len(m.Text)
	}
	return n
}

// thoughts is how many tokens a model thought before one answer, about, and whether it did.
func thoughts(reply dialect.Reply, texts []string) (tokens int, thinks bool) {
	written, seen, aloud := 0, 0, 0 // bytes
	for i, c := range reply.Choices {
		written += len(c.Text)
		seen += len(texts[i])
		aloud += len(c.Thoughts) + len(strings.TrimSpace(c.Text)) - len(texts[i])
	}
	n, u := len(reply.Choices), reply.Usage
	if !u.Plausible() {
		u = sdk.Usage{}
	}
	spent := int(u.OutputTokens)
	switch {
	case reply.ThoughtTokens > 0 && reply.ThoughtTokens <= sdk.MaxTokens:
		return int(reply.ThoughtTokens) / n, true
	case aloud > 0 && spent > 0:
		return max(0, spent-sdk.EstimateTokens(seen)) / n, true
	case aloud > 0:
		return sdk.EstimateTokens(aloud) / n, true
	case spent > written+silence*n:
		return (spent - sdk.EstimateTokens(seen)) / n, true
	}
	return 0, false
}
