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

// This file lets stages ask a language model many questions in one job of a service,
// whose answers come within hours and cost less: the stage is Pending meanwhile.
//
// A Service is where such jobs are sent: OpenAI is the one of OpenAI's batch files, which
// gateways have as well, and Anthropic that of its message batches. Jobs are a stage's use of one.
//
// A stage does nothing else than for single calls. Jobs.Do calls its work with a context
// whose requests it takes (api.Courier). At first none has a reply: the rows fail for that,
// and all requests that were made become one job. Once the job has ended the same work is
// done again, now with the replies, and reads, counts and caches them as those of single
// calls, under the same keys. A request that has no reply then becomes part of one more job:
// one that failed in a way that may pass, one that the service had no time for, or one that
// the stage makes because of a reply (fewer choices than it asked for, a field that the
// server refuses). What failed for good fails its rows alone.
//
// What was cached when the rows were first asked about is noted beside the answers, and the
// work sees nothing else of the cache when it is done again: so it makes the same requests
// however often it was interrupted while it read replies.
//
// A job bears a mark, a digest of its requests. A process that was killed after it had
// created a job and before anybody knew its handle finds it by that (Service.Find), and a
// file that was uploaded and never used is harmless. What a job may cost is reserved from
// before it is sent until its replies are read, and again by a process that comes later
// (sdk.Call.Batch).
//
// The package does not wait, and keeps no handle on the disk: package retry of the engine
// does both.

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

// handle names work that is under way: all jobs that were sent for it.
type handle struct {
	Jobs     []string  `json:"jobs,omitempty"`     // oldest first; none: nothing was sent yet
	Latest   int       `json:"latest,omitempty"`   // how many of them, at the end, are not known to have ended
	Round    int       `json:"round,omitempty"`    // of jobs one after the other
	Requests int       `json:"requests,omitempty"` // of the latest
	Mark     string    `json:"mark,omitempty"`     // digest of the first job: what was cached then is kept under it
	Cached   bool      `json:"cached,omitempty"`   // something was
	Since    time.Time `json:"since,omitzero"`     // when the latest were sent
	Digests  []string  `json:"digests,omitempty"`  // of the latest, as intents are called
	// What the latest take, to reserve it again.
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

// call is what the latest jobs take.
func (h handle) call() sdk.Call {
	return sdk.Call{Tokens: h.Tokens, Most: sdk.Usage{InputTokens: h.Input, OutputTokens: h.Output}, Batch: true}
}

// next is the handle once more jobs were sent.
func (h handle) next(ids, digests []string, requests int, c sdk.Call) handle {
	return handle{
		Jobs: append(h.Jobs[:len(h.Jobs):len(h.Jobs)], ids...), Latest: len(ids), Round: h.Round + 1, Requests: requests,
		Mark: h.Mark, Cached: h.Cached, Digests: digests, Since: time.Now().UTC().Truncate(time.Second),
		Tokens: c.Tokens, Input: c.Most.InputTokens, Output: c.Most.OutputTokens,
	}
}

// An intent says that a job is about to be sent, in a file by the digest of its requests. It
// holds the job's mark, which is the digest and a text of its own: the same requests may have
// been sent before, and were to be sent again. Where there is one before anything was sent,
// the process that wrote it was killed, or never heard whether the job was made.

// intend returns the mark of a job, and whether the job may have been sent already. Without a
// folder nobody can tell.
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

// forget forgets an intent: the handle of the job is kept, or what it said was read.
func (j *Jobs) forget(digest string) {
	if j.dir != "" && digest != "" {
		_ = os.Remove(filepath.Join(j.dir, digest)) // one that stays is one more look for a job
	}
}

// Jobs are those of one stage. Their methods may be called by several goroutines at once.
type Jobs struct {
	service JobService
	client  *api.Client
	host    sdk.Host
	dir     string   // of intents; empty: none
	held    sync.Map // reservations, func(sdk.Result), by handle
}

// NewJobs returns the jobs of a stage that asks by a client.
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

// DoJob does the work of a stage on some rows: work is what it would do for single calls, an
// error of single rows being sdk.RowErrors. handle is what an earlier *sdk.Pending for these rows, or more,
// named; empty: there was none. The error is *sdk.Pending where the results come later.
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
		// Another process may have read the replies, and was killed before that was noted.
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

// pass does the work once, and sends what has no reply.
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
	if code := sdk.CodeOf(failed); code == sdk.CodeInvalid || code == sdk.CodeUnavailable { // no better for fewer rows
		return instead(err, failed)
	}
	return either(later, failed)
}

