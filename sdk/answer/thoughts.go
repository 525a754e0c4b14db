package answer

import (
	"regexp"
	"strings"
)

// tag opens or closes what a model thinks aloud: <think>, </reasoning>, <seed:think>,
// ◁think▷, [THINK], <|START_THINKING|>, <|end_of_thought|>. Groups: the slash, or how the
// last kind begins, and the name.
var tag = regexp.MustCompile(`(?i:<(/?)(?:[a-z]+:)?(think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)(?:\s[^<>]*)?>)` +
	`|◁(/?)(think)▷|\[(/?)(THINK)\]|<\|(?i:(start|begin_of|end|end_of)_(thinking|thought))\|>`)

// mark is a tag in a text.
type mark struct {
	from, to int
	name     string
	closes   bool
}

func marksOf(text string) (all []mark) {
	if !strings.ContainsAny(text, "<◁[") {
		return nil
	}
	for _, m := range tag.FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(m); g += 4 {
			if m[g] < 0 {
				continue
			}
			how := strings.ToLower(text[m[g]:m[g+1]])
			all = append(all, mark{m[0], m[1], strings.ToLower(text[m[g+2]:m[g+3]]), how == "/" || strings.HasPrefix(how, "end")})
		}
	}
	return all
}

// Thoughts returns where the part of a text ends in which a model thought aloud, in
// bytes: behind the last </think>, or its like, of thoughts that begin the text, and at the
// end where they are not closed. A </think> without a beginning counts too, since prompts
// may have begun the thoughts. Of a text in channels, as open-weight models write it
// (<|channel|>analysis<|message|>...), it is where the final one begins.
func Thoughts(text string) int {
	if from, _, ok := final(text); ok {
		return from
	}
	marks := marksOf(text)
	first := ""
	if len(marks) > 0 && !marks[0].closes && strings.TrimSpace(text[:marks[0].from]) == "" {
		first = marks[0].name
	}
	end := -1
	for _, m := range marks {
		if m.closes && (m.name == first || m.name == "think" || first == "" && m.name == "thinking") {
			end = m.to
		}
	}
	switch {
	case end >= 0:
		return end
	case first != "":
		return len(text)
	}
	return 0
}

// written returns a text with spaces for what its model thought, wherever that stands, so
// that the rest keeps its place.
func written(text string) string {
	out := []byte(text)
	if from, to, ok := final(text); ok {
		space(out[:from])
		space(out[to:])
	} else if at := Thoughts(text); at > 0 {
		space(out[:at])
	}
	open := -1 // the mark that is open
	marks := marksOf(string(out))
	for i, m := range marks {
		switch {
		case open < 0 && !m.closes:
			open = i
		case open < 0: // the prompt may have opened it
			space(out[:m.to])
		case m.closes && m.name == marks[open].name:
			space(out[marks[open].from:m.to])
			open = -1
		}
	}
	if open >= 0 {
		space(out[marks[open].from:])
	}
	return string(out)
}

// space writes spaces over a text.
func space(text []byte) {
	for i := range text {
		text[i] = ' '
	}
}

// token is one of the marks between which open-weight models write in channels (the
// harmony format of gpt-oss).
var token = regexp.MustCompile(`<\|([a-z_]+)\|>`)

// stripped are channels of which a server has taken out the tokens.
const (
	channelToken  = "<|channel|>"
	strippedBegin = "analysis"
	strippedFinal = "assistantfinal"
)

// final returns where in a text in channels the answer stands: the last message to the user
// or, where there is none, to a tool. ok: the text is in channels. What the model
// wrote in no channel but that of its thoughts is no answer, and is empty.
func final(text string) (from, to int, ok bool) {
	if !strings.Contains(text, "<|message|>") {
		if at := strings.LastIndex(text, strippedFinal); at >= 0 && strings.HasPrefix(text, strippedBegin) {
			return at + len(strippedFinal), len(text), true
		}
		return 0, 0, false
	}
	const unknown, tool, user = 0, 1, 2
	best, header, begun := unknown, 0, -1 // begun: the message that is open
	from, to = len(text), len(text)
	end := func(at int) {
		if begun < 0 {
			return
		}
		kind, head := user, strings.TrimSpace(text[header:begun])
		switch channel := head[strings.LastIndex(head, channelToken)+1:]; {
		case strings.HasPrefix(channel, "|channel|>final"):
		case strings.Contains(head, " to="):
			kind = tool
		case channel != head || strings.HasPrefix(head, strippedBegin):
			kind = unknown
		}
		if kind >= best && kind > unknown {
			best, from, to = kind, begun, at
		}
		begun = -1
	}
	for _, m := range token.FindAllStringSubmatchIndex(text, -1) {
		switch text[m[2]:m[3]] {
		case "message", "channel":
			if begun >= 0 {
				end(m[0])
				header = m[0]
			}
			if text[m[2]:m[3]] == "message" {
				begun = m[1]
			}
		case "start", "end", "return", "call":
			end(m[0])
			header = m[1]
		}
	}
	end(len(text))
	return from, to, true
}
