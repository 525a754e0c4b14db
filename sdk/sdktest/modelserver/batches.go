package modelserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// Batches says how a server treats batches of requests: OpenAI's files, and Anthropic's lists. The
// progress of a batch depends on the number of polls, never on the time. When a batch ends, its
// requests are answered as they would be alone, faults included.
type Batches struct {
	Polls     int           // polls before a batch is done
	PollAfter time.Duration // that a client shall wait, in retry-after-ms; 0: one millisecond
	// Expires reports whether a batch has no time for a request, by the numbers of both, from 0.
	Expires func(batch, request int) bool
	Fails   string // why every batch is refused after it was made; empty: no batch is
	// On is called before each reply, and in the middle of sending a file. nil: no call.
	On func(BatchStep)
}

// BatchStep is what a server has just done.
type BatchStep string

// The steps.
const (
	BatchUploading BatchStep = "uploading" // a file has come and is not stored yet
	BatchUploaded  BatchStep = "uploaded"
	BatchCreated   BatchStep = "created"
	BatchPolled    BatchStep = "polled"
	BatchSending   BatchStep = "sending" // half of a file of replies is sent
	BatchSent      BatchStep = "sent"
)

func (s *Server) step(step BatchStep) {
	if s.options.Batches.On != nil && step != "" {
		s.options.Batches.On(step)
	}
}

// jobs are the files and batches of a server.
type jobs struct {
	mu      sync.Mutex
	files   map[string][]byte
	batches []*job
}

// keep stores a file and returns its name. The caller holds mu.
func (j *jobs) keep(content []byte) string {
	if j.files == nil {
		j.files = map[string][]byte{}
	}
	name := fmt.Sprintf("file-%d", len(j.files))
	j.files[name] = content
	return name
}

// job is a batch.
type job struct {
	number   int
	id       string
	path     string
	header   http.Header // of the request that made it, with the key
	requests []batchRequest
	polls    int
	made     time.Time
	ended    bool
	replies  []batchReply // none if the batch was refused
	state    object       // in OpenAI's form, what the other fields do not tell
}

// batchRequest is a request of a batch.
type batchRequest struct {
	id   string
	body string
}

// batchReply is the reply to the request of the same number. A status of 0 means no reply.
type batchReply struct {
	status int
	body   json.RawMessage
}

func (r batchReply) good() bool { return r.status > 0 && r.status < 300 }

// routes returns the addresses for batches. Results are sent as JSON, unless a handler has already
// sent its own.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", s.serve)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if s.options.Serves == "" {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": []any{map[string]any{"id": s.options.Serves, "object": "model"}}})
	})
	for _, route := range []struct {
		pattern string
		step    BatchStep
		status  int // of a refusal
		answer  func(w http.ResponseWriter, r *http.Request) (any, error)
	}{
		{"POST /v1/files", BatchUploaded, http.StatusBadRequest, s.upload},
		{"GET /v1/files/{id}/content", "", http.StatusNotFound, s.content},
		{"POST /v1/batches", BatchCreated, http.StatusBadRequest, s.create},
		{"GET /v1/batches", "", http.StatusNotFound, s.list},
		{"GET /v1/batches/{id}", BatchPolled, http.StatusNotFound, s.poll},
		{"POST /v1/messages/batches", BatchCreated, http.StatusBadRequest, s.createMessages},
		{"GET /v1/messages/batches", "", http.StatusNotFound, s.list},
		{"GET /v1/messages/batches/{id}", BatchPolled, http.StatusNotFound, s.poll},
		{"GET /v1/messages/batches/{id}/results", "", http.StatusNotFound, s.messageResults},
	} {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := s.unknownKey(r); err != nil {
				refuse(w, r, http.StatusUnauthorized, err)
				return
			}
			reply, err := route.answer(w, r)
			s.step(route.step)
			switch {
			case err != nil:
				refuse(w, r, route.status, err)
			case reply != nil:
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("retry-after-ms", strconv.FormatInt(max(s.options.Batches.PollAfter.Milliseconds(), 1), 10))
				_ = json.NewEncoder(w).Encode(reply)
			}
		})
	}
	return mux
}

func (s *Server) upload(_ http.ResponseWriter, r *http.Request) (any, error) {
	if r.FormValue("purpose") != "batch" {
		return nil, errors.New("purpose: a file of requests has the purpose batch")
	}
	file, _, err := r.FormFile("file")
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	s.step(BatchUploading)
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	return object{"id": s.jobs.keep(content), "object": "file", "bytes": len(content), "purpose": "batch"}, nil
}