// instead gives rows that wait for an answer another error.
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

// ended asks how far the latest jobs are. It returns all jobs, oldest first, once those have ended.
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

// add sums up how far jobs are.
func (j *Job) add(other Job) {
	j.Done, j.Within, j.PollAfter = j.Done+other.Done, max(j.Within, other.Within), max(j.PollAfter, other.PollAfter)
}

// pending says that the latest jobs are under way.
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

// span shows a time in whole hours, or minutes where it has none.
func span(d time.Duration) string {
	if d >= time.Hour {
		return fmt.Sprintf("%d h", (d+time.Hour-1)/time.Hour)
	}
	return fmt.Sprintf("%d min", (d+time.Minute-1)/time.Minute)
}

// bearing is how long the service may fail to say how a batch is, from when it was sent.
const bearing = 26 * time.Hour

// unreachable makes of an error of asking for a job one that does not lose the handle: the
// job is there and is paid for.
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

// read puts the replies of jobs into a round, those of the later ones in the place of those
// of earlier ones.
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

// send sends what has no reply, in as few jobs as the service takes.
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

// resultOf is that of a reservation whose job could not be sent.
func resultOf(err error) sdk.Result {
	if sdk.CodeOf(err) == sdk.CodeTransient {
		return sdk.Result{Status: sdk.StatusDown, Reason: err.Error()}
	}
	return sdk.Result{Status: sdk.StatusRefused}
}

// refused makes of the error of sending a job one that says that no other rows would do better.
func refused(ctx context.Context, err error) error {
	switch code := sdk.CodeOf(err); {
	case ctx.Err() != nil:
		return ctx.Err()
	case code == sdk.CodeTransient || code == sdk.CodeStopped || code == sdk.CodeUnavailable:
		return err
	}
	return stopped(fmt.Errorf("the batch could not be sent: %w; batch = true needs a service that takes batches of this model", err))
}

// reserve asks the Host for what a job may cost. It waits until calls that are under way leave room in the budget.
func (j *Jobs) reserve(ctx context.Context, call sdk.Call) (func(sdk.Result), error) {
	call.Endpoint = j.client.Address()
	return j.host.Acquire(ctx, call)
}

// hold reserves what the latest jobs of a handle take.
func (j *Jobs) hold(ctx context.Context, text string, call sdk.Call) error {
	release, err := j.reserve(ctx, call)
	if err != nil {
		return err
	}
	if _, another := j.held.LoadOrStore(text, release); another { // another call has done so meanwhile
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

// later makes of an error of a reservation one that says of a job that is under way that it is.
func (h handle) later(err error) error {
	if len(h.Jobs) > 0 && sdk.CodeOf(err) == sdk.CodeUnavailable { // the run is offline
		return &sdk.Error{Code: sdk.CodeUnavailable, Err: fmt.Errorf("its batch is under way: %w", err)}
	}
	return err
}

// cachedKey is where what was cached is kept.
func cachedKey(digest string) sdk.Key { return sdk.KeyOf("batchjob", "cached", digest) }

// keepCached keeps which answers were cached when the first job was made. Where that fails,
// what is cached later counts as well.
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

// cached returns which answers were cached when the first job was made; nil: nobody knows.
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

// JobService is where jobs are sent. Its methods may be called by several goroutines at once,
// and its errors are those of package api.
type JobService interface {
	// JobLimits are those of one job.
	Limits() JobLimits
	// Find returns the job that an earlier Submit has sent with the same mark and that is at
	// work or has replies: by the mark itself, or, where the service keeps none, one with so many
	// requests that may be it. What it has no reply to is asked for again.
	Find(ctx context.Context, mark string, requests int) (job Job, found bool, err error)
	// Submit sends a job.
	Submit(ctx context.Context, mark string, requests []JobLine) (Job, error)
	// Status asks how far a job is.
	Status(ctx context.Context, id string) (Job, error)
	// Replies calls each with the replies of a job that has ended, in any order.
	Replies(ctx context.Context, job Job, each func(JobReply)) error
}

// JobLimits are the most that a job may hold.
type JobLimits struct {
	Requests int
	Bytes    int64 // of all requests, with what their bodies are wrapped in
}

// JobLine is one request of a job.
type JobLine struct {
	ID   string // at most 28 letters, digits, hyphens and underscores; one of its own in the job
	Path string // where a single call would go, below the base address
	Body json.RawMessage
}

// JobReply is what became of one request.
type JobReply struct {
	ID     string
	Status int    // as of a single call; 0: it was not worked on, and may be another time
	Body   []byte // as of a single call, JSON; of status 0 a reason in words
}
