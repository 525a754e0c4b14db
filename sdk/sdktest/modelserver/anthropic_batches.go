package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
