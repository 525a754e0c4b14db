package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// patience bounds what a test waits for; it is never waited for in vain.
const patience = 5 * time.Minute

func connect(t *testing.T, url, name string, change ...func(*Options)) *Conn {
	t.Helper()
	o := Options{Servers: url, Name: name}
	for _, f := range change {
		f(&o)
	}
	c := must.Get(Connect(t.Context(), o))(t)
	t.Cleanup(c.Close)
	return c
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// single is a run at a server of its own.
func single(t *testing.T) (context.Context, *Run) {
	t.Helper()
	return bounded(t), create(t, connect(t, natstest.Start(t, 1).URL(), "x"), Config{ID: "a1"})
}

func create(t *testing.T, c *Conn, config Config) *Run {
	t.Helper()
	return must.Get(c.Create(bounded(t), config))(t)
}

// results reads n answers from a sequence on.
func results(t *testing.T, r *Run, after uint64, n int) []Result {
	t.Helper()
	var all []Result
	for result, err := range r.Results(bounded(t), after) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, result); len(all) == n {
			return all
		}
	}
	t.Fatalf("%d results in place of %d", len(all), n)
	return nil
}

func TestBatchesAndResults(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	caller, worker := connect(t, s.URL(), "caller"), connect(t, s.URL(), "worker")
	mine := create(t, caller, Config{ID: "a1", Definition: []byte("what it is")})
	theirs := must.Get(worker.Open(ctx, "a1"))(t)
	if string(theirs.Definition()) != "what it is" {
		t.Errorf("definition %q", theirs.Definition())
	}
	for seq := range 3 {
		must.Do(t, mine.Publish(ctx, Position{1, seq + 1}, fmt.Appendf(nil, "batch %d", seq+1)))
	}
	must.Do(t, mine.Publish(ctx, Position{1, 2}, []byte("again")))
	for seq := range 3 {
		b := must.Get(theirs.Take(ctx))(t)
		if want := fmt.Sprintf("batch %d", seq+1); b.Position != (Position{1, seq + 1}) || string(b.Data) != want || b.Deliveries != 1 {
			t.Errorf("taken: %v %q, delivery %d", b.Position, b.Data, b.Deliveries)
		}
		if first := must.Get(theirs.Answer(ctx, b.Position, fmt.Appendf(nil, "answer %d", seq+1)))(t); !first {
			t.Error("not the first answer")
		}
		if first := must.Get(theirs.Answer(ctx, b.Position, []byte("late")))(t); first {
			t.Error("a second first answer")
		}
		must.Do(t, b.Done(ctx))
	}
	all := results(t, mine, 0, 3)
	for i, result := range all {
		if want := fmt.Sprintf("answer %d", i+1); result.Position != (Position{1, i + 1}) || string(result.Data) != want || result.Worker != "worker" {
			t.Errorf("result %v %q of %s", result.Position, result.Data, result.Worker)
		}
	}
	if d := cmp.Diff(all[1:], results(t, mine, all[0].Sequence, 2)); d != "" {
		t.Error(d)
	}
	if n := must.Get(mine.Stored(ctx))(t); n != all[2].Sequence {
		t.Errorf("stored %d, last %d", n, all[2].Sequence)
	}
}