// create makes a batch from the lines of a file.
func (s *Server) create(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	asked := gjson.ParseBytes(body)
	input, endpoint, window := asked.Get("input_file_id").String(), asked.Get("endpoint").String(), asked.Get("completion_window").String()
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	content, ok := s.jobs.files[input]
	if !ok || window != "24h" {
		return nil, fmt.Errorf("there is no file %q, or no window of %q", input, window)
	}
	var all []batchRequest
	for raw := range bytes.Lines(content) {
		line := gjson.ParseBytes(raw)
		if line.Get("method").String() != http.MethodPost || line.Get("url").String() != endpoint {
			return nil, fmt.Errorf("a line that is not allowed: %s", raw)
		}
		all = append(all, batchRequest{line.Get("custom_id").String(), line.Get("body").Raw})
	}
	return s.begin(r, "batch_", endpoint, all, object{"input_file_id": input, "metadata": asked.Get("metadata").Value(), "status": "validating"})
}

// createMessages makes a batch from the requests in the body.
func (s *Server) createMessages(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.step(BatchUploading)
	var all []batchRequest
	for _, one := range gjson.GetBytes(body, "requests").Array() {
		all = append(all, batchRequest{one.Get("custom_id").String(), one.Get("params").Raw})
	}
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	return s.begin(r, "msgbatch_", "/v1/messages", all, object{})
}

// begin makes a batch. The caller holds the lock of the jobs.
func (s *Server) begin(r *http.Request, prefix, path string, all []batchRequest, state object) (any, error) {
	ids := map[string]bool{}
	for _, one := range all {
		if ids[one.id] || one.id == "" || len(one.id) > 64 {
			return nil, fmt.Errorf("a custom_id that is not allowed: %q", one.id)
		}
		ids[one.id] = true
	}
	if len(all) == 0 || len(all) > 50_000 {
		return nil, fmt.Errorf("a batch of %d requests", len(all))
	}
	number := len(s.jobs.batches)
	j := &job{
		number: number, id: fmt.Sprint(prefix, number), path: path, header: r.Header.Clone(), requests: all, made: time.Now(), state: state,
	}
	s.jobs.batches = append(s.jobs.batches, j)
	return s.view(r, j), nil
}

// view returns a batch in the form of the address that was asked. The caller holds the lock of the
// jobs.
func (s *Server) view(r *http.Request, j *job) object {
	done, bad, total := 0, 0, len(j.requests)
	for _, reply := range j.replies {
		if reply.good() {
			done++
		} else {
			bad++
		}
	}
	if !messages(r.URL.Path) {
		v := object{
			"id": j.id, "object": "batch", "endpoint": j.path, "created_at": j.made.Unix(), "expires_at": j.made.Add(24 * time.Hour).Unix(),
		}
		if !j.ended {
			done = total * j.polls / (s.options.Batches.Polls + 1)
		}
		v["request_counts"] = object{"total": total, "completed": done, "failed": bad}
		for name, value := range j.state {
			v[name] = value
		}
		return v
	}
	counts := map[string]int{"processing": total, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	status := "in_progress"
	if j.ended { // before the end, no result is known
		status, counts["processing"], counts["canceled"] = "ended", 0, total-len(j.replies)
		for _, reply := range j.replies {
			counts[messageResult(reply)["type"].(string)]++
		}
	}
	return object{
		"id": j.id, "type": "message_batch", "processing_status": status, "request_counts": counts,
		"created_at": j.made.UTC().Format(time.RFC3339), "expires_at": j.made.Add(24 * time.Hour).UTC().Format(time.RFC3339),
	}
}

// list returns batches, the newest first.
func (s *Server) list(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = 20
	}
	page, more := []object{}, false
	from := len(s.jobs.batches)
	if i := s.jobs.find(r.FormValue("after") + r.FormValue("after_id")); i >= 0 {
		from = i
	}
	for _, j := range slices.Backward(s.jobs.batches[:from]) {
		if more = len(page) == limit; more {
			break
		}
		page = append(page, s.view(r, j))
	}
	return object{"object": "list", "data": page, "has_more": more}, nil
}

// find returns the index of a batch; -1: there is none.
func (j *jobs) find(id string) int {
	return slices.IndexFunc(j.batches, func(j *job) bool { return j.id == id })
}

