package batchjob

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Service is where jobs are sent. Its methods may be called by several goroutines at once,
// and its errors are those of package api.
type Service interface {
	// Limits are those of one job.
	Limits() Limits
	// Find returns the job that an earlier Submit has sent with the same mark and that is at
	// work or has replies: by the mark itself, or, where the service keeps none, one with so many
	// requests that may be it. What it has no reply to is asked for again.
	Find(ctx context.Context, mark string, requests int) (job Job, found bool, err error)
	// Submit sends a job.
	Submit(ctx context.Context, mark string, requests Requests) (Job, error)
	// Status asks how far a job is.
	Status(ctx context.Context, id string) (Job, error)
	// Replies calls each with the replies of a job that has ended, in any order.
	Replies(ctx context.Context, job Job, each func(Reply) error) error
}

// Limits are the most that a job may hold.
type Limits struct {
	Requests int
	Bytes    int64 // of all requests, with what their bodies are wrapped in
}

// Line is one request of a job.
type Line struct {
	ID   string // at most 28 letters, digits, hyphens and underscores; one of its own in the job
	Path string // where a single call would go, below the base address
	Body json.RawMessage
}

// Requests are those of a job, which can be gone through several times.
type Requests struct {
	Count int
	Each  iter.Seq2[Line, error] // an error is the last
}

// Job is a job as its service describes it.
type Job struct {
	ID       string
	Ended    bool   // no more replies will come
	Failed   string // why there are no replies and no other try helps; empty: there are, or it does
	Requests int    // 0: unknown
	Done     int    // of them, whether answered or failed
	// Within is how long the job may take in all; 0: unknown.
	Within    time.Duration
	PollAfter time.Duration // when the service wants to be asked again; 0: it does not say
	Files     []string      // names of what holds the replies, where the service has such
}

// Reply is what became of one request.
type Reply struct {
	ID     string
	Status int    // as of a single call; 0: it was not worked on, and may be another time
	Body   []byte // as of a single call, JSON; of status 0 a reason in words
}