func TestReturnAndDrop(t *testing.T) {
	t.Parallel()
	ctx, r := single(t)
	publish := func(part int) {
		must.Do(t, r.Publish(ctx, Position{part, 1}, []byte("x")))
	}
	publish(1)
	b := must.Get(r.Take(ctx))(t)
	must.Do(t, b.Return())
	b = must.Get(r.Take(ctx))(t)
	if b.Position != (Position{1, 1}) || b.Deliveries != 2 {
		t.Errorf("taken %v, delivery %d", b.Position, b.Deliveries)
	}
	must.Do(t, b.Return())
	publish(2)
	must.Do(t, r.Drop(ctx))
	publish(3)
	if b = must.Get(r.Take(ctx))(t); b.Position != (Position{3, 1}) {
		t.Errorf("taken %v", b.Position)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	ctx, r := single(t)
	if value, revision, err := r.Get(ctx, "k"); value != nil || revision != 0 || err != nil {
		t.Error(value, revision, err)
	}
	first := must.Get(r.Swap(ctx, "k", []byte("1"), 0))(t)
	if _, err := r.Swap(ctx, "k", []byte("2"), 0); !errors.Is(err, ErrRevision) {
		t.Error(err)
	}
	second := must.Get(r.Swap(ctx, "k", []byte("2"), first))(t)
	if value, revision, err := r.Get(ctx, "k"); string(value) != "2" || revision != second || err != nil {
		t.Error(value, revision, err)
	}
	must.Do(t, r.Delete(ctx, "k"))
	if value, revision, err := r.Get(ctx, "k"); value != nil || revision != 0 || err != nil {
		t.Error(value, revision, err)
	}
	must.Get(r.Swap(ctx, "k", []byte("3"), 0))(t)
	must.Get(r.Put(ctx, "worker.a", []byte("a")))(t)
	must.Get(r.Put(ctx, "worker.b", []byte("b")))(t)
	must.Do(t, r.Delete(ctx, "worker.a"))
	all := must.Get(r.All(ctx, "worker."))(t)
	if len(all) != 1 || string(all["worker.b"].Value) != "b" || time.Since(all["worker.b"].At).Abs() > time.Hour {
		t.Error(all)
	}
	for _, key := range []string{"", "a b", "a..b", ".a", "a.*", ">"} {
		if _, err := r.Put(ctx, key, nil); err == nil {
			t.Errorf("key %q is taken", key)
		}
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	a, b := connect(t, s.URL(), "a"), connect(t, s.URL(), "b")
	mine := create(t, a, Config{ID: "a1"})
	theirs := must.Get(b.Open(ctx, "a1"))(t)
	if _, err := theirs.Ask(ctx, "q", nil); !errors.Is(err, ErrNobody) {
		t.Error(err)
	}
	stop := must.Get(mine.Serve("q", func(data []byte) []byte { return append([]byte("re: "), data...) }))(t)
	big := strings.Repeat("x", 3<<20)
	for _, question := range []string{"hello", big} {
		if answer := must.Get(theirs.Ask(ctx, "q", []byte(question)))(t); string(answer) != "re: "+question {
			t.Errorf("%d bytes", len(answer))
		}
	}
	stop()
	heard := make(chan string, 1)
	must.Get(mine.Hear("news", func(data []byte) { heard <- string(data) }))(t)
	must.Do(t, theirs.Tell("news", []byte("hi")))
	if got := <-heard; got != "hi" {
		t.Error(got)
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "x")
	if _, err := c.Open(ctx, "none"); !errors.Is(err, ErrNoRun) {
		t.Error(err)
	}
	ids := c.Watch(ctx)
	for _, id := range []string{"zz", "aa"} {
		create(t, c, Config{ID: id, Definition: bytes.Repeat([]byte(id), 1<<20)})
		if seen := <-ids; seen != id {
			t.Errorf("seen %s, not %s", seen, id)
		}
	}
	if _, err := c.Create(ctx, Config{ID: "aa"}); !errors.Is(err, ErrExists) {
		t.Error(err)
	}
	r := must.Get(c.Open(ctx, "aa"))(t)
	if len(r.Definition()) != 2<<20 {
		t.Errorf("%d bytes", len(r.Definition()))
	}
	if got := must.Get(c.Runs(ctx))(t); !slices.Equal(got, []string{"zz", "aa"}) {
		t.Error(got)
	}
	must.Do(t, r.Remove(ctx))
	if got := must.Get(c.Runs(ctx))(t); !slices.Equal(got, []string{"zz"}) {
		t.Error(got)
	}
	for name, f := range map[string]func() error{
		"take":    func() error { _, err := r.Take(ctx); return err },
		"publish": func() error { return r.Publish(ctx, Position{1, 1}, nil) },
		"answer":  func() error { _, err := r.Answer(ctx, Position{1, 1}, nil); return err },
		"state":   func() error { _, _, err := r.Get(ctx, "k"); return err },
		"open":    func() error { _, err := c.Open(ctx, "aa"); return err },
	} {
		if err := f(); !errors.Is(err, ErrNoRun) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "x")
	for _, data := range []string{"", "small", strings.Repeat("0123456789", 300_000)} {
		sum := sha256.Sum256([]byte(data))
		digest := hex.EncodeToString(sum[:])
		if err := c.GetFile(ctx, digest, new(bytes.Buffer)); !errors.Is(err, ErrNoFile) {
			t.Error(err)
		}
		if err := c.PutFile(ctx, digest, strings.NewReader(data+"!")); err == nil || must.Get(c.HasFile(ctx, digest))(t) {
			t.Error("a file with another digest is stored", err)
		}
		must.Do(t, c.PutFile(ctx, digest, strings.NewReader(data)))
		var got bytes.Buffer
		if err := c.GetFile(ctx, digest, &got); err != nil || got.String() != data {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
		files := must.Get(c.Files(ctx))(t)
		if len(files) != 1 || files[0].Digest != digest {
			t.Error(files)
		}
		if err := c.RemoveFile(ctx, digest); err != nil || must.Get(c.HasFile(ctx, digest))(t) {
			t.Error("not removed", err)
		}
	}
}

// forgetful servers say some times that a stream is not there.
type forgetful struct {
	jetstream.JetStream
	times int
}

func (f *forgetful) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if f.times > 0 {
		f.times--
		return nil, jetstream.ErrStreamNotFound
	}
	return f.JetStream.Stream(ctx, name)
}

func (f *forgetful) KeyValue(ctx context.Context, name string) (jetstream.KeyValue, error) {
	if f.times > 0 {
		f.times--
		return nil, jetstream.ErrBucketNotFound
	}
	return f.JetStream.KeyValue(ctx, name)
}

// Servers that have just started may not know a stream yet. A run and a file are not taken for gone because they say so a few times.
func TestNotKnownYet(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	maker := connect(t, s.URL(), "maker")
	create(t, maker, Config{ID: "a1"})
	create(t, maker, Config{ID: "a2"})
	must.Do(t, maker.PutFile(ctx, emptyDigest, strings.NewReader("")))
	for name, ask := range map[string]func(c *Conn) (there bool, err error){
		"open":   func(c *Conn) (bool, error) { r, err := c.Open(ctx, "a1"); return r != nil, err },
		"listed": func(c *Conn) (bool, error) { return c.Listed(ctx, "a1") },
		"runs":   func(c *Conn) (bool, error) { ids, err := c.Runs(ctx); return slices.Contains(ids, "a1"), err },
		"file":   func(c *Conn) (bool, error) { return c.HasFile(ctx, emptyDigest) },
		"remove": func(c *Conn) (bool, error) {
			err := (&Run{c: c, id: "a2"}).Remove(ctx)
			there, _ := maker.Listed(ctx, "a2")
			return !there, err
		},
	} {
		c := connect(t, s.URL(), "c")
		c.js = &forgetful{c.js, missingTimes - 1}
		if there, err := ask(c); !there || err != nil {
			t.Errorf("%s: %v, %v", name, there, err)
		}
	}
}

// busy servers store a batch whose sender hears nothing of it, and say of the same batch for a while that it is under way.
type busy struct {
	jetstream.JetStream
	answers []error
}

func (b *busy) PublishMsg(ctx context.Context, m *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if len(b.answers) == 0 {
		return b.JetStream.PublishMsg(ctx, m, options...)
	}
	err := b.answers[0]
	if b.answers = b.answers[1:]; errors.Is(err, context.DeadlineExceeded) {
		if _, lost := b.JetStream.PublishMsg(ctx, m, options...); lost != nil {
			return nil, lost
		}
	}
	return nil, err
}

// A batch that is sent again while a busy server still stores it is in the queue once.
func TestPublishUnderWay(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "c")
	r := create(t, c, Config{ID: "a1"})
	underWay := &jetstream.APIError{Code: 409, ErrorCode: 10158, Description: "duplicate message id is in process"}
	slow := &busy{c.js, []error{context.DeadlineExceeded, underWay, underWay}}
	c.js = slow
	if err := r.Publish(ctx, Position{Part: 1, Seq: 1}, []byte("rows")); err != nil || len(slow.answers) > 0 {
		t.Fatalf("%v, with %d answers left", err, len(slow.answers))
	}
	if info := must.Get(must.Get(s.JetStream(t).Stream(ctx, itemsStream("a1")))(t).Info(ctx))(t); info.State.Msgs != 1 {
		t.Errorf("%d messages are in the queue", info.State.Msgs)
	}
}
