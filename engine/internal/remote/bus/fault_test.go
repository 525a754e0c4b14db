package bus

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// watchWaiting collects what Options.Waiting is told.
type watchWaiting struct{ told chan error }

func newWaiting() *watchWaiting { return &watchWaiting{make(chan error, 1000)} }

func (w *watchWaiting) option(o *Options) { o.Waiting = func(why error) { w.told <- why } }

// next waits for the beginning of waiting, or its end.
func (w *watchWaiting) next(t *testing.T, begins bool) error {
	t.Helper()
	for {
		select {
		case why := <-w.told:
			if (why != nil) == begins {
				return why
			}
		case <-time.After(patience):
			t.Fatalf("nothing is told: begins %v", begins)
		}
	}
}

// A network that swallows everything is noticed; what was asked meanwhile is done afterwards, once.
func TestHangingConnection(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	proxy := s.Proxy(0)
	waiting := newWaiting()
	direct, behind := connect(t, s.URL(), "direct"), connect(t, proxy.URL(), "behind", waiting.option)
	theirs := create(t, direct, Config{ID: "a1"})
	mine := must.Get(behind.Open(ctx, "a1"))(t)
	ids := behind.Watch(ctx)
	<-ids
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	must.Do(t, direct.PutFile(ctx, digest, bytes.NewReader(data)))
	proxy.Freeze()
	done := make(chan error, 3)
	go func() { done <- mine.Publish(ctx, Position{1, 1}, nil) }()
	go func() { _, err := mine.Answer(ctx, Position{1, 2}, nil); done <- err }()
	var got bytes.Buffer
	go func() { done <- behind.GetFile(ctx, digest, &got) }()
	create(t, direct, Config{ID: "a2"})
	if why := waiting.next(t, true); why == nil {
		t.Error("no reason")
	}
	proxy.Heal()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	waiting.next(t, false)
	if id := <-ids; id != "a2" {
		t.Error(id)
	}
	if !bytes.Equal(got.Bytes(), data) {
		t.Errorf("%d bytes", got.Len())
	}
	if n := len(results(t, theirs, 0, 1)); n != 1 {
		t.Error(n)
	}
}

// A batch goes to another when the claim of its worker ends, which is when it stops telling that it lives; the late answer of the first
// is dropped.
func TestClaims(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	proxy := s.Proxy(0)
	caller, sleeper, other := connect(t, s.URL(), "caller"), connect(t, proxy.URL(), "sleeper"), connect(t, s.URL(), "other")
	mine := create(t, caller, Config{ID: "a1", Claim: 2 * time.Second})
	must.Do(t, mine.Publish(ctx, Position{1, 1}, []byte("x")))
	first := must.Get(must.Get(sleeper.Open(ctx, "a1"))(t).Take(ctx))(t)
	theirs := must.Get(other.Open(ctx, "a1"))(t)
	taken := make(chan *Batch, 1)
	go func() {
		b, _ := theirs.Take(ctx)
		taken <- b
	}()
	// The claim lasts while the first one lives: there are six signs of life in its time.
	signs := make(chan []byte, 100)
	tap := must.Get(caller.nc.Subscribe("$JS.ACK.>", func(m *nats.Msg) { signs <- m.Data }))(t)
	for n := 0; n < extensions+2; {
		if string(<-signs) == "+WPI" {
			n++
		}
	}
	tap.Unsubscribe()
	if info := must.Get(must.Get(s.JetStream(t).Consumer(ctx, itemsStream("a1"), consumer))(t).Info(ctx))(t); info.NumRedelivered != 0 {
		t.Error("a claim that is extended ended")
	}
	select {
	case <-first.Lost():
		t.Error("a claim that is extended is lost")
	default:
	}
	proxy.Freeze() // as SIGSTOP does
	second := <-taken
	if second == nil || second.Position != first.Position || second.Deliveries < 2 {
		t.Fatal(second)
	}
	select {
	case <-first.Lost():
	case <-ctx.Done():
		t.Error("a claim has ended, and who had it does not know")
	}
	if ok := must.Get(theirs.Answer(ctx, second.Position, []byte("second")))(t); !ok {
		t.Error("not the first answer")
	}
	must.Do(t, second.Done(ctx))
	proxy.Heal()
	if ok := must.Get(first.r.Answer(ctx, first.Position, []byte("first")))(t); ok {
		t.Error("a late answer counts")
	}
	if err := first.Done(ctx); err != nil {
		t.Error(err)
	}
	if all := results(t, mine, 0, 1); string(all[0].Data) != "second" {
		t.Errorf("%s", all[0].Data)
	}
	must.Do(t, mine.Publish(ctx, Position{1, 2}, nil))
	if b := must.Get(first.r.Take(ctx))(t); b.Seq != 2 {
		t.Error(b.Position)
	}
}

