package chatmodel

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// Anthropic is the Service of Anthropic's message batches
// (https://docs.anthropic.com/en/api/creating-message-batches): all requests are sent in one body, and the
// replies are had as lines of JSON. A batch there has no place for a mark, so the ids of its requests begin with
// it: nobody can tell whose a batch is before it has ended.
type Anthropic struct{ Client *api.Client }

var _ JobService = Anthropic{}

const (
	batchesPath = "/messages/batches"
	// shownMark is how much of a mark, at its end, the ids of requests begin with: they may have 64 characters.
	shownMark = 32
)

// Limits implements Service.
func (Anthropic) Limits() JobLimits { return JobLimits{Requests: 100_000, Bytes: 240 << 20} } // of 256 MB

// messageBatch is one as the service describes it.
type messageBatch struct {
	ID        string    `json:"id"`
	Status    string    `json:"processing_status"` // in_progress, canceling, ended
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Counts    struct {
		Processing int `json:"processing"`
		Succeeded  int `json:"succeeded"`
		Errored    int `json:"errored"`
		Canceled   int `json:"canceled"`
		Expired    int `json:"expired"`
	} `json:"request_counts"`
}

func (b messageBatch) job() Job {
	c := b.Counts
	j := Job{ID: b.ID, Ended: b.Status == "ended", Done: c.Succeeded + c.Errored + c.Canceled + c.Expired}
	j.Requests = j.Done + c.Processing
	if b.ExpiresAt.After(b.CreatedAt) && !b.CreatedAt.IsZero() {
		j.Within = b.ExpiresAt.Sub(b.CreatedAt)
	}
	if j.Ended && c.Canceled > 0 {
		j.Failed = "the batch " + b.ID + " was cancelled"
	}
	return j
}

// Find implements Service. A batch that has not ended may belong to another program.
func (a Anthropic) Find(ctx context.Context, mark string, requests int) (job Job, found bool, err error) {
	var newest struct {
		Data []messageBatch `json:"data"`
	}
	if _, err := (api.Transfer{Client: a.Client, Method: http.MethodGet, Path: batchesPath + lately, Reply: &newest}).Do(ctx); err != nil {
		return Job{}, false, err
	}
	for _, b := range newest.Data {
		job := b.job()
		if job.Requests != requests || b.Status == "canceling" || job.Failed != "" || b.Counts.Expired == requests {
			continue
		}
		ours := !job.Ended
		if job.Ended {
			if ours, err = a.bears(ctx, job, mark); err != nil {
				return Job{}, false, err
			}
		}
		if ours {
			return job, true, nil
		}
	}
	return Job{}, false, nil
}

// bears reports whether the first reply of a job bears a mark.
func (a Anthropic) bears(ctx context.Context, job Job, mark string) (ours bool, err error) {
	t := api.Transfer{Client: a.Client, Method: http.MethodGet, Path: resultsPath(job.ID), Read: func(r io.Reader) error {
		line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadBytes('\n')
		var first struct {
			ID string `json:"custom_id"`
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = nil
			_ = json.Unmarshal(line, &first) // another form bears nothing
		}
		ours = strings.HasPrefix(first.ID, shown(mark)+markEnd)
		return err
	}}
	_, err = t.Do(ctx)
	if api.NotFound(err) { // its replies are no longer kept
		return false, nil
	}
	return ours, err
}

// markEnd ends a mark, which holds no such character.
const markEnd = "-"

func shown(mark string) string { return mark[max(0, len(mark)-shownMark):] }

func resultsPath(id string) string { return batchesPath + "/" + url.PathEscape(id) + "/results" }

// Submit implements Service.
func (a Anthropic) Submit(ctx context.Context, mark string, requests []JobLine) (Job, error) {
	type message struct {
		ID     string          `json:"custom_id"`
		Params json.RawMessage `json:"params"`
	}
	all := make([]message, len(requests))
	for i, line := range requests {
		all[i] = message{shown(mark) + markEnd + line.ID, line.Body}
	}
	body, err := json.Marshal(map[string]any{"requests": all})
	if err != nil {
		return Job{}, err
	}
	var b messageBatch
	header, err := api.Transfer{Client: a.Client, Method: http.MethodPost, Path: batchesPath, Body: bytes.NewReader(body), Size: int64(len(body)), Reply: &b}.Do(ctx)
	if err == nil && b.ID == "" {
		err = sdk.Invalid(errors.New("the server made a batch and did not name it; check base_url"))
	}
	job := b.job()
	job.PollAfter = api.RetryAfter(header)
	return job, err
}

// Status implements Service.
func (a Anthropic) Status(ctx context.Context, id string) (Job, error) {
	var b messageBatch
	header, err := api.Transfer{Client: a.Client, Method: http.MethodGet, Path: batchesPath + "/" + url.PathEscape(id), Reply: &b}.Do(ctx)
	job := b.job()
	job.PollAfter = api.RetryAfter(header)
	return job, err
}

// Replies implements Service.
func (a Anthropic) Replies(ctx context.Context, job Job, each func(JobReply) error) error {
	t := api.Transfer{Client: a.Client, Method: http.MethodGet, Path: resultsPath(job.ID), Read: func(r io.Reader) error {
		return readResults(r, each)
	}}
	_, err := t.Do(ctx)
	return err
}

// readResults reads lines of results. One that is none is left out, and so is one that was cancelled:
// its request has no reply.
func readResults(r io.Reader, each func(JobReply) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line struct {
			ID     string `json:"custom_id"`
			Result struct {
				Type    string          `json:"type"`
				Message json.RawMessage `json:"message"`
				Error   json.RawMessage `json:"error"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		_, id, _ := strings.Cut(line.ID, markEnd)
		reply := JobReply{ID: id}
		switch line.Result.Type {
		case "succeeded":
			reply.Status, reply.Body = http.StatusOK, line.Result.Message
		case "errored":
			reply.Status, reply.Body = statusOf(line.Result.Error), line.Result.Error
		case "expired":
			reply.Body = []byte("it expired")
		default:
			continue
		}
		if err := each(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

// statuses are those that errors come with, as of single calls.
var statuses = map[string]int{
	"authentication_error": http.StatusUnauthorized, "billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden,
	"not_found_error": http.StatusNotFound, "request_too_large": http.StatusRequestEntityTooLarge, "rate_limit_error": http.StatusTooManyRequests,
	"api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout, "overloaded_error": 529,
}

// statusOf is the status of an error: {"type": "error", "error": {"type": ...}}.
func statusOf(reply json.RawMessage) int {
	var r struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	_ = json.Unmarshal(reply, &r) // another form: an error of the request
	return cmp.Or(statuses[r.Error.Type], http.StatusBadRequest)
}
