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

	"github.com/tidwall/gjson"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// OpenAI is the JobService for OpenAI's batch files. It uploads a file of requests and creates a batch from it. The
// replies are two files: one of successes and one of failures.
type OpenAI struct{ Client *api.Client }

var _ JobService = OpenAI{}

const (
	window = "24h"
	// version begins the addresses of requests in a file, whatever the server's own address begins with.
	version = "/v1"
	// markName is the key of the mark in a batch's metadata.
	markName = "racflow"
	// maxLine is the greatest size of a reply.
	maxLine = 64 << 20
)

// Limits implements JobService.
func (OpenAI) Limits() JobLimits { return JobLimits{Requests: 50_000, Bytes: 190 << 20} } // of 200 MB

// openAIJob reads the description of a batch.
func openAIJob(b gjson.Result) Job {
	counts := b.Get("request_counts")
	j := Job{ID: b.Get("id").Str, Requests: int(counts.Get("total").Int()), Done: int(counts.Get("completed").Int() + counts.Get("failed").Int())}
	if made, ends := b.Get("created_at").Int(), b.Get("expires_at").Int(); ends > made && made > 0 {
		j.Within = time.Duration(ends-made) * time.Second
	}
	for _, file := range []string{b.Get("output_file_id").Str, b.Get("error_file_id").Str} {
		if file != "" {
			j.Files = append(j.Files, file)
		}
	}
	switch b.Get("status").Str {
	case "completed", "expired":
		j.Ended = true
	case "failed":
		j.Ended, j.Failed = true, "the service refused the batch "+j.ID
		if why := b.Get("errors.data.0"); why.Exists() {
			j.Failed += ": " + cmp.Or(why.Get("message").Str, why.Get("code").Str)
		}
	case "cancelled":
		j.Ended, j.Failed = true, "the batch "+j.ID+" was cancelled"
	}
	return j
}

// ask sends a request for a job, or to create one, and reads the description in the reply.
func ask(ctx context.Context, t api.Transfer, read func(gjson.Result) Job) (Job, error) {
	var description json.RawMessage
	t.Reply = &description
	header, err := t.Do(ctx)
	job := read(gjson.ParseBytes(description))
	if err == nil && job.ID == "" && t.Method == http.MethodPost {
		err = sdk.Invalid(errors.New("the server made a batch and did not name it; check base_url"))
	}
	job.PollAfter = api.RetryAfter(header)
	return job, err
}

// newest returns the descriptions of recent batches, the newest first, in order to find a lost one.
func newest(ctx context.Context, c *api.Client, path string) ([]gjson.Result, error) {
	var list json.RawMessage
	_, err := api.Transfer{Client: c, Method: http.MethodGet, Path: path + "?limit=100", Reply: &list}.Do(ctx)
	return gjson.GetBytes(list, "data").Array(), err
}

// readLines reads a file of replies, one per line. Lines without a reply are skipped.
func readLines(r io.Reader, read func(line gjson.Result) (JobReply, bool), each func(JobReply)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if !gjson.ValidBytes(lines.Bytes()) {
			continue
		}
		if reply, ok := read(gjson.ParseBytes(lines.Bytes())); ok {
			each(reply)
		}
	}
	return lines.Err()
}

// Find implements JobService.
func (o OpenAI) Find(ctx context.Context, mark string, _ int) (job Job, found bool, err error) {
	all, err := newest(ctx, o.Client, "/batches")
	for _, b := range all {
		status := b.Get("status").Str
		if b.Get("metadata."+markName).Str == mark && status != "failed" && status != "cancelled" && status != "cancelling" {
			return openAIJob(b), true, nil
		}
	}
	return Job{}, false, err
}

// Submit implements JobService.
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
	return ask(ctx, api.Transfer{Client: o.Client, Method: http.MethodPost, Path: "/batches", Body: bytes.NewReader(body)}, openAIJob)
}

// request is a line in a file of requests.
type request struct {
	ID     string          `json:"custom_id"`
	Method string          `json:"method"`
	URL    string          `json:"url"`
	Body   json.RawMessage `json:"body"`
}

// upload uploads a file of requests. It returns the file's name and the common address of the requests.
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

// Status implements JobService.
func (o OpenAI) Status(ctx context.Context, id string) (Job, error) {
	return ask(ctx, api.Transfer{Client: o.Client, Method: http.MethodGet, Path: "/batches/" + url.PathEscape(id)}, openAIJob)
}

// Replies implements JobService.
func (o OpenAI) Replies(ctx context.Context, job Job, each func(JobReply)) error {
	for _, file := range job.Files {
		t := api.Transfer{Client: o.Client, Method: http.MethodGet, Path: "/files/" + url.PathEscape(file) + "/content", Read: func(r io.Reader) error {
			return readLines(r, openAIReply, each)
		}}
		if _, err := t.Do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openAIReply reads a line in a file of replies.
func openAIReply(line gjson.Result) (JobReply, bool) {
	reply, response, failed := JobReply{ID: line.Get("custom_id").Str}, line.Get("response"), line.Get("error")
	if status := int(response.Get("status_code").Int()); status > 0 {
		reply.Status, reply.Body = status, []byte(response.Get("body").Raw)
	} else if failed.IsObject() {
		reply.Body = []byte(cmp.Or(failed.Get("message").Str, failed.Get("code").Str))
	}
	return reply, reply.ID != ""
}
