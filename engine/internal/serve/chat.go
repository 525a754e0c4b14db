package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/engine/result"
)

// This file implements OpenAI's chat completions, so that clients of that interface can ask a
// pipeline without knowing racflow:
//
//	POST /v1/chat/completions   the last user message goes through the pipeline that model names
//	GET  /v1/models             the pipelines
//	GET  /v1/models/NAME
//
// The answer is the message: a label, or labels as "a; b"; a text whose citations are annotations (url_citation); or,
// from a pipeline without an election, the passages found. An item without an acceptable answer is
// a refusal, in OpenAI's sense, with the reason. The additional field "racflow" has the whole
// result. With stream, the answer comes in chunks. The pipeline elects it as a whole, so no chunk
// comes before the whole answer is ready.
//
// Settings for models (temperature, tools and the like) have no effect, because the pipeline has
// its own settings. Settings that would change the form of the answer, n above 1 or a
// response_format, are errors. Errors have OpenAI's form.
//
// The server stores no conversations and ignores earlier messages.

// MountChat adds OpenAI's paths to a server.
func MountChat(s *Server) {
	failed, completed := as("application/json", schema[refused](s)), responses{}.and(as("application/json", schema[completion](s)), http.StatusOK)
	completed.and(asEvents("Chunks, where stream is true, and [DONE] after them", schema[completion](s)), http.StatusOK)
	completed.and(failed, http.StatusBadRequest, http.StatusNotFound, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	s.handle(huma.Operation{
		OperationID: "createChatCompletion", Method: http.MethodPost, Path: "/v1/chat/completions", Summary: "Answer the last user message by a pipeline", Tags: []string{"chat"},
		Description: "Other fields of a chat completion request are taken and have no effect.",
		RequestBody: &huma.RequestBody{Required: true, Content: as("application/json", schema[chatRequest](s))}, Responses: completed,
	}, http.HandlerFunc(s.complete))
	s.get("/v1/models", "listModels", "chat", "List the pipelines as models", responses{}.and(as("application/json", schema[modelList](s)), http.StatusOK), s.models)
	s.handle(huma.Operation{
		OperationID: "getModel", Method: http.MethodGet, Path: "/v1/models/{name}", Summary: "Describe a pipeline as a model", Tags: []string{"chat"},
		Parameters: []*huma.Param{{Name: "name", In: "path", Required: true, Description: "The pipeline", Schema: &huma.Schema{Type: huma.TypeString}}},
		Responses:  responses{}.and(as("application/json", schema[model](s)), http.StatusOK).and(failed, http.StatusNotFound),
	}, http.HandlerFunc(s.model))
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	in, question, mistake := read(r)
	if mistake != nil {
		mistake.ServeHTTP(w, r)
		return
	}
	p := s.asked(in.Model)
	if p == nil {
		unknownModel(in.Model).ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()
	var out *eventWriter
	if in.Stream {
		out = newEventWriter(w, cancel)
	}
	result, err := p.Answer(ctx, workspace.Item{Text: question})
	begun := in.Stream && out.End()
	problem := problemOf(ctx, result, err)
	switch {
	case problem != nil && begun:
		out.Send("", refused{refusalOf(problem)})
	case problem != nil:
		refusalOf(problem).ServeHTTP(w, r)
	case in.Stream:
		stream{out, in, newCompletion("chat.completion.chunk", in.Model)}.answer(result)
	default:
		whole, m, stop := newCompletion("chat.completion", in.Model), replyOf(result), "stop"
		whole.Choices = []choice{{Message: &m, Finish: &stop}}
		whole.Usage, whole.Racflow = usageOf(result), &result
		writeJSON(w, "application/json", http.StatusOK, whole)
	}
}

// model describes a pipeline in OpenAI's list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"When what answers now began to, in seconds since 1970; 0: not yet"`
	OwnedBy string `json:"owned_by"`
}

// modelList is the list of models, for clients of OpenAI and of TypeSafe.
type modelList struct {
	Data   []model      `json:"data"`
	Object string       `json:"object" enum:"list"`
	Models []modelNamed `json:"models"`
}

// modelNamed describes a pipeline in TypeSafe's list of models.
type modelNamed struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Released    string `json:"release_date" doc:"The day when what answers now began to; 1970-01-01: not yet"`
}

