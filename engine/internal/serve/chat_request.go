package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
)

// chatRequest has the relevant fields of a request.
type chatRequest struct {
	_             struct{}        `additionalProperties:"true"`
	Model         string          `json:"model" doc:"The pipeline"`
	Messages      []message       `json:"messages" doc:"The last one of the role user is the text"`
	Stream        bool            `json:"stream,omitempty" doc:"Answer in chunks"`
	N             *int            `json:"n,omitempty" doc:"1: a pipeline elects one answer"`
	Format        *responseFormat `json:"response_format,omitempty"`
	StreamOptions *streamOptions  `json:"stream_options,omitempty"`
}

// annotation names the source of a part of an answer.
type annotation struct {
	Type     string      `json:"type" enum:"url_citation"`
	Citation urlCitation `json:"url_citation"`
}

type urlCitation struct {
	Start int    `json:"start_index" doc:"In characters of the answer"`
	End   int    `json:"end_index"`
	Title string `json:"title"`
	URL   string `json:"url" doc:"Of a file, relative as the knowledge names it, with lines as #L3-L9; else the id of the entry"`
}

var mark = regexp.MustCompile(`\[(\d+)\]`)

// annotations returns the places where a text cites something.
func annotations(text string, cited []result.Citation) []annotation {
	var all []annotation
	for _, at := range mark.FindAllStringSubmatchIndex(text, -1) {
		number, err := strconv.Atoi(text[at[2]:at[3]])
		i := slices.IndexFunc(cited, func(c result.Citation) bool { return c.Number == number })
		if err != nil || i < 0 {
			continue
		}
		start := utf8.RuneCountInString(text[:at[0]])
		all = append(all, annotation{"url_citation", urlCitation{
			Start: start, End: start + at[1] - at[0], // digits and brackets have one byte each
			Title: title(cited[i]), URL: address(cited[i]),
		}})
	}
	return all
}

func title(c result.Citation) string {
	return cmp.Or(annotatedText(c.Title), annotatedText(c.Path), c.ID)
}

func address(c result.Citation) string {
	path := annotatedText(c.Path)
	if path == "" {
		return (&url.URL{Path: c.ID}).String()
	}
	u := url.URL{Path: path}
	if first := annotatedText(c.FirstLine); first != "" {
		if u.Fragment = "L" + first; c.LastLine != nil {
			u.Fragment += "-L" + annotatedText(c.LastLine)
		}
	} else if page := annotatedText(c.FirstPage); page != "" {
		u.Fragment = "page=" + page
	}
	return u.String()
}

func annotatedText(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// refusal is an error in OpenAI's form.
type refusal struct {
	status  int
	header  http.Header
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// refused is the response body with a refusal.
type refused struct {
	Error *refusal `json:"error"`
}

// wrong returns the error for a mistake in a request; param may be empty.
func wrong(param, format string, args ...any) *refusal {
	f := &refusal{status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		f.Param = &param
	}
	return f
}

// unknownModel returns the error for a name that no pipeline has.
func unknownModel(model string) *refusal {
	f, code := wrong("model", "there is no pipeline %q: GET /v1/models lists those that there are", model), "model_not_found"
	f.status, f.Code = http.StatusNotFound, &code
	return f
}

// refusalOf converts a problem to OpenAI's form.
func refusalOf(p *Problem) *refusal {
	f := &refusal{status: p.Status, header: p.GetHeaders(), Message: p.Detail, Type: "server_error"}
	switch {
	case p.Status == http.StatusTooManyRequests:
		f.Type = "rate_limit_error"
	case p.Status < http.StatusInternalServerError:
		f.Type = "invalid_request_error"
	}
	return f
}

// ServeHTTP answers any request with the error.
func (f *refusal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, values := range f.header {
		w.Header()[name] = values
	}
	writeJSON(w, "application/json", f.status, refused{f})
}

type responseFormat struct {
	Type string `json:"type" doc:"text: the answer is the pipeline's, as it stands"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage,omitempty" doc:"Send the tokens that the answer took in a last chunk"`
}

// message is a message of a conversation.
type message struct {
	_       struct{} `additionalProperties:"true"`
	Role    string   `json:"role"`
	Content content  `json:"content,omitempty"`
}

// content is a text, or a list of text parts.
type content struct {
	text  string
	other string // type of the first part that is not a text; empty: all are texts
}

// Schema implements huma.SchemaProvider.
func (content) Schema(huma.Registry) *huma.Schema {
	text := &huma.Schema{Type: huma.TypeString}
	part := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"type": text, "text": text}, Required: []string{"type"}, AdditionalProperties: true}
	return &huma.Schema{OneOf: []*huma.Schema{text, {Type: huma.TypeArray, Items: part}, {Type: "null"}}}
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || json.Unmarshal(b, &c.text) == nil {
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(b, &parts); err != nil {
		return fmt.Errorf("content is a text or a list of parts: %w", err)
	}
	var texts []string
	for _, p := range parts {
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case c.other == "":
			c.other = p.Type
		}
	}
	c.text = strings.Join(texts, "\n")
	return nil
}

// read reads a request and returns the question in it.
func read(r *http.Request) (in chatRequest, question string, refused *refusal) {
	body, p := readJSON(r)
	if p != nil {
		return in, "", refusalOf(p)
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return in, "", wrong("", "the body is no chat completion request: %v", err)
	}
	if in.N != nil && *in.N != 1 {
		return in, "", wrong("n", "a pipeline elects one answer: n is 1")
	}
	if in.Format != nil && in.Format.Type != "" && in.Format.Type != "text" {
		return in, "", wrong("response_format", "the answer is the pipeline's, as it stands: response_format is text; the field racflow of the answer has the whole result as JSON")
	}
	messages := slices.Clone(in.Messages)
	slices.Reverse(messages)
	i := slices.IndexFunc(messages, func(m message) bool { return m.Role == "user" })
	if i < 0 {
		return in, "", wrong("messages", "there is no message of the role user, which would be the question")
	}
	asked := messages[i].Content
	if asked.other != "" {
		return in, "", wrong("messages", "a part of the question is of the type %q, and pipelines take text", asked.other)
	}
	return in, asked.text, nil
}

// stream sends an answer in chunks.
type stream struct {
	to    *eventWriter
	in    chatRequest
	chunk completion // the fields that all chunks share
}

// answer sends a result, one word per chunk.
func (s stream) answer(r workspace.Result) {
	m, stop := replyOf(r), "stop"
	s.add(&chatReply{Role: m.Role, Refusal: m.Refusal}, nil)
	if m.Content != nil {
		for word := range strings.SplitAfterSeq(*m.Content, " ") {
			s.add(&chatReply{Content: &word}, nil)
		}
	}
	if len(m.Annotations) > 0 {
		s.add(&chatReply{Annotations: m.Annotations}, nil)
	}
	s.chunk.Racflow = &r
	s.add(&chatReply{}, &stop)
	s.chunk.Racflow = nil
	if o := s.in.StreamOptions; o != nil && o.IncludeUsage {
		s.chunk.Choices, s.chunk.Usage = []choice{}, usageOf(r)
		s.to.Send("", s.chunk)
	}
	s.to.Text("[DONE]")
}

func (s stream) add(delta *chatReply, finish *string) {
	s.chunk.Choices = []choice{{Delta: delta, Finish: finish}}
	s.to.Send("", s.chunk)
}
