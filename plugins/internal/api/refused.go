package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
)

// cause is what a service says against one text, where it would answer about others.
type cause uint8

const (
	nothing  cause = iota
	filtered       // it may not be answered
	tooLong        // the model cannot take it
)

// causes are the codes and types by which services say so, in lower case and without
// separators.
var causes = map[string]cause{
	"contentfilter": filtered, "contentfiltered": filtered, "responsibleaipolicyviolation": filtered, // Azure
	"contentpolicyviolation": filtered, "moderationblocked": filtered, "invalidprompt": filtered, // OpenAI
	"contentpolicyviolationerror": filtered, "contextwindowexceedederror": tooLong, // LiteLLM
	"datainspectionfailed":   filtered, // DashScope
	"1301":                   filtered, // Zhipu
	"contextlengthexceeded":  tooLong,  // OpenAI, Groq
	"exceedcontextsizeerror": tooLong,  // llama.cpp
	"requesttoolarge":        tooLong,  // Anthropic
	"3051":                   tooLong,  // Mistral
}

// wordings are how those say it that have no code for it.
var wordings = []struct {
	cause cause
	words *regexp.Regexp
}{
	{filtered, regexp.MustCompile(`content[ _-]?(management|filter(ing|ed)?|safety|usage) ?polic|content_?filter|content exists risk|responsible ai|usage (guidelines|policy)|` +
		`(flagged|blocked|rejected|filtered) (by|as|due to|because of|for|as a result of) .*(moderation|safety|polic|content|sensitive|prohibited)|` +
		`inappropriate content|sensitive words|requires moderation`)},
	{tooLong, regexp.MustCompile(`maximum (context|prompt|input) ?length|context (length|window|size|limit)|max(imum)? ?_?(model|context|sequence)[ _]len|` +
		`(prompt|input|request|message|messages|text|sequence) (is|are) too (long|large|many)|too many (input )?tokens|too large for model|request too large|` +
		`input token count .* exceeds|(inputs?|prompt)[^.]{0,60} must (be <=|have less than)|range of input length|input is too long|` +
		`reduce (the|your) (length|size) of|max_tokens must be at least 1, got -|context the overflows`)},
}

// refused tells why a reply refuses one text; nothing: it refuses the request, whatever
// its text, or says something else. A code counts before words, and neither counts where
// the service names another field: a limit that is too high is one for every text.
func refused(status int, body []byte) cause {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusBadGateway:
	default:
		return nothing
	}
	var reply struct {
		Error   json.RawMessage
		Message json.RawMessage
		Detail  json.RawMessage
		Code    any
		Type    any
	}
	if json.Unmarshal(body, &reply) != nil {
		if status == http.StatusRequestEntityTooLarge { // a proxy says so with a page
			return tooLong
		}
		return nothing
	}
	var e struct {
		Code, Type, Status any
		Param              any
		Inner              struct{ Code any } `json:"innererror"`
		Metadata           struct {
			Flagged json.RawMessage `json:"flagged_input"` // OpenRouter
		}
	}
	_ = json.Unmarshal(reply.Error, &e) // a text: nothing
	if e.Metadata.Flagged != nil {
		return filtered
	}
	for _, code := range []any{e.Inner.Code, e.Code, e.Type, reply.Code, reply.Type} {
		if c := causes[plain(code)]; c != nothing {
			return c
		}
	}
	if status == http.StatusRequestEntityTooLarge {
		return tooLong
	}
	if param, _ := e.Param.(string); param != "" && !aboutText(param) {
		return nothing
	}
	message, _, _ := errorMessage(body)
	message = strings.ToLower(message)
	for _, w := range wordings {
		if w.words.MatchString(message) && (w.cause == tooLong || status != http.StatusTooManyRequests) {
			return w.cause
		}
	}
	return nothing
}

// aboutText reports whether a field of a request holds its text.
func aboutText(param string) bool {
	for _, field := range []string{"messages", "prompt", "input", "contents", "texts", "query", "documents"} {
		if strings.HasPrefix(param, field) {
			return true
		}
	}
	return false
}

// plain is a code as causes have it.
func plain(code any) string {
	text, _ := code.(string)
	if n, ok := code.(float64); ok {
		raw, _ := json.Marshal(n)
		text = string(raw)
	}
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(text))
}

// TooLong reports whether an error is a refusal of a text that does not fit the model:
// there is no other way to ask for the same.
func TooLong(err error) bool {
	e := new(statusError)
	return errors.As(err, &e) && e.cause == tooLong
}
