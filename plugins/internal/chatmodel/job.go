package chatmodel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

// This file lets stages send many questions to a language model in one job of a service. The answers come within
// hours and cost less. Meanwhile the stage is Pending.
//
// Jobs manages the jobs of one stage. A JobService is where they are sent: OpenAI for OpenAI's batch files, which
// gateways offer as well, and Anthropic for its message batches.
//
// A stage's code is the same as for single calls. Jobs.Do calls the stage's work with a context that hands its
// requests to a courier (api.Courier). At first no request has a reply: the rows fail with that error, and all
// requests become one job. After the job has ended, the same work is done again. Now it gets the replies, and reads,
// counts and caches them as in single calls, under the same keys. Requests without a reply then go into another job.
// Such requests failed temporarily, or the service had no time for them, or the stage made them because of a reply
// (fewer choices than requested, a refused field). A request that failed for good fails only its rows.
//
// The first time, the keys of cached answers are recorded. When the work is done again, it sees no other cached
// answers. So it makes the same requests even if it was interrupted while it read replies.
//
// A job has a mark, a digest of its requests. A process may be killed after it has created a job and before the job's
// handle is stored; the next process then finds the job by its mark (JobService.Find). An uploaded file that was never
// used does no harm. The possible cost of a job is reserved before it is sent, until its replies are read. A later
// process reserves it again (sdk.Call.Batch).
//
// The package does not wait, and does not store handles: the engine's package retry does both.

// Job describes a job, as reported by its service.
type Job struct {
	ID       string
	Ended    bool   // no more replies will come
	Failed   string // why there are no replies and another try is useless; empty: otherwise
	Requests int    // 0: unknown
	Done     int    // answered or failed requests
	// Within is how long the job may take in all; 0: unknown.
	Within    time.Duration
	PollAfter time.Duration // the wait that the service asks for; 0: none given
	Files     []string      // names of the files with replies, if the service has files
}

// handle describes pending work: all jobs that were sent for it.
type handle struct {
	Jobs     []string  `json:"jobs,omitempty"`     // oldest first; none: nothing was sent yet
	Latest   int       `json:"latest,omitempty"`   // how many jobs, from the end, may still be running
	Round    int       `json:"round,omitempty"`    // number of jobs so far, one after the other
	Requests int       `json:"requests,omitempty"` // of the latest
	Mark     string    `json:"mark,omitempty"`     // digest of the first job; the keys that were cached then are stored under it
	Cached   bool      `json:"cached,omitempty"`   // some keys were cached
	Since    time.Time `json:"since,omitzero"`     // when the latest were sent
	Digests  []string  `json:"digests,omitempty"`  // of the latest jobs; intents have these names
	// What the latest jobs may use, to reserve it again.
	Tokens int    `json:"tokens,omitempty"`
	Input  uint64 `json:"input,omitempty"`
	Output uint64 `json:"output,omitempty"`
}

func (h handle) String() string {
	text, _ := json.Marshal(h) // texts, numbers and a time of this century
	return string(text)
}

func readHandle(text string) (h handle, err error) {
	if text == "" {
		return h, nil
	}
	if err = json.Unmarshal([]byte(text), &h); err == nil && (h.Latest < 0 || h.Latest > len(h.Jobs)) {
		err = errors.New("it names jobs that it does not have")
	}
	return h, err
}

// call describes what the latest jobs may use.
func (h handle) call() sdk.Call {
	return sdk.Call{Tokens: h.Tokens, Most: sdk.Usage{InputTokens: h.Input, OutputTokens: h.Output}, Batch: true}
}

// next returns the handle after more jobs were sent.
func (h handle) next(ids, digests []string, requests int, c sdk.Call) handle {
	return handle{
		Jobs: append(h.Jobs[:len(h.Jobs):len(h.Jobs)], ids...), Latest: len(ids), Round: h.Round + 1, Requests: requests,
		Mark: h.Mark, Cached: h.Cached, Digests: digests, Since: time.Now().UTC().Truncate(time.Second),
		Tokens: c.Tokens, Input: c.Most.InputTokens, Output: c.Most.OutputTokens,
	}
}

// An intent records that a job is about to be sent, in a file named by the digest of its requests. It holds the job's
// mark: the digest and a random text, since the same requests may have been sent before. If an intent exists before a
// job is sent, an earlier process was killed, or never learned whether the job was created.

