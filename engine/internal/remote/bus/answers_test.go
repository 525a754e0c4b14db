package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/remote/natstest"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// folder is the response cache of a machine.
func folder(t *testing.T, dir string) *cache.Cache {
	t.Helper()
	c := must.Get(cache.Open(dir, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func machine(t *testing.T) *cache.Cache { return folder(t, t.TempDir()) }

func key(n int) sdk.Key { return sdk.KeyOf(strconv.Itoa(n)) }

// gets checks what a worker finds under a key.
func gets(t *testing.T, c *AnswersCache, k sdk.Key, fresh bool, want string) {
	t.Helper()
	values, err := c.GetAll(t.Context(), []sdk.Key{k}, fresh)
	if err != nil || len(values) != 1 || string(values[0]) != want || (values[0] == nil) != (want == "") {
		t.Errorf("it found %q, %v, want %q", values, err, want)
	}
}

// has checks what a folder has.
func has(t *testing.T, c *cache.Cache, k sdk.Key, want string) {
	t.Helper()
	if got, ok := c.Get(k); ok != (want != "") || string(got) != want {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

func keeps(t *testing.T, keep func(sdk.Key, string, []byte) error, k sdk.Key, value string) {
	t.Helper()
	must.Do(t, keep(k, "sample.openai", []byte(value)))
}

// serve begins the caller's side.
func serve(t *testing.T, f *fake, local *cache.Cache) *AnswersServer {
	t.Helper()
	return must.Get(ServeAnswers(t.Context(), f, local, slog.New(slog.DiscardHandler)))(t)
}

// brought waits until the caller has everything, and ends its side.
func brought(t *testing.T, s *AnswersServer) {
	t.Helper()
	must.Do(t, s.Bring(t.Context()))
	must.Do(t, s.Close())
}

// Where an answer is: the folder, the bucket, the caller's folder, in this order; in a run that asks again, the
// bucket alone.
func TestWhere(t *testing.T) {
	for name, c := range map[string]struct {
		local, bucket, caller string
		want, fresh           string
	}{
		"nowhere":            {},
		"here":               {local: "1", want: "1"},
		"another worker":     {bucket: "2", want: "2", fresh: "2"},
		"an earlier run":     {caller: "3", want: "3"},
		"here first":         {local: "1", caller: "3", want: "1"},
		"the run is next":    {bucket: "2", caller: "3", want: "2", fresh: "2"},
		"of this run, fresh": {local: "1", bucket: "2", caller: "3", want: "1", fresh: "2"},
	} {
		t.Run(name, func(t *testing.T) {
			for fresh, want := range map[bool]string{false: c.want, true: c.fresh} {
				f, local, callers := newFake(), machine(t), machine(t)
				if c.local != "" {
					keeps(t, local.Put, key(1), c.local)
				}
				if c.caller != "" {
					keeps(t, callers.Put, key(1), c.caller)
				}
				if c.bucket != "" {
					keeps(t, NewAnswersCache(t.Context(), machine(t), f).Add, key(1), c.bucket)
				}
				f.serves = (&AnswersServer{local: callers, run: f, ctx: t.Context()}).reply
				worker := NewAnswersCache(t.Context(), local, f)
				gets(t, worker, key(1), fresh, want)
				if want != "" {
					has(t, local, key(1), want) // from now on it is here
				}
				if fresh && len(f.asked) > 0 {
					t.Error("a caller's earlier answers do not count, and it was asked")
				}
			}
		})
	}
}

// Two workers ask the same at a time: what came first is what all have. When its worker dies before the
// answer was counted, nobody asks again.
func TestFirstStands(t *testing.T) {
	f := newFake()
	first, second := machine(t), machine(t)
	a, b := NewAnswersCache(t.Context(), first, f), NewAnswersCache(t.Context(), second, f)
	gets(t, a, key(1), false, "")
	gets(t, b, key(1), false, "") // both ask the service
	keeps(t, a.Add, key(1), "of a")
	keeps(t, b.Add, key(1), "of b")
	has(t, first, key(1), "of a")
	has(t, second, key(1), "of a")
	gets(t, b, key(1), false, "of a")
	gets(t, b, key(1), true, "of a")
	gets(t, NewAnswersCache(t.Context(), machine(t), f), key(1), false, "of a") // who takes the batch of a
	keeps(t, b.Put, key(1), "of b, again")
	has(t, second, key(1), "of a") // of this run the first stands, however it is kept
}

// While the servers are away a look and an answer wait; the answer is in the folder meanwhile, so that
// its worker does not ask again if it dies.
func TestServersAway(t *testing.T) {
	f, dir := newFake(), t.TempDir()
	keeps(t, NewAnswersCache(t.Context(), machine(t), f).Add, key(2), "2")
	back := f.leave()
	local := folder(t, dir)
	ctx, die := context.WithCancel(t.Context())
	worker := NewAnswersCache(ctx, local, f)
	kept := make(chan error, 1)
	go func() { kept <- worker.Add(key(1), "sample.openai", []byte("1")) }()
	looked := make(chan error, 1)
	ended, giveUp := context.WithCancel(t.Context())
	go func() {
		_, err := worker.GetAll(ended, []sdk.Key{key(2)}, false)
		looked <- err
	}()
	giveUp()
	if err := <-looked; err == nil {
		t.Error("a look that was given up found out that there is nothing")
	}
	die()
	if err := <-kept; err == nil {
		t.Error("it was kept at servers that are away")
	}
	again := NewAnswersCache(t.Context(), folder(t, dir), f)
	gets(t, again, key(1), false, "1")
	waits := make(chan [][]byte, 1)
	go func() {
		values, _ := again.GetAll(t.Context(), []sdk.Key{key(2)}, false)
		waits <- values
	}()
	back()
	if values := <-waits; len(values) != 1 || string(values[0]) != "2" {
		t.Errorf("found %q, want what was kept before the servers went away", values)
	}
}

// A thousand goroutines that miss make a few messages, and no key is asked for twice.
func TestNoStorm(t *testing.T) {
	f, callers := newFake(), machine(t)
	const n = 1000
	for i := range n {
		keeps(t, callers.Put, key(i), fmt.Sprint("answer ", i))
	}
	f.serves = (&AnswersServer{local: callers, run: f, ctx: t.Context()}).reply
	worker := NewAnswersCache(t.Context(), machine(t), f)
	all, asking := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.hold = func() { once.Do(func() { close(asking); <-all }) } // the first question is under way while the others come
	var getting sync.WaitGroup
	get := func(i int) {
		getting.Go(func() {
			if value, ok := worker.Get(key(i)); !ok || string(value) != fmt.Sprint("answer ", i) {
				t.Errorf("key %d: %q", i, value)
			}
		})
	}
	get(0)
	<-asking
	for i := 1; i < n; i++ {
		get(i)
		get(i) // the same, at the same time
	}
	for {
		worker.mu.Lock()
		queued := len(worker.queue)
		worker.mu.Unlock()
		if queued == 2*(n-1) {
			break
		}
	}
	close(all)
	getting.Wait()
	seen := map[sdk.Key]int{}
	for _, keys := range f.asked {
		for _, k := range keys {
			seen[k]++
		}
	}
	if len(f.asked) != 2 || len(seen) != n {
		t.Errorf("%d messages for %d keys", len(f.asked), len(seen))
	}
	for i := range n {
		if seen[key(i)] != 1 {
			t.Errorf("key %d was asked for %d times", i, seen[key(i)])
		}
	}
}

// Answers that do not fit into a reply come in another one, and large ones through the bucket.
func TestLarge(t *testing.T) {
	f, callers := newFake(), machine(t)
	sizes := []int{replyBytes * 2, 0, replyBytes / 2, replyBytes / 2, replyBytes / 2, 1, sdk.MaxCached}
	keys := make([]sdk.Key, len(sizes))
	for i, size := range sizes {
		keys[i] = key(i)
		keeps(t, callers.Put, keys[i], string(bytes.Repeat([]byte{byte(i)}, size)))
	}
	f.serves = (&AnswersServer{local: callers, run: f, ctx: t.Context()}).reply
	values := must.Get(NewAnswersCache(t.Context(), machine(t), f).GetAll(t.Context(), keys, false))(t)
	for i, v := range values {
		if v == nil || len(v) != sizes[i] || bytes.Count(v, []byte{byte(i)}) != sizes[i] {
			t.Errorf("value %d has %d bytes, want %d", i, len(v), sizes[i])
		}
	}
	if len(f.asked) != 3 || len(f.kept) != 2 {
		t.Errorf("%d messages, and %d answers through the bucket", len(f.asked), len(f.kept))
	}
	if err := NewAnswersCache(t.Context(), machine(t), f).Add(key(1), "x", make([]byte, sdk.MaxCached+1)); sdk.CodeOf(err) != sdk.CodeInvalid || len(f.kept) != 2 {
		t.Errorf("an answer that is too large: %v", err)
	}
}

// What workers keep comes into the caller's folder, each once, also where the caller died meanwhile.
func TestBring(t *testing.T) {
	f, dir := newFake(), t.TempDir()
	local := folder(t, dir)
	keeps(t, local.Put, key(1), "known")
	keeps(t, local.Put, key(2), "older")
	worker := NewAnswersCache(t.Context(), machine(t), f)
	keeps(t, worker.Add, key(1), "known")
	keeps(t, worker.Add, key(2), "newer")
	f.kept = append(f.kept, f.kept[0]) // that nobody can read
	f.kept[2].Key, f.kept[2].Sequence = "no key", 3
	s := serve(t, f, local)
	keeps(t, worker.Add, key(3), "meanwhile")
	brought(t, s)
	has(t, local, key(1), "known")
	has(t, local, key(2), "newer")
	has(t, local, key(3), "meanwhile")
	must.Do(t, local.Close())

	keeps(t, worker.Add, key(4), "while the caller was away")
	local = folder(t, dir)
	if at, err := local.Copied(f.ID()); at != 4 || err != nil {
		t.Errorf("it was noted that %d answers are here, %v", at, err)
	}
	s = serve(t, f, local)
	brought(t, s)
	has(t, local, key(4), "while the caller was away")
	stats, err := cache.ReadStats(dir)
	if err != nil || stats.Entries != 4 || len(stats.About) != 1 || stats.About[0].About != "sample.openai" {
		t.Errorf("the folder has %+v, %v", stats, err)
	}

	there := folder(t, t.TempDir()) // of a caller on another machine
	brought(t, serve(t, f, there))
	has(t, there, key(2), "newer")
	has(t, there, key(4), "while the caller was away")
}

// A caller that does not reply is not asked by every look.
func TestSilentCaller(t *testing.T) {
	f := newFake()
	ctx, end := context.WithCancel(t.Context())
	worker := NewAnswersCache(ctx, machine(t), f)
	f.hold = end // as if patience had ended
	gets(t, worker, key(1), false, "")
	gets(t, worker, key(2), false, "")
	if len(f.asked) != 1 {
		t.Errorf("it was asked %d times", len(f.asked))
	}
}

func TestDecodeReply(t *testing.T) {
	good := appendReply(appendReply(nil, nothing, nil), found, answer{"a", []byte("1")}.encode())
	if all, err := decodeReply(good, 2); err != nil || all[0].says != nothing || string(all[1].value) != "1" {
		t.Errorf("%+v, %v", all, err)
	}
	for n := range good {
		if _, err := decodeReply(good[:n], 2); err == nil {
			t.Errorf("%d of %d bytes are a reply", n, len(good))
		}
	}
	if _, err := decodeReply([]byte{found, 255, 255, 255, 255, 1}, 1); err == nil {
		t.Error("a reply that says more than it has")
	}
}

// fake is a run at servers that are in memory.
type fake struct {
	mu     sync.Mutex
	kept   []Answer // in order of storage
	more   chan struct{}
	away   chan struct{} // closed: the servers are there
	serves func([]byte) []byte
	asked  [][]sdk.Key // questions to the caller
	looked int         // into the bucket
	hold   func()      // called before a question is passed on; may be nil
}

func newFake() *fake {
	there := make(chan struct{})
	close(there)
	return &fake{more: make(chan struct{}), away: there}
}

// leave takes the servers away until back is called.
func (f *fake) leave() (back func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	away := make(chan struct{})
	f.away = away
	return func() { close(away) }
}

// there waits for the servers.
func (f *fake) there(ctx context.Context) error {
	f.mu.Lock()
	away := f.away
	f.mu.Unlock()
	select {
	case <-away:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) ID() string { return "k3v9q2" }

func (f *fake) find(key string) []byte {
	if i := slices.IndexFunc(f.kept, func(a Answer) bool { return a.Key == key }); i >= 0 {
		return f.kept[i].Value
	}
	return nil
}

func (f *fake) Answered(ctx context.Context, key string) ([]byte, error) {
	if err := f.there(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked++
	return f.find(key), nil
}

func (f *fake) KeepAnswer(ctx context.Context, key string, value []byte) ([]byte, error) {
	if err := f.there(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if stands := f.find(key); stands != nil {
		return stands, nil
	}
	f.kept = append(f.kept, Answer{Key: key, Value: slices.Clone(value), Sequence: uint64(len(f.kept) + 1)})
	close(f.more)
	f.more = make(chan struct{})
	return value, nil
}

var errNobody = errors.New("nobody")

func (f *fake) Ask(ctx context.Context, about string, data []byte) ([]byte, error) {
	if about != cacheSubject {
		return nil, errNobody
	}
	f.mu.Lock()
	f.asked = append(f.asked, decodeQuestion(data))
	serves, hold := f.serves, f.hold
	f.mu.Unlock()
	if hold != nil {
		hold()
	}
	if serves == nil {
		return nil, errNobody
	}
	return serves(data), ctx.Err()
}

func (f *fake) Serve(_ string, serves func([]byte) []byte) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serves = serves
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.serves = nil
	}, nil
}

func (f *fake) LastAnswer(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.kept)), nil
}

func (f *fake) Answers(ctx context.Context, after uint64) iter.Seq2[Answer, error] {
	return func(yield func(Answer, error) bool) {
		for {
			f.mu.Lock()
			more := f.more
			rest := slices.Clone(f.kept[after:])
			f.mu.Unlock()
			for _, a := range rest {
				if !yield(a, nil) {
					return
				}
				after = a.Sequence
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

var (
	_ AnswersRun    = (*Run)(nil)
	_ AnswersSource = (*Run)(nil)
)

// The same against servers: answers of earlier runs, of other workers, and what is kept while no server is there.
func TestAtServers(t *testing.T) {
	s := natstest.Start(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waiting := make(chan error, 16)
	open := func(name string, waits func(error)) *Run {
		c := must.Get(Connect(ctx, Options{Servers: s.URL(), Name: name, Waiting: waits}))(t)
		t.Cleanup(c.Close)
		if name == "caller" {
			must.Get(c.Create(ctx, Config{ID: "a1"}))(t)
		}
		return must.Get(c.Open(ctx, "a1"))(t)
	}
	callers, firsts, seconds := machine(t), machine(t), machine(t)
	caller := open("caller", nil)
	a, b := NewAnswersCache(ctx, firsts, open("a", nil)), NewAnswersCache(ctx, seconds, open("b", func(why error) { waiting <- why }))

	gets(t, a, key(1), false, "") // no caller answers: there is nothing, at once
	large := string(bytes.Repeat([]byte("0123456789abcdef"), 1<<17))
	keeps(t, callers.Put, key(1), "of an earlier run")
	keeps(t, callers.Put, key(2), large)
	server := must.Get(ServeAnswers(ctx, caller, callers, slog.New(slog.DiscardHandler)))(t)
	gets(t, a, key(1), false, "of an earlier run")
	gets(t, a, key(2), false, large)
	gets(t, a, key(1), true, "")
	keeps(t, a.Add, key(3), "of a")
	keeps(t, b.Add, key(3), "of b")
	gets(t, b, key(3), true, "of a")

	s.Stop(0)
	for why := range waiting {
		if why != nil {
			break
		}
	}
	kept := make(chan error, 1)
	go func() { kept <- b.Add(key(4), "sample.openai", []byte("while no server is there")) }()
	for {
		if _, ok := seconds.Get(key(4)); ok { // it survives b already
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the answer is not in the folder")
		}
	}
	select {
	case err := <-kept:
		t.Fatalf("it is kept where no server is: %v", err)
	default:
	}
	s.Start(0)
	if err := <-kept; err != nil {
		t.Fatal(err)
	}
	gets(t, a, key(4), false, "while no server is there")
	must.Do(t, server.Bring(ctx))
	must.Do(t, server.Close())
	has(t, callers, key(3), "of a")
	has(t, callers, key(4), "while no server is there")
}
