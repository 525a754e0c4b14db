package chat

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/racflow/racflow/engine"
	"github.com/racflow/racflow/engine/result"
)

// completion is an answer, whole or a chunk of it.
type completion struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices []choice       `json:"choices"`
	Usage   *usage         `json:"usage,omitempty"`
	Racflow *engine.Result `json:"racflow,omitempty"` // beside the standard
}

type choice struct {
	Index    int     `json:"index"`
	Message  *reply  `json:"message,omitempty"`
	Delta    *reply  `json:"delta,omitempty"`
	Logprobs *string `json:"logprobs"` // null: a pipeline has none
	Finish   *string `json:"finish_reason"`
}

// reply is the answer, or what a chunk adds to it.
type reply struct {
	Role        string       `json:"role,omitempty"`
	Content     *string      `json:"content,omitempty"`
	Refusal     *string      `json:"refusal,omitempty"`
	Annotations []annotation `json:"annotations,omitempty"`
}

type usage struct {
	Prompt     uint64 `json:"prompt_tokens"`
	Completion uint64 `json:"completion_tokens"`
	Total      uint64 `json:"total_tokens"`
	Details    struct {
		Cached uint64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// newCompletion is what all parts of an answer have in common.
func newCompletion(object, model string) completion {
	return completion{ID: "chatcmpl-" + rand.Text(), Object: object, Created: time.Now().Unix(), Model: model}
}

// replyOf is the message of a result.
func replyOf(r engine.Result) reply {
	m := reply{Role: "assistant"}
	switch {
	case r.Answer != "":
		text := string(r.Answer)
		m.Content, m.Annotations = &text, annotations(text, r.Citations)
	case len(r.Candidates) > 0:
		text, cited := passages(r.Candidates)
		m.Content, m.Annotations = &text, annotations(text, cited)
	default:
		why := "there is no answer"
		if r.Reason != "" {
			why += ": " + r.Reason
		}
		m.Refusal = &why
	}
	return m
}

// passages are those that were found, as a text that cites each.
func passages(found []engine.Candidate) (string, []result.Citation) {
	var texts []string
	var cited []result.Citation
	for i, c := range found {
		texts = append(texts, fmt.Sprintf("[%d] %s", i+1, c.Text))
		cited = append(cited, result.Citation{
			Number: i + 1, ID: c.ID, Path: c.Meta["path"], Title: c.Meta["title"], Headings: c.Meta["headings"], FirstLine: c.Meta["first_line"], LastLine: c.Meta["last_line"],
		})
	}
	return strings.Join(texts, "\n\n"), cited
}

func usageOf(r engine.Result) *usage {
	u := &usage{Prompt: r.Usage.InputTokens, Completion: r.Usage.OutputTokens, Total: r.Usage.InputTokens + r.Usage.OutputTokens}
	u.Details.Cached = r.Usage.CachedTokens
	return u
}