// intend returns the mark of a job, and whether the job may have been sent already. Without a folder this is unknown.
func (j *Jobs) intend(digest string) (mark string, before bool, err error) {
	mark = digest + rand.Text()[:10]
	if j.dir == "" {
		return mark, false, nil
	}
	file := filepath.Join(j.dir, digest)
	if old, err := os.ReadFile(file); err == nil && len(old) == len(mark) {
		return string(old), true, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return "", false, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", false, err
	}
	_, err = f.WriteString(mark)
	if err == nil {
		err = f.Sync()
	}
	return mark, false, errors.Join(err, f.Close())
}

// forget removes an intent, once the job's handle is stored or its replies were read.
func (j *Jobs) forget(digest string) {
	if j.dir != "" && digest != "" {
		_ = os.Remove(filepath.Join(j.dir, digest)) // a leftover only causes one more search for a job
	}
}

// Jobs manages the jobs of one stage. Its methods may be called by several goroutines.
type Jobs struct {
	service JobService
	client  *api.Client
	host    sdk.Host
	dir     string   // folder of intents; empty: none
	held    sync.Map // reservations, func(sdk.Result), by handle
}

// NewJobs returns the jobs of a stage that uses the client.
func NewJobs(service JobService, client *api.Client, setup sdk.Setup) *Jobs {
	j := &Jobs{service: service, client: client, host: setup.Host}
	if j.host == nil {
		j.host = sdk.Alone()
	}
	if setup.StateDir != "" {
		j.dir = filepath.Join(setup.StateDir, "batches")
	}
	return j
}

// DoJob does the work of a stage on some rows. work is the code for single calls; it reports errors of single rows as
// sdk.RowErrors. handle comes from an earlier *sdk.Pending for these rows, or for more; empty: there was none. The
// error is *sdk.Pending if the results come later.
func DoJob[R any](ctx context.Context, j *Jobs, handle string, work func(context.Context) (R, error)) (results R, err error) {
	err = j.do(ctx, handle, func(ctx context.Context) (err error) {
		results, err = work(ctx)
		return err
	})
	return results, err
}

func (j *Jobs) do(ctx context.Context, text string, work func(context.Context) error) error {
	h, err := readHandle(text)
	if err != nil {
		return sdk.Invalid(fmt.Errorf("a handle that is none of a batch: %w", err))
	}
	if len(h.Jobs) == 0 {
		return j.pass(ctx, newRound(), h, work)
	}
	for _, digest := range h.Digests {
		j.forget(digest)
	}
	if _, held := j.held.Load(text); !held {
		// Another process may have read the replies, and was killed before it recorded this.
		r := newRound()
		if err := work(api.Through(ctx, r)); len(r.lines) == 0 {
			return err
		}
		if err := j.hold(ctx, text, h.call()); err != nil {
			return h.later(err)
		}
	}
	jobs, later, err := j.ended(ctx, h)
	if later != nil || err != nil {
		return either(later, err)
	}
	r := newRound()
	r.number = h.Round
	if err := j.read(ctx, r, h, jobs); err != nil {
		return j.unreachable(ctx, h, err)
	}
	return j.pass(ctx, r, h, work)
}

// pass does the work once, and sends the requests that have no reply.
func (j *Jobs) pass(ctx context.Context, r *round, h handle, work func(context.Context) error) error {
	err := work(api.Through(ctx, r))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if rows := (sdk.RowErrors{}); err != nil && !errors.As(err, &rows) {
		return err
	}
	j.release(h, sdk.Result{Status: sdk.StatusOK, Usage: r.usage})
	if len(r.lines) == 0 {
		return err
	}
	later, failed := j.send(ctx, r, h)
	if code := sdk.CodeOf(failed); code == sdk.CodeInvalid || code == sdk.CodeUnavailable { // fewer rows would not help
		return instead(err, failed)
	}
	return either(later, failed)
}

// instead replaces the error of rows that wait for an answer.
func instead(err, by error) error {
	var rows sdk.RowErrors
	if !errors.As(err, &rows) {
		return by
	}
	for row := range rows {
		if errors.Is(rows[row], errLater) {
			rows[row] = by
		}
	}
	return rows
}

func either(later *sdk.Pending, err error) error {
	if err != nil {
		return err
	}
	return later
}

// ended asks for the state of the latest jobs. Once all have ended, it returns all jobs, oldest first.
func (j *Jobs) ended(ctx context.Context, h handle) ([]Job, *sdk.Pending, error) {
	jobs := make([]Job, len(h.Jobs))
	var sum Job
	waits := false
	for i := len(jobs) - 1; i >= 0; i-- {
		if i == len(jobs)-h.Latest-1 && waits {
			break
		}
		job, err := j.service.Status(ctx, h.Jobs[i])
		switch {
		case api.NotFound(err):
			return nil, nil, sdk.Invalid(fmt.Errorf("the service does not know the batch %s any more: %w; the next run asks anew", h.Jobs[i], err))
		case err != nil:
			return nil, nil, j.unreachable(ctx, h, err)
		}
		jobs[i], waits = job, waits || !job.Ended
		sum.add(job)
	}
	if waits {
		return nil, j.pending(h, sum), nil
	}
	return jobs, nil, nil
}