// A batch whose answer is stored is not worked at again.
func TestAnsweredIsNotTakenAgain(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "c")
	r := create(t, c, Config{ID: "a1", Claim: 200 * time.Millisecond})
	signs := make(chan string, 100)
	must.Get(c.nc.Subscribe("$JS.ACK.>", func(m *nats.Msg) { signs <- string(m.Data) }))(t)
	for seq := range 2 {
		must.Do(t, r.Publish(ctx, Position{1, seq + 1}, nil))
	}
	b := must.Get(r.Take(ctx))(t)
	must.Get(r.Answer(ctx, b.Position, nil))(t)
	b.stop() // the process dies before it says that the batch is done
	if b = must.Get(r.Take(ctx))(t); b.Seq != 2 {
		t.Errorf("taken %v", b.Position)
	}
	// The first one's claim ends while the second's is extended; on a slow machine the second's may end, too.
	taken := make(chan *Batch, 1)
	go func() {
		b, err := r.Take(ctx)
		for err == nil && b.Seq == 2 {
			b, err = r.Take(ctx)
		}
		taken <- b
	}()
	for sign := range signs {
		if sign == "+ACK" {
			break
		}
	}
	must.Do(t, r.Publish(ctx, Position{1, 3}, nil))
	if b := <-taken; b == nil || b.Seq != 3 {
		t.Errorf("taken %v", b)
	}
}

// A user that the servers do not take any more, after they were away, ends waiting with what to do.
func TestUserIsGone(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1, func(_ int, o *server.Options) { o.Username, o.Password = "a", "b" })
	ctx := bounded(t)
	c := connect(t, "nats://a:b@"+s.Host(0), "c")
	r := create(t, c, Config{ID: "a1"})
	s.Stop(0)
	done := make(chan error, 2)
	go func() { done <- r.Publish(ctx, Position{1, 1}, nil) }()
	go func() { _, err := r.Take(ctx); done <- err }()
	s.Options(0).Password = "other"
	s.Start(0)
	for range 2 {
		if err := <-done; err == nil || !strings.Contains(err.Error(), "check the credentials") {
			t.Error(err)
		}
	}
}

// A full store: whoever writes waits, says so, and goes on once there is room.
func TestFullStore(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1, func(_ int, o *server.Options) { o.JetStreamMaxStore = 4 << 20 })
	ctx := bounded(t)
	waiting := newWaiting()
	full, c := connect(t, s.URL(), "full"), connect(t, s.URL(), "c", waiting.option)
	other := create(t, full, Config{ID: "other"})
	r := create(t, c, Config{ID: "a1"})
	filled, stop := context.WithTimeout(ctx, patience)
	go func() {
		for seq := 1; ; seq++ {
			if other.Publish(filled, Position{1, seq}, make([]byte, 256<<10)) != nil {
				return
			}
		}
	}()
	done := make(chan error, 4)
	writing, cancel := context.WithCancel(ctx)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for n := 1; r.Publish(writing, Position{1, n}, make([]byte, 64<<10)) == nil; n++ {
		}
	}()
	t.Log(waiting.next(t, true)) // it is full
	cancel()
	<-wrote
	go func() { done <- r.Publish(ctx, Position{2, 1}, make([]byte, 64<<10)) }()
	go func() { _, err := r.Answer(ctx, Position{2, 1}, make([]byte, 64<<10)); done <- err }()
	go func() { _, err := r.Put(ctx, "k", make([]byte, 64<<10)); done <- err }()
	go func() { _, err := r.KeepAnswer(ctx, "k", make([]byte, 64<<10)); done <- err }()
	t.Log(waiting.next(t, true))
	stop()
	must.Do(t, other.Remove(ctx))
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	waiting.next(t, false)
}