// poll returns the progress of a batch, and answers its requests on the last poll.
func (s *Server) poll(_ http.ResponseWriter, r *http.Request) (any, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	at := s.jobs.find(r.PathValue("id"))
	if at < 0 {
		return nil, fmt.Errorf("there is no batch %q", r.PathValue("id"))
	}
	j := s.jobs.batches[at]
	switch {
	case j.ended:
	case j.polls < s.options.Batches.Polls:
		j.polls++
		j.state["status"] = "in_progress"
	case s.options.Batches.Fails != "":
		j.ended = true
		j.state["status"] = "failed"
		j.state["errors"] = object{"data": []object{{"code": "refused", "message": s.options.Batches.Fails}}}
	default:
		s.finish(j)
	}
	return s.view(r, j), nil
}

// finish answers the requests of a batch, and makes files from the replies. The caller holds the lock
// of the jobs.
func (s *Server) finish(j *job) {
	j.ended = true
	j.state["status"], j.state["completed_at"] = "completed", time.Now().Unix()
	var out, failed bytes.Buffer
	for i, asked := range j.requests {
		var reply batchReply
		if expires := s.options.Batches.Expires; expires == nil || !expires(j.number, i) {
			reply = s.answer(j, asked)
		}
		j.replies = append(j.replies, reply)
		to, line := &failed, object{"id": fmt.Sprintf("reply_%d_%d", j.number, i), "custom_id": asked.id, "response": nil}
		if reply.status == 0 {
			j.state["status"] = "expired"
			line["error"] = object{"code": "batch_expired", "message": "This request could not be executed before the completion window expired."}
		} else {
			line["response"] = object{"status_code": reply.status, "request_id": "r", "body": reply.body}
		}
		if reply.good() {
			to = &out
		}
		_ = json.NewEncoder(to).Encode(line) // into memory
	}
	for name, file := range map[string]*bytes.Buffer{"output_file_id": &out, "error_file_id": &failed} {
		if file.Len() > 0 {
			j.state[name] = s.jobs.keep(file.Bytes())
		}
	}
}

type batchKey struct{}

// answer answers a request as if it had come alone.
func (s *Server) answer(j *job, asked batchRequest) (reply batchReply) {
	ctx := context.WithValue(context.Background(), batchKey{}, j.id)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, j.path, strings.NewReader(asked.body))
	r.Header = j.header.Clone()
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil { // the connection would have ended
			reply = batchReply{}
		}
	}()
	s.serve(w, r)
	if !json.Valid(w.Body.Bytes()) {
		return batchReply{http.StatusInternalServerError, json.RawMessage(`{"error": {"message": "the reply is broken"}}`)}
	}
	return batchReply{w.Code, w.Body.Bytes()}
}

// messageResult returns a reply in Anthropic's form.
func messageResult(reply batchReply) object {
	switch {
	case reply.status == 0:
		return object{"type": "expired"}
	case reply.good():
		return object{"type": "succeeded", "message": reply.body}
	}
	return object{"type": "errored", "error": reply.body}
}

// messageResults sends the lines of a batch's results.
func (s *Server) messageResults(w http.ResponseWriter, r *http.Request) (any, error) {
	s.jobs.mu.Lock()
	at := s.jobs.find(r.PathValue("id"))
	var content bytes.Buffer
	ended := at >= 0 && s.jobs.batches[at].ended
	if ended {
		j := s.jobs.batches[at]
		for i, reply := range j.replies {
			_ = json.NewEncoder(&content).Encode(object{"custom_id": j.requests[i].id, "result": messageResult(reply)}) // into memory
		}
	}
	s.jobs.mu.Unlock()
	if !ended {
		return nil, fmt.Errorf("the batch %q has no results", r.PathValue("id"))
	}
	s.send(w, content.Bytes())
	return nil, nil
}

// content sends a file.
func (s *Server) content(w http.ResponseWriter, r *http.Request) (any, error) {
	s.jobs.mu.Lock()
	content, ok := s.jobs.files[r.PathValue("id")]
	s.jobs.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("there is no file %q", r.PathValue("id"))
	}
	s.send(w, content)
	return nil, nil
}

// send sends a file in two halves.
func (s *Server) send(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	half := len(content) / 2
	_, _ = w.Write(content[:half])
	_ = http.NewResponseController(w).Flush()
	s.step(BatchSending)
	_, _ = w.Write(content[half:])
	s.step(BatchSent)
}

// Batches returns the number of batches so far.
func (s *Server) Batches() int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	return len(s.jobs.batches)
}