// add adds the progress of another job.
func (j *Job) add(other Job) {
	j.Done, j.Within, j.PollAfter = j.Done+other.Done, max(j.Within, other.Within), max(j.PollAfter, other.PollAfter)
}

// pending reports that the latest jobs are running.
func (j *Jobs) pending(h handle, sum Job) *sdk.Pending {
	what := "batch of"
	if h.Latest > 1 {
		what = fmt.Sprintf("%d batches of", h.Latest)
	}
	note := fmt.Sprintf("%s %d requests, %d done", what, h.Requests, sum.Done)
	if h.Requests == 1 {
		note = fmt.Sprintf("%s 1 request, %d done", what, sum.Done)
	}
	if sum.Within > 0 {
		note += fmt.Sprintf(", at most %s", span(sum.Within))
	}
	return &sdk.Pending{Handle: h.String(), PollAfter: sum.PollAfter, Note: note}
}

// span formats a time in whole hours, or in minutes if it is shorter than an hour.
func span(d time.Duration) string {
	if d >= time.Hour {
		return fmt.Sprintf("%d h", (d+time.Hour-1)/time.Hour)
	}
	return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
}

// bearing is how long after sending a batch the service may fail to report its state.
const bearing = 26 * time.Hour

// unreachable converts an error in asking for a job, so that the handle is not lost: the job exists and is paid for.
func (j *Jobs) unreachable(ctx context.Context, h handle, err error) error {
	coded := new(sdk.Error)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &coded) && coded.Code == sdk.CodeTransient && time.Since(h.Since) < bearing:
		return &sdk.Pending{Handle: h.String(), PollAfter: coded.RetryAfter, Note: "the service does not say how far the batch is: " + err.Error()}
	}
	return stopped(fmt.Errorf("the batch is under way and its answers cannot be fetched: %w; --resume fetches them", err))
}

func stopped(err error) error { return &sdk.Error{Code: sdk.CodeStopped, Err: err} }

