package chatmodel

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// OpenAI is the Service of OpenAI's batch files: a file of requests is uploaded, a batch is made of
// it, and its replies are two files, of those that succeeded and those that did not.
type OpenAI struct{ Client *api.Client }

var _ JobService = OpenAI{}

const (
	window = "24h"
	// version is what the addresses of requests begin with in a file, whatever that of the
	// server's own address is.
	version = "/v1"
	// markName is the key of the mark in a batch's metadata.
	markName = "racflow"
	// maxLine is the size of the longest reply.
	maxLine = 64 << 20
	// lately asks for the batches among which a lost one is looked for, the newest first.
	lately = "?limit=100"
)

// Limits implements Service.
func (OpenAI) Limits() JobLimits { return JobLimits{Requests: 50_000, Bytes: 190 << 20} } // of 200 MB

// batch is one as the service describes it.
type batch struct {
	ID          string            `json:"id"`
	Status      string            `json:"status"`
	Metadata    map[string]string `json:"metadata"`
	OutputFile  string            `json:"output_file_id"`
	ErrorFile   string            `json:"error_file_id"`
	CreatedAt   int64             `json:"created_at"`
	ExpiresAt   int64             `json:"expires_at"`
	CompletedAt int64             `json:"completed_at"`
	Counts      struct {
		Total     int `json:"total"`
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"request_counts"`
	Errors *struct {
		Data []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"data"`
	} `json:"errors"`
}

func (b batch) job() Job {
	j := Job{ID: b.ID, Requests: b.Counts.Total, Done: b.Counts.Completed + b.Counts.Failed}
	if b.ExpiresAt > b.CreatedAt && b.CreatedAt > 0 {
		j.Within = time.Duration(b.ExpiresAt-b.CreatedAt) * time.Second
	}
	for _, file := range []string{b.OutputFile, b.ErrorFile} {
		if file != "" {
			j.Files = append(j.Files, file)
		}
	}
	switch b.Status {
	case "completed", "expired":
		j.Ended = true
	case "failed":
		j.Ended, j.Failed = true, "the service refused the batch "+b.ID
		if b.Errors != nil && len(b.Errors.Data) > 0 {
			j.Failed += ": " + cmp.Or(b.Errors.Data[0].Message, b.Errors.Data[0].Code)
		}
	case "cancelled":
		j.Ended, j.Failed = true, "the batch "+b.ID+" was cancelled"
	}
	return j
}

// Find implements Service.
func (o OpenAI) Find(ctx context.Context, mark string, _ int) (job Job, found bool, err error) {
	var newest struct {
		Data []batch `json:"data"`
	}
	if _, err := (api.Transfer{Client: o.Client, Method: http.MethodGet, Path: "/batches" + lately, Reply: &newest}).Do(ctx); err != nil {
		return Job{}, false, err
	}
	for _, b := range newest.Data {
		if b.Metadata[markName] == mark && b.Status != "failed" && b.Status != "cancelled" && b.Status != "cancelling" {
			return b.job(), true, nil
		}
	}
	return Job{}, false, nil
}

// Submit implements Service.
func (o OpenAI) Submit(ctx context.Context, mark string, requests []JobLine) (Job, error) {
	file, path, err := o.upload(ctx, requests)
	if err != nil {
		return Job{}, err
	}
	body, err := json.Marshal(map[string]any{
		"input_file_id": file, "endpoint": path, "completion_window": window, "metadata": map[string]string{markName: mark},
	})
	if err != nil {
		return Job{}, err
	}
	var b batch
	header, err := api.Transfer{Client: o.Client, Method: http.MethodPost, Path: "/batches", Body: bytes.NewReader(body), Reply: &b}.Do(ctx)
	if err == nil && b.ID == "" {
		err = sdk.Invalid(errors.New("the server made a batch and did not name it; check base_url"))
	}
	job := b.job()
	job.PollAfter = api.RetryAfter(header)
	return job, err
}

// request is a line of a file of requests.
type request struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

// upload uploads a file of requests and returns its name, and the address that all of them
// are for.
func (o OpenAI) upload(ctx context.Context, requests []JobLine) (name, path string, err error) {
	var form bytes.Buffer
	parts := multipart.NewWriter(&form)
	err = parts.WriteField("purpose", "batch")
	var content io.Writer
	if err == nil {
		content, err = parts.CreateFormFile("file", "racflow.jsonl")
	}
	if err != nil {
		return "", "", err
	}
	lines := json.NewEncoder(content)
	for _, line := range requests {
		path = version + line.Path
		if err := lines.Encode(request{line.ID, http.MethodPost, path, line.Body}); err != nil {
			return "", "", err
		}
	}
	if err := parts.Close(); err != nil {
		return "", "", err
	}
	var reply struct {
		ID string `json:"id"`
	}
	t := api.Transfer{
		Client: o.Client, Method: http.MethodPost, Path: "/files", Type: parts.FormDataContentType(), Body: &form, Size: int64(form.Len()), Reply: &reply,
	}
	if _, err = t.Do(ctx); err == nil && reply.ID == "" {
		err = sdk.Invalid(errors.New("the server took a file and did not name it; check base_url"))
	}
	return reply.ID, path, err
}

// Status implements Service.
func (o OpenAI) Status(ctx context.Context, id string) (Job, error) {
	var b batch
	header, err := api.Transfer{Client: o.Client, Method: http.MethodGet, Path: "/batches/" + url.PathEscape(id), Reply: &b}.Do(ctx)
	job := b.job()
	job.PollAfter = api.RetryAfter(header)
	return job, err
}

// Replies implements Service.
func (o OpenAI) Replies(ctx context.Context, job Job, each func(JobReply) error) error {
	for _, file := range job.Files {
		t := api.Transfer{Client: o.Client, Method: http.MethodGet, Path: "/files/" + url.PathEscape(file) + "/content", Read: func(r io.Reader) error {
			return readReplies(r, each)
		}}
		if _, err := t.Do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readReplies reads a file of replies. A line that is none is left out: its request has no reply.
func readReplies(r io.Reader, each func(JobReply) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line struct {
			ID       string `json:"custom_id"`
			Response *struct {
				Status int             `json:"status_code"`
				Body   json.RawMessage `json:"body"`
			} `json:"response"`
			Error *struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil || line.ID == "" {
			continue
		}
		reply := JobReply{ID: line.ID}
		switch {
		case line.Response != nil && line.Response.Status > 0:
			reply.Status, reply.Body = line.Response.Status, line.Response.Body
		case line.Error != nil:
			reply.Body = []byte(cmp.Or(line.Error.Message, line.Error.Code))
		}
		if err := each(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}
