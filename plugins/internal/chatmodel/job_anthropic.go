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

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
)

// Anthropic is the JobService for Anthropic's message batches
// (https://docs.anthropic.com/en/api/creating-message-batches). All requests are sent in one body, and the replies
// come as lines of JSON. A batch has no field for a mark, so the ids of its requests begin with the mark. Before a
// batch has ended, its owner is unknown.
type Anthropic struct{ Client *api.Client }

var _ JobService = Anthropic{}

const (
	batchesPath = "/messages/batches"
	// shownMark is how many characters at the end of a mark begin the ids of requests. An id may have 64 characters.
	shownMark = 32
)

// Limits implements JobService.
func (Anthropic) Limits() JobLimits { return JobLimits{Requests: 100_000, Bytes: 240 << 20} } // of 256 MB

// anthropicJob reads the description of a batch: in_progress, canceling or ended.
func anthropicJob(b gjson.Result) Job {
	counts := b.Get("request_counts")
	count := func(name string) int { return int(counts.Get(name).Int()) }
	j := Job{ID: b.Get("id").Str, Ended: b.Get("processing_status").Str == "ended"}
	j.Done = count("succeeded") + count("errored") + count("canceled") + count("expired")
	j.Requests = j.Done + count("processing")
	if made := b.Get("created_at").Time(); !made.IsZero() {
		j.Within = max(0, b.Get("expires_at").Time().Sub(made))
	}
	if j.Ended && count("canceled") > 0 {
		j.Failed = "the batch " + j.ID + " was cancelled"
	}
	return j
}

// Find implements JobService. A batch that has not ended may belong to another program.
func (a Anthropic) Find(ctx context.Context, mark string, requests int) (job Job, found bool, err error) {
	all, err := newest(ctx, a.Client, batchesPath)
	for _, b := range all {
		job := anthropicJob(b)
		if job.Requests != requests || b.Get("processing_status").Str == "canceling" || job.Failed != "" || int(b.Get("request_counts.expired").Int()) == requests {
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
	return Job{}, false, err
}

// bears reports whether the first reply of a job has the mark.
func (a Anthropic) bears(ctx context.Context, job Job, mark string) (ours bool, err error) {
	t := api.Transfer{Client: a.Client, Method: http.MethodGet, Path: resultsPath(job.ID), Read: func(r io.Reader) error {
		line, err := bufio.NewReader(io.LimitReader(r, maxLine)).ReadBytes('\n')
		ours = strings.HasPrefix(gjson.GetBytes(line, "custom_id").Str, shown(mark)+markEnd)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}}
	_, err = t.Do(ctx)
	if api.NotFound(err) { // its replies are no longer stored
		return false, nil
	}
	return ours, err
}

// markEnd ends a mark. Marks do not contain it.
const markEnd = "-"

func shown(mark string) string { return mark[max(0, len(mark)-shownMark):] }

func resultsPath(id string) string { return batchesPath + "/" + url.PathEscape(id) + "/results" }

// Submit implements JobService.
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
	t := api.Transfer{Client: a.Client, Method: http.MethodPost, Path: batchesPath, Body: bytes.NewReader(body), Size: int64(len(body))}
	return ask(ctx, t, anthropicJob)
}

// Status implements JobService.
func (a Anthropic) Status(ctx context.Context, id string) (Job, error) {
	return ask(ctx, api.Transfer{Client: a.Client, Method: http.MethodGet, Path: batchesPath + "/" + url.PathEscape(id)}, anthropicJob)
}

// Replies implements JobService.
func (a Anthropic) Replies(ctx context.Context, job Job, each func(JobReply)) error {
	t := api.Transfer{Client: a.Client, Method: http.MethodGet, Path: resultsPath(job.ID), Read: func(r io.Reader) error {
		return readLines(r, anthropicReply, each)
	}}
	_, err := t.Do(ctx)
	return err
}

// anthropicReply reads a line of results. Cancelled requests are skipped, so they count as requests without a reply.
func anthropicReply(line gjson.Result) (JobReply, bool) {
	_, id, _ := strings.Cut(line.Get("custom_id").Str, markEnd)
	reply, result := JobReply{ID: id}, line.Get("result")
	switch result.Get("type").Str {
	case "succeeded":
		reply.Status, reply.Body = http.StatusOK, []byte(result.Get("message").Raw)
	case "errored":
		failed := result.Get("error")
		reply.Status, reply.Body = cmp.Or(statuses[failed.Get("error.type").Str], http.StatusBadRequest), []byte(failed.Raw)
	case "expired":
		reply.Body = []byte("it expired")
	default:
		return reply, false
	}
	return reply, true
}

// statuses are the HTTP statuses that single calls have for these errors.
var statuses = map[string]int{
	"authentication_error": http.StatusUnauthorized, "billing_error": http.StatusPaymentRequired, "permission_error": http.StatusForbidden,
	"not_found_error": http.StatusNotFound, "request_too_large": http.StatusRequestEntityTooLarge, "rate_limit_error": http.StatusTooManyRequests,
	"api_error": http.StatusInternalServerError, "timeout_error": http.StatusGatewayTimeout, "overloaded_error": 529,
}