// read puts the replies of jobs into a round. Later replies replace earlier ones.
func (j *Jobs) read(ctx context.Context, r *round, h handle, jobs []Job) error {
	seen, err := j.cached(ctx, h)
	if err != nil {
		return err
	}
	if seen != nil {
		r.seen, r.known = seen, true
	}
	for i, job := range jobs {
		latest := i >= len(jobs)-h.Latest
		if latest && job.Failed != "" {
			r.failed = job.Failed
		}
		err := j.service.Replies(ctx, job, func(reply JobReply) {
			if reply.Status >= 200 && reply.Status < 300 && len(reply.ID) > answerBytes {
				r.good[reply.ID[:answerBytes]] = reply.ID
			}
			r.replies[reply.ID] = &answered{text: reply.Body, status: reply.Status, latest: latest}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends the requests without a reply, in as few jobs as the service allows.
func (j *Jobs) send(ctx context.Context, r *round, h handle) (*sdk.Pending, error) {
	call := r.call()
	release, err := j.reserve(ctx, call)
	if err != nil {
		return nil, h.later(err)
	}
	var ids, digests []string
	var sum Job
	parts := r.parts(j.service.Limits())
	if h.Round == 0 {
		if h.Mark, h.Cached, err = parts[0].digest, len(r.seen) > 0, j.keepCached(ctx, parts[0].digest, r.seen); err != nil {
			release(sdk.Result{Status: sdk.StatusRefused})
			return nil, err
		}
	}
	for _, p := range parts {
		job, err := j.sendPart(ctx, p)
		if err != nil {
			release(resultOf(err))
			return nil, refused(ctx, err)
		}
		ids, digests = append(ids, job.ID), append(digests, p.digest)
		sum.add(job)
	}
	h = h.next(ids, digests, len(r.lines), call)
	j.held.Store(h.String(), release)
	return j.pending(h, sum), nil
}

func (j *Jobs) sendPart(ctx context.Context, p part) (Job, error) {
	mark, before, err := j.intend(p.digest)
	if err != nil {
		return Job{}, fmt.Errorf("note that a batch is sent: %w", err)
	}
	if before {
		if job, found, err := j.service.Find(ctx, mark, len(p.lines)); found || err != nil {
			return job, err
		}
	}
	return j.service.Submit(ctx, mark, p.lines)
}

// resultOf is the result of a reservation whose job could not be sent.
func resultOf(err error) sdk.Result {
	if sdk.CodeOf(err) == sdk.CodeTransient {
		return sdk.Result{Status: sdk.StatusDown, Reason: err.Error()}
	}
	return sdk.Result{Status: sdk.StatusRefused}
}

// refused converts an error in sending a job into one that says that other rows would fail, too.
func refused(ctx context.Context, err error) error {
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == sdk.CodeTransient || code == sdk.CodeStopped || code == sdk.CodeUnavailable:
		return err
	}
	return stopped(fmt.Errorf("the batch could not be sent: %w; batch = true needs a service that takes batches of this model", err))
}

// reserve asks the Host for the possible cost of a job. It waits until running calls leave room in the budget.
func (j *Jobs) reserve(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	call.Endpoint = j.client.Address()
	return j.host.Acquire(ctx, call)
}

// hold reserves what the latest jobs of a handle may use.
func (j *Jobs) hold(ctx context.Context, text string, call sdk.Call) error {
	release, err := j.reserve(ctx, call)
	if err != nil {
		return err
	}
	if _, another := j.held.LoadOrStore(text, release); another { // another call has reserved it meanwhile
		release(sdk.Result{Status: sdk.StatusRefused})
	}
	return nil
}

// release ends the reservation of a handle.
func (j *Jobs) release(h handle, result sdk.Result) {
	if release, ok := j.held.LoadAndDelete(h.String()); ok {
		release.(func(sdk.Result))(result)
	}
}

// later adds to an error of a reservation that the job is running, if it is.
func (h handle) later(err error) error {
	if len(h.Jobs) > 0 && sdk.CodeOf(err) == sdk.CodeUnavailable { // the run is offline
		return &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("its batch is under way: %w", err)}
	}
	return err
}

// cachedKey is the key under which keepCached stores its keys.
func cachedKey(digest string) sdk.Key { return sdk.KeyOf("batchjob", "cached", digest) }

// keepCached stores which answers were cached when the first job was made. If that is not possible, answers that are
// cached later count as well.
func (j *Jobs) keepCached(ctx context.Context, digest string, seen map[short]bool) error {
	if len(seen) == 0 {
		return nil
	}
	value := make([]byte, 0, len(seen)*len(short{}))
	for key := range seen {
		value = append(value, key[:]...)
	}
	if len(value) > sdk.MaxCached {
		return nil
	}
	return j.host.CachePut(ctx, cachedKey(digest), value)
}

// cached returns which answers were cached when the first job was made; nil: unknown.
func (j *Jobs) cached(ctx context.Context, h handle) (map[short]bool, error) {
	seen := map[short]bool{}
	if !h.Cached {
		return seen, nil
	}
	found, err := j.host.CacheGet(ctx, []sdk.Key{cachedKey(h.Mark)})
	if err != nil || found[0] == nil {
		return nil, err
	}
	for key := found[0]; len(key) >= len(short{}); key = key[len(short{}):] {
		seen[short(key)] = true
	}
	return seen, nil
}

// JobService is a service that takes jobs. Its methods may be called by several goroutines at once. Its errors are
// errors of package api.
type JobService interface {
	// Limits returns the limits of one job.
	Limits() JobLimits
	// Find returns a job that an earlier Submit sent with the same mark, and that is running or has replies. If the
	// service does not store marks, Find returns a job with that many requests that may be the right one. Requests
	// without a reply there are sent again.
	Find(ctx context.Context, mark string, requests int) (job Job, found bool, err error)
	// Submit sends a job.
	Submit(ctx context.Context, mark string, requests []JobLine) (Job, error)
	// Status returns the state of a job.
	Status(ctx context.Context, id string) (Job, error)
	// Replies calls each with every reply of a job that has ended, in any order.
	Replies(ctx context.Context, job Job, each func(JobReply)) error
}

// JobLimits are upper bounds for one job.
type JobLimits struct {
	Requests int
	Bytes    int64 // of all requests, including what wraps their bodies
}

// JobLine is a request of a job.
type JobLine struct {
	ID   string // at most 28 letters, digits, hyphens and underscores; unique in the job
	Path string // of a single call, below the base address
	Body json.RawMessage
}

// JobReply is the result of one request.
type JobReply struct {
	ID     string
	Status int    // as of a single call; 0: the service did not process it, and may do so later
	Body   []byte // as of a single call, JSON; with status 0, a reason in words
}
