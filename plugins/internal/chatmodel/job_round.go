package chatmodel

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/sdk"
)

const (
	jobTries  = 5  // how many jobs a request may fail in
	maxRounds = 12 // how many jobs may follow each other, for any reason
)

// errLater is the error of a request whose reply will come later.
var errLater = errors.New("its answer comes with the batch that it is sent in")

// round is one execution of a stage's work: the part of the cache that it sees, the replies so far, and the requests
// without a reply.
type round struct {
	number int // number of jobs so far, one after the other
	// seen holds the keys of answers that were cached when the rows were first asked about. If known is true, the
	// work sees no other cached answers.
	known bool
	mu    sync.Mutex
	seen  map[short]bool

	replies map[string]*answered
	good    map[string]string // by answer: the ID of the latest successful reply
	lines   map[string]asked  // requests without a reply
	failed  string            // why jobs have no replies
	usage   sdk.Usage
}

func newRound() *round {
	return &round{seen: map[short]bool{}, replies: map[string]*answered{}, good: map[string]string{}, lines: map[string]asked{}}
}

// short is the beginning of a cache key, long enough to be unique.
type short [16]byte

// asked is a request in a round, answered a reply.
type asked struct {
	JobLine
	order  string // sorts requests with the same beginning next to each other
	tokens int
	most   sdk.Usage // zero: unknown
}

type answered struct {
	text    []byte
	status  int
	latest  bool // of the latest jobs
	counted bool // its usage was counted
}

var _ api.Courier = (*round)(nil)

// Forgets implements api.Courier.
func (r *round) Forgets(key sdk.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		r.seen[short(key[:])] = true
		return false
	}
	return !r.seen[short(key[:])]
}

// beginning is how much of two requests must be equal for them to be sorted next to each other.
const beginning = 4 << 10

// Deliver implements api.Courier.
func (r *round) Deliver(d api.Delivery, read func(int, []byte) (sdk.Usage, error)) error {
	reply := r.reply(d)
	if reply != nil {
		failed := sdk.Transient(fmt.Errorf("the service did not work on it: %s", reply.text), 0)
		if reply.status != 0 {
			var used sdk.Usage
			used, failed = read(reply.status, reply.text)
			r.count(reply, used)
		}
		switch {
		case sdk.CodeOf(failed) != sdk.CodeTransient:
			return failed
		case r.number >= jobTries:
			return sdk.Invalid(fmt.Errorf("%w; so it was in %d batches", failed, r.number))
		}
	}
	if reply == nil && r.failed != "" {
		return sdk.Invalid(errors.New(r.failed))
	}
	if r.number >= maxRounds {
		return sdk.Invalid(fmt.Errorf("it has no answer after %d batches", r.number))
	}
	order, id := sha256.Sum256(d.Body[:min(len(d.Body), beginning)]), idOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[id] = asked{JobLine{id, d.Path, d.Body}, string(order[:8]), d.Call.Tokens, d.Call.Most}
	return errLater
}

const (
	// answerBytes is the length of the part of a request's ID that names the answer.
	answerBytes = 16
	sentBytes   = 12
)

// idOf names a request by the answer that it asks for, and by its content.
func idOf(d api.Delivery) string {
	digest := func(size int, parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d %s", len(part), part)
		}
		return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:size*3/4])
	}
	answer := string(d.Answer[:])
	if d.Answer == (sdk.Key{}) {
		answer = string(d.Body)
	}
	return digest(answerBytes, answer) + digest(sentBytes, d.Path, string(d.Body))
}

// reply returns the reply to a request. The same answer may have been requested in another way when the batch was
// sent, since the model's profile has changed. Such a reply counts, unless the stage has read it and asks again.
func (r *round) reply(d api.Delivery) *answered {
	id := idOf(d)
	if reply := r.replies[id]; reply != nil || d.Again {
		return reply
	}
	return r.replies[r.good[id[:answerBytes]]]
}

// count adds the usage of a reply, once.
func (r *round) count(of *answered, used sdk.Usage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of.latest && !of.counted && used.Plausible() {
		of.counted = true
		r.usage.Add(used)
	}
}

// part holds the requests of one job.
type part struct {
	lines  []JobLine
	digest string
}

// wrapped is the most bytes that a service adds around a body.
const wrapped = 256

// parts divides the requests among jobs, always in the same way.
func (r *round) parts(most JobLimits) (all []part) {
	lines := slices.SortedFunc(maps.Values(r.lines), func(a, b asked) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.order, b.order), strings.Compare(a.ID, b.ID))
	})
	var bytes int64
	for i, line := range lines {
		size := int64(len(line.Body)) + wrapped
		if i == 0 || line.Path != lines[i-1].Path || len(all[len(all)-1].lines) == most.Requests || bytes+size > most.Bytes {
			all, bytes = append(all, part{}), 0
		}
		last := &all[len(all)-1]
		last.lines, bytes = append(last.lines, line.JobLine), bytes+size
	}
	for i, p := range all {
		ids := make([]string, len(p.lines))
		for k, line := range p.lines {
			ids[k] = line.ID
		}
		sum := sha256.Sum256([]byte(strings.Join(ids, " ")))
		all[i].digest = hex.EncodeToString(sum[:16])
	}
	return all
}

// call describes what all requests together may use.
func (r *round) call() (c sdk.Call) {
	bounded := true
	for _, line := range r.lines {
		c.Tokens += line.tokens
		c.Most.Add(line.most)
		bounded = bounded && line.most != sdk.Usage{}
	}
	if !bounded {
		c.Most = sdk.Usage{}
	}
	c.Batch = true
	return c
}