// What was stored though the word of it was lost is known again: nothing is stored twice, and whoever wrote first learns that it did.
func TestLostWord(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	proxy := s.Proxy(0)
	c, other := connect(t, proxy.URL(), "c"), connect(t, s.URL(), "other")
	c.timeout = 200 * time.Millisecond
	mine := create(t, c, Config{ID: "a1"})
	theirs := must.Get(other.Open(ctx, "a1"))(t)
	must.Get(mine.Put(ctx, "other", nil))(t) // it has begun to use the bucket
	for name, f := range map[string]func() error{
		"answer": func() error {
			_, err := mine.Answer(ctx, Position{1, 7}, []byte("mine"))
			return err
		},
		"swap": func() error {
			revision, err := mine.Swap(ctx, "k", []byte("mine"), 0)
			if revision == 0 {
				t.Error("no revision")
			}
			return err
		},
		"keep": func() error {
			stands, err := mine.KeepAnswer(ctx, "k", []byte("mine"))
			if string(stands) != "mine" {
				t.Errorf("%q stands", stands)
			}
			return err
		},
		"publish": func() error { return mine.Publish(ctx, Position{1, 1}, []byte("mine")) },
	} {
		proxy.Mute()
		done := make(chan error, 1)
		go func() { done <- f() }()
		var err error
		switch name { // it is there, and then others do what they do with it
		case "answer":
			results(t, theirs, 0, 1)
		case "swap":
			for value := []byte(nil); value == nil && err == nil; {
				value, _, err = theirs.Get(ctx, "k")
			}
		case "keep":
			for value := []byte(nil); value == nil && err == nil; {
				value, err = theirs.Answered(ctx, "k")
			}
		case "publish":
			b := must.Get(theirs.Take(ctx))(t)
			must.Get(theirs.Answer(ctx, b.Position, nil))(t)
			err = b.Done(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		proxy.Heal()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b := must.Get(mine.Backlog(ctx))(t); b.Waiting+b.UnderWay > 0 {
		t.Errorf("a batch that is answered is in the queue again: %+v", b)
	}
}

// A server that stops and starts again, with nobody to take its place, loses nothing and ends nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c, w := connect(t, s.URL(), "c"), connect(t, s.URL(), "w")
	mine := create(t, c, Config{ID: "a1"})
	theirs := must.Get(w.Open(ctx, "a1"))(t)
	ids := w.Watch(ctx)
	if id := <-ids; id != "a1" {
		t.Error(id)
	}
	stop := must.Get(mine.Serve("q", func([]byte) []byte { return []byte("yes") }))(t)
	defer stop()
	const batches = 200
	var published sync.WaitGroup
	published.Go(func() {
		for seq := range batches {
			if err := mine.Publish(ctx, Position{1, seq + 1}, fmt.Append(nil, seq+1)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		go func() {
			for {
				b, err := theirs.Take(ctx)
				if err != nil {
					return
				}
				if _, err := theirs.Answer(ctx, b.Position, b.Data); err != nil {
					return
				}
				_ = b.Done(ctx)
			}
		}()
	}
	seen := map[int]bool{}
	for result, err := range mine.Results(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[result.Seq] || string(result.Data) != fmt.Sprint(result.Seq) {
			t.Errorf("batch %d again, or with another answer: %s", result.Seq, result.Data)
		}
		if seen[result.Seq] = true; len(seen) == batches {
			break
		}
		if len(seen)%50 == 0 {
			s.Stop(0)
			s.Start(0)
			s.Wait()
		}
	}
	published.Wait()
	create(t, c, Config{ID: "a2"})
	if id := <-ids; id != "a2" {
		t.Error(id)
	}
	if answer := must.Get(theirs.Ask(ctx, "q", nil))(t); string(answer) != "yes" {
		t.Errorf("%s", answer)
	}
}

// Whoever waits ends when the connection is closed here.
func TestClose(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t, 1)
	ctx := bounded(t)
	c := connect(t, s.URL(), "c")
	r := create(t, c, Config{ID: "a1"})
	ids := c.Watch(ctx)
	done := make(chan error, 2)
	go func() { _, err := r.Take(ctx); done <- err }()
	go func() {
		for _, err := range r.Results(ctx, 0) {
			done <- err
		}
	}()
	<-ids
	c.Close()
	for range 2 {
		if err := <-done; !errors.Is(err, nats.ErrConnectionClosed) {
			t.Error(err)
		}
	}
	if id, ok := <-ids; ok {
		t.Error(id)
	}
	if _, err := r.Put(ctx, "k", nil); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Error(err)
	}
}
