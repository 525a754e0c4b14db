package modelserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Anthropic's message batches are served as batch files are, with Options.Batches, but for their
// forms: the requests come in one body, and the results are lines of their own kind.

// serveMessageBatches answers requests for message batches, and reports whether it was one.
func (s *Server) serveMessageBatches(w http.ResponseWriter, r *http.Request) bool {
	path, ok := strings.CutPrefix(r.URL.Path, "/v1/messages/batches")
	if !ok {
		return false
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var reply any
	var err error
	step := BatchPolled
	switch {
	case s.options.Key != "" && r.Header.Get("X-Api-Key") != s.options.Key:
		refuseMessage(w, http.StatusUnauthorized, "invalid x-api-key")
		return true
	case r.Method == http.MethodPost && path == "":
		step = BatchCreated
		reply, err = s.createMessages(r)
	case r.Method == http.MethodGet && path == "":
		reply, step = s.listMessages(r), ""
	case r.Method == http.MethodGet && len(parts) == 1:
		var state object
		if state, err = s.poll(parts[0]); err == nil {
			reply = s.messageBatch(state)
		}
	case r.Method == http.MethodGet && len(parts) == 2 && parts[1] == "results":
		if err = s.results(w, parts[0]); err == nil {
			return true
		}
	default:
		err = fmt.Errorf("there is no %s %s", r.Method, r.URL.Path)
	}
	if step != "" {
		s.step(step)
	}
	switch {
	case err != nil && step == BatchCreated:
		refuseMessage(w, http.StatusBadRequest, err.Error())
	case err != nil:
		refuseMessage(w, http.StatusNotFound, err.Error())
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("retry-after-ms", strconv.FormatInt(max(s.options.Batches.PollAfter.Milliseconds(), 1), 10))
		_ = json.NewEncoder(w).Encode(reply)
	}
	return true
}

// createMessages makes a batch, whose requests are kept as a file of lines.
func (s *Server) createMessages(r *http.Request) (object, error) {
	var asked struct {
		Requests []struct {
			ID     string          `json:"custom_id"`
			Params json.RawMessage `json:"params"`
		} `json:"requests"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	s.step(BatchUploading)
	var content bytes.Buffer
	for _, one := range asked.Requests {
		_ = json.NewEncoder(&content).Encode(line{one.ID, http.MethodPost, "/v1/messages", one.Params}) // into memory
	}
	if _, err := lines(content.Bytes(), "/v1/messages"); err != nil {
		return nil, err
	}
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	j := &job{number: len(s.jobs.batches), input: s.jobs.keep(content.Bytes()), path: "/v1/messages", header: r.Header.Clone(), made: time.Now()}
	j.state = object{"id": fmt.Sprintf("msgbatch_%d", j.number), "status": "in_progress", "request_counts": counts(len(asked.Requests), 0, 0)}
	s.jobs.batches = append(s.jobs.batches, j)
	return messageBatchOf(j, j.state, nil), nil
}

// messageBatch is a batch in Anthropic's form. Its counts are those of its results: before
// it has ended none is known.
func (s *Server) messageBatch(state object) object {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	at := slices.IndexFunc(s.jobs.batches, func(j *job) bool { return j.state["id"] == state["id"] })
	return messageBatchOf(s.jobs.batches[at], state, s.jobs.files)
}

func messageBatchOf(j *job, state object, files map[string][]byte) object {
	total, _ := state["request_counts"].(object)["total"].(int)
	status, by := "in_progress", map[string]int{"processing": total, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
	if j.answers {
		status, by["processing"] = "ended", 0
		results := resultsOf(state, files)
		for _, r := range results {
			by[r["result"].(object)["type"].(string)]++
		}
		by["canceled"] = total - len(results)
	}
	return object{
		"id": state["id"], "type": "message_batch", "processing_status": status, "request_counts": by,
		"created_at": j.made.UTC().Format(time.RFC3339), "expires_at": j.made.Add(24 * time.Hour).UTC().Format(time.RFC3339),
	}
}

// resultsOf are the replies to the requests of a batch that has ended.
func resultsOf(state object, files map[string][]byte) (all []object) {
	for _, name := range []string{"output_file_id", "error_file_id"} {
		file, _ := state[name].(string)
		for raw := range bytes.Lines(files[file]) {
			var reply struct {
				ID       string `json:"custom_id"`
				Response *struct {
					Status int             `json:"status_code"`
					Body   json.RawMessage `json:"body"`
				} `json:"response"`
			}
			_ = json.Unmarshal(raw, &reply) // written above
			result := object{"type": "expired"}
			switch {
			case reply.Response == nil || reply.Response.Status == 0:
			case reply.Response.Status < 300:
				result = object{"type": "succeeded", "message": reply.Response.Body}
			default:
				result = object{"type": "errored", "error": reply.Response.Body}
			}
			all = append(all, object{"custom_id": reply.ID, "result": result})
		}
	}
	return all
}

// listMessages returns batches, the newest first.
func (s *Server) listMessages(r *http.Request) object {
	_ = r.ParseForm() // it has no body
	r.Form.Set("after", r.Form.Get("after_id"))
	page := s.list(r)
	all := []object{}
	for _, state := range page["data"].([]object) {
		all = append(all, s.messageBatch(state))
	}
	return object{"data": all, "has_more": page["has_more"]}
}

// results sends the lines of a batch's results.
func (s *Server) results(w http.ResponseWriter, id string) error {
	s.jobs.mu.Lock()
	at := slices.IndexFunc(s.jobs.batches, func(j *job) bool { return j.state["id"] == id && j.answers })
	var content bytes.Buffer
	if at >= 0 {
		for _, r := range resultsOf(s.jobs.batches[at].state, s.jobs.files) {
			_ = json.NewEncoder(&content).Encode(r) // into memory
		}
	}
	s.jobs.mu.Unlock()
	if at < 0 {
		return fmt.Errorf("the batch %q has no results", id)
	}
	s.send(w, content.Bytes())
	return nil
}

// Batches say how a server does with batch files: it takes them as OpenAI's service does. How
// far a batch is depends on how often that was asked, never on the time, and its requests are
// answered as they would be alone, faults included, at the moment when it ends.
type Batches struct {
	Polls     int           // how often a batch is asked for and not done yet
	PollAfter time.Duration // that a client is to wait, in retry-after-ms; 0: one millisecond
	// Expires names requests that a batch has no time for: by its number and the request's, from 0.
	Expires func(batch, request int) bool
	Fails   string // why every batch is refused after it was made; empty: none is
	// On is called before each reply, and in the middle of a file that is sent. nil: nobody
	// wants to know.
	On func(BatchStep)
}

// BatchStep is what a server has just done.
type BatchStep string

// The steps.
const (
	BatchUploading BatchStep = "uploading" // a file has come and is not kept yet
	BatchUploaded  BatchStep = "uploaded"
	BatchCreated   BatchStep = "created"
	BatchPolled    BatchStep = "polled"
	BatchSending   BatchStep = "sending" // half of a file of replies is sent
	BatchSent      BatchStep = "sent"
)

// jobs are the files and batches of a server.
type jobs struct {
	mu      sync.Mutex
	files   map[string][]byte
	batches []*job
}

// job is a batch.
type job struct {
	number  int
	input   string
	path    string
	header  http.Header // with the key, as its maker has shown it
	polls   int
	made    time.Time
	state   object // as it is sent
	answers bool   // it has ended
}

// serveBatches answers requests for files and batches, and reports whether it was one.
func (s *Server) serveBatches(w http.ResponseWriter, r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	if !strings.HasPrefix(path, "/files") && !strings.HasPrefix(path, "/batches") {
		return false
	}
	if s.options.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.options.Key {
		refuse(w, http.StatusUnauthorized, errors.New("wrong key"))
		return true
	}
	reply, status, err := s.batchReply(w, r, path)
	switch {
	case err != nil:
		refuse(w, status, err)
	case reply != nil:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("retry-after-ms", strconv.FormatInt(max(s.options.Batches.PollAfter.Milliseconds(), 1), 10))
		_ = json.NewEncoder(w).Encode(reply)
	}
	return true
}

func (s *Server) step(step BatchStep) {
	if s.options.Batches.On != nil {
		s.options.Batches.On(step)
	}
}

func (s *Server) batchReply(w http.ResponseWriter, r *http.Request, path string) (reply object, status int, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && path == "/files":
		reply, err = s.upload(r)
		s.step(BatchUploaded)
		return reply, http.StatusBadRequest, err
	case r.Method == http.MethodPost && path == "/batches":
		reply, err = s.create(r)
		s.step(BatchCreated)
		return reply, http.StatusBadRequest, err
	case r.Method == http.MethodGet && path == "/batches":
		return s.list(r), 0, nil
	case r.Method == http.MethodGet && len(parts) == 2 && parts[0] == "batches":
		reply, err = s.poll(parts[1])
		s.step(BatchPolled)
	case r.Method == http.MethodGet && len(parts) == 3 && parts[2] == "content":
		err = s.content(w, parts[1])
	default:
		err = fmt.Errorf("there is no %s %s", r.Method, path)
	}
	return reply, http.StatusNotFound, err
}

func (s *Server) upload(r *http.Request) (object, error) {
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

// keep keeps a file and returns its name. The caller holds mu.
func (j *jobs) keep(content []byte) string {
	if j.files == nil {
		j.files = map[string][]byte{}
	}
	name := fmt.Sprintf("file-%d", len(j.files))
	j.files[name] = content
	return name
}

// line is one of a file of requests.
type line struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

// lines reads a file of requests, which all have to be for one address.
func lines(content []byte, url string) (all []line, err error) {
	ids := map[string]bool{}
	for raw := range bytes.Lines(content) {
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, err
		}
		if ids[l.ID] || l.ID == "" || len(l.ID) > 64 || l.Method != http.MethodPost || l.URL != url {
			return nil, fmt.Errorf("a line that is not allowed: %s", raw)
		}
		ids[l.ID] = true
		all = append(all, l)
	}
	if len(all) == 0 || len(all) > 50_000 {
		return nil, fmt.Errorf("a file with %d requests", len(all))
	}
	return all, nil
}

func (s *Server) create(r *http.Request) (object, error) {
	var asked struct {
		Input    string            `json:"input_file_id"`
		Endpoint string            `json:"endpoint"`
		Window   string            `json:"completion_window"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	content, ok := s.jobs.files[asked.Input]
	if !ok || asked.Window != "24h" {
		return nil, fmt.Errorf("there is no file %q, or no window of %q", asked.Input, asked.Window)
	}
	all, err := lines(content, asked.Endpoint)
	if err != nil {
		return nil, err
	}
	j := &job{number: len(s.jobs.batches), input: asked.Input, path: asked.Endpoint, header: r.Header.Clone(), made: time.Now()}
	j.state = object{
		"id": fmt.Sprintf("batch_%d", j.number), "object": "batch", "status": "validating", "endpoint": asked.Endpoint, "input_file_id": asked.Input,
		"metadata": asked.Metadata, "created_at": j.made.Unix(), "expires_at": j.made.Add(24 * time.Hour).Unix(), "request_counts": counts(len(all), 0, 0),
	}
	s.jobs.batches = append(s.jobs.batches, j)
	return maps.Clone(j.state), nil
}

func counts(total, completed, failed int) object {
	return object{"total": total, "completed": completed, "failed": failed}
}

// list returns batches, the newest first.
func (s *Server) list(r *http.Request) object {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = 20
	}
	page, more := []object{}, false
	from := len(s.jobs.batches)
	for i, j := range s.jobs.batches {
		if j.state["id"] == r.FormValue("after") {
			from = i
		}
	}
	for _, j := range slices.Backward(s.jobs.batches[:from]) {
		if more = len(page) == limit; more {
			break
		}
		page = append(page, maps.Clone(j.state))
	}
	return object{"object": "list", "data": page, "has_more": more}
}

// poll says how far a batch is, and works on it when it is to end.
func (s *Server) poll(id string) (object, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	at := slices.IndexFunc(s.jobs.batches, func(j *job) bool { return j.state["id"] == id })
	if at < 0 {
		return nil, fmt.Errorf("there is no batch %q", id)
	}
	j := s.jobs.batches[at]
	if j.answers {
		return maps.Clone(j.state), nil
	}
	all, err := lines(s.jobs.files[j.input], j.path)
	if err != nil {
		return nil, err
	}
	if j.polls++; j.polls <= s.options.Batches.Polls {
		j.state["status"] = "in_progress"
		j.state["request_counts"] = counts(len(all), len(all)*j.polls/(s.options.Batches.Polls+1), 0)
		return maps.Clone(j.state), nil
	}
	j.answers = true
	if s.options.Batches.Fails != "" {
		j.state["status"] = "failed"
		j.state["errors"] = object{"data": []object{{"code": "refused", "message": s.options.Batches.Fails}}}
		return maps.Clone(j.state), nil
	}
	s.finish(j, all)
	return maps.Clone(j.state), nil
}

// finish answers the requests of a batch. The caller holds mu.
func (s *Server) finish(j *job, all []line) {
	var out, failed bytes.Buffer
	j.state["status"] = "completed"
	done, bad := 0, 0
	for i, l := range all {
		reply := object{"id": fmt.Sprintf("reply_%d_%d", j.number, i), "custom_id": l.ID}
		status, body := 0, json.RawMessage(nil)
		if expires := s.options.Batches.Expires; expires == nil || !expires(j.number, i) {
			status, body = s.answer(j, l)
		}
		to := &failed
		if status == 0 {
			j.state["status"] = "expired"
			reply["response"], reply["error"] = nil, object{"code": "batch_expired", "message": "This request could not be executed before the completion window expired."}
		} else {
			reply["response"] = object{"status_code": status, "request_id": "r", "body": body}
		}
		if status > 0 && status < 300 {
			to = &out
		}
		if to == &out {
			done++
		} else {
			bad++
		}
		_ = json.NewEncoder(to).Encode(reply) // into memory
	}
	j.state["request_counts"], j.state["completed_at"] = counts(len(all), done, bad), time.Now().Unix()
	for name, file := range map[string]*bytes.Buffer{"output_file_id": &out, "error_file_id": &failed} {
		if file.Len() > 0 {
			j.state[name] = s.jobs.keep(file.Bytes())
		}
	}
}

type batchKey struct{}

// answer answers a request as if it had come alone; a status of 0 is no answer.
func (s *Server) answer(j *job, l line) (status int, body json.RawMessage) {
	ctx := context.WithValue(context.Background(), batchKey{}, j.state["id"])
	r := httptest.NewRequestWithContext(ctx, l.Method, l.URL, bytes.NewReader(l.Body))
	r.Header = j.header.Clone()
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil { // the connection would have ended
			status, body = 0, nil
		}
	}()
	s.serve(w, r)
	if !json.Valid(w.Body.Bytes()) {
		return http.StatusInternalServerError, json.RawMessage(`{"error": {"message": "the reply is broken"}}`)
	}
	return w.Code, w.Body.Bytes()
}

// content sends a file.
func (s *Server) content(w http.ResponseWriter, name string) error {
	s.jobs.mu.Lock()
	content, ok := s.jobs.files[name]
	s.jobs.mu.Unlock()
	if !ok {
		return fmt.Errorf("there is no file %q", name)
	}
	s.send(w, content)
	return nil
}

// send sends a file in two halves.
func (s *Server) send(w http.ResponseWriter, content []byte) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	out := bufio.NewWriter(w)
	_, _ = out.Write(content[:len(content)/2])
	_ = out.Flush()
	_ = http.NewResponseController(w).Flush()
	s.step(BatchSending)
	_, _ = out.Write(content[len(content)/2:])
	_ = out.Flush()
	s.step(BatchSent)
}

// Batches is how many batches were made so far.
func (s *Server) Batches() int {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	return len(s.jobs.batches)
}
