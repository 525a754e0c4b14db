package anthropic

import (
	"github.com/racflow/racflow/sdk"
)

// message is one of a chat.
type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a text.
type block struct {
	Type         string        `json:"type"`
	Text         string        `json:"text"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

// maxMarks is how many blocks of a request may be marked.
const maxMarks = 4

// split writes a chat: its system messages, and the others with the roles in turns. Where marks
// is set, the last Shared ones are marked.
func split(chat []sdk.Message, marks bool) (system []block, turns []message) {
	marked := lastShared(chat, marks)
	for i, m := range chat {
		if m.Text == "" {
			continue
		}
		b := block{Type: "text", Text: m.Text}
		if marked[i] {
			b.CacheControl = &cacheControl{Type: "ephemeral"}
		}
		switch n := len(turns); {
		case m.Role == sdk.MessageSystem:
			system = append(system, b)
		case n > 0 && turns[n-1].Role == m.Role:
			turns[n-1].Content = append(turns[n-1].Content, b)
		default:
			turns = append(turns, message{m.Role, []block{b}})
		}
	}
	if n := len(system); len(turns) == 0 && n > 0 { // a chat needs a user, who says the last of it
		return system[:n-1], []message{{sdk.MessageUser, system[n-1:]}}
	}
	return system, turns
}

// lastShared are the messages to mark: the last mark covers most.
func lastShared(chat []sdk.Message, marks bool) map[int]bool {
	marked := map[int]bool{}
	for i := len(chat) - 1; i >= 0 && marks && len(marked) < maxMarks; i-- {
		if chat[i].Shared && chat[i].Text != "" {
			marked[i] = true
		}
	}
	return marked
}