// asked returns the pipeline for a model's name or alias; nil: there is none.
func (s *Server) asked(model string) Pipeline {
	return s.pipelines.Named(cmp.Or(s.options.Aliases[model], model))
}

func modelOf(p Pipeline) model {
	m := model{ID: p.Name(), Object: "model", OwnedBy: "racflow"}
	if since := p.Status().Since; !since.IsZero() {
		m.Created = since.Unix()
	}
	return m
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	all := modelList{Data: []model{}, Object: "list", Models: []modelNamed{}}
	list := func(name string, p Pipeline) {
		m := modelOf(p)
		m.ID = name
		all.Data = append(all.Data, m)
		all.Models = append(all.Models, modelNamed{name, describeTool(p.Definition(), p.Status()), time.Unix(m.Created, 0).UTC().Format(time.DateOnly)})
	}
	for _, p := range s.pipelines() {
		list(p.Name(), p)
	}
	for _, alias := range slices.Sorted(maps.Keys(s.options.Aliases)) {
		if p := s.asked(alias); p != nil {
			list(alias, p)
		}
	}
	writeJSON(w, "application/json", http.StatusOK, all)
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	p := s.asked(r.PathValue("name"))
	if p == nil {
		unknownModel(r.PathValue("name")).ServeHTTP(w, r)
		return
	}
	writeJSON(w, "application/json", http.StatusOK, modelOf(p))
}

// completion is an answer, or a chunk of an answer.
type completion struct {
	ID      string            `json:"id"`
	Object  string            `json:"object" enum:"chat.completion,chat.completion.chunk"`
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []choice          `json:"choices"`
	Usage   *usage            `json:"usage,omitempty"`
	Racflow *workspace.Result `json:"racflow,omitempty" doc:"The whole result, beside the standard"`
}

type choice struct {
	Index    int        `json:"index"`
	Message  *chatReply `json:"message,omitempty"`
	Delta    *chatReply `json:"delta,omitempty"`
	Logprobs *string    `json:"logprobs" doc:"null: a pipeline has none"`
	Finish   *string    `json:"finish_reason"`
}

// chatReply is the message of an answer, or of a chunk.
type chatReply struct {
	Role        string       `json:"role,omitempty"`
	Content     *string      `json:"content,omitempty"`
	Refusal     *string      `json:"refusal,omitempty"`
	Annotations []annotation `json:"annotations,omitempty"`
}

type usage struct {
	Prompt     uint64 `json:"prompt_tokens"`
	Completion uint64 `json:"completion_tokens"`
	Total      uint64 `json:"total_tokens"`
	Details    cached `json:"prompt_tokens_details"`
}

// cached counts the part of a prompt that a service had cached.
type cached struct {
	Tokens uint64 `json:"cached_tokens"`
}

// newCompletion returns the fields that all chunks of an answer share.
func newCompletion(object, model string) completion {
	return completion{ID: "chatcmpl-" + rand.Text(), Object: object, Created: time.Now().Unix(), Model: model}
}

// replyOf converts a result to a message.
func replyOf(r workspace.Result) chatReply {
	m := chatReply{Role: "assistant"}
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

// passages returns a text with the passages found and a citation of each.
func passages(found []workspace.Candidate) (string, []result.Citation) {
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

func usageOf(r workspace.Result) *usage {
	u := &usage{Prompt: r.Usage.InputTokens, Completion: r.Usage.OutputTokens, Total: r.Usage.InputTokens + r.Usage.OutputTokens}
	u.Details.Tokens = r.Usage.CachedTokens
	return u
}
