package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/racflow/racflow/engine/internal/process/memory"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// A process that holds more than its bound is ended. The row that caused this fails with the reason,
// and the stage answers again.
func TestMemoryOfAStage(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, log := newHost(t)
	p := start(t, h, Spec{Memory: 384 << 20})
	_, err := ask(t, p, "hold 512")
	if err == nil || !errors.Is(err, sdk.ErrCrashed) || !strings.Contains(err.Error(), "while it worked on this, 3 times: racflow ended it, since it held ") ||
		!strings.Contains(err.Error(), "more than the 384.0 MiB of memory of sample.it") {
		t.Errorf("got %v", err)
	}
	wantEcho(t, p, "a")
	if got, _ := ask(t, p, "environment"); !strings.Contains(got+"\n", fmt.Sprintf("\nGOMEMLIMIT=%d\n", 384<<20/10*9)) {
		t.Errorf("the environment is %s", got)
	}
	if !strings.Contains(log.String(), "of memory of sample.it") {
		t.Error("the log does not say why the stage was ended")
	}
}

// own returns the bytes that this process holds, which count, too: earlier tests and the race
// detector add hundreds of MiB.
func own(t *testing.T) int64 {
	t.Helper()
	return int64(must.Size(t, must.Status(t), "RssAnon"))
}

// If all processes together hold too much, the largest is ended, and no other.
func TestMemoryOfAll(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, _ := newHost(t)
	bound := int64(640<<20) + own(t)
	h.BoundMemory(bound, `pipeline "p"`)
	small, large := start(t, h, Spec{}), start(t, h, Spec{Memory: 1 << 30})
	if got, _ := ask(t, large, "environment"); !strings.Contains(got+"\n", fmt.Sprintf("\nGOMEMLIMIT=%d\n", min(bound, 1<<30)/10*9)) {
		t.Errorf("the environment is %s", got)
	}
	before, err := ask(t, small, "pid")
	must.Do(t, err)
	if _, err := ask(t, small, "keep 100"); err != nil {
		t.Fatal(err)
	}
	_, err = ask(t, large, "hold 600")
	if err == nil || !strings.Contains(err.Error(), "racflow ended it, since all processes of the run held ") ||
		!strings.Contains(err.Error(), "more than the "+memory.Size(bound)+` of memory of pipeline "p"; it was the largest, with`) {
		t.Errorf("got %v", err)
	}
	if after, err := ask(t, small, "pid"); after != before || err != nil {
		t.Errorf("the smaller process was %s and is %s, %v", before, after, err)
	}
}

// If a process exceeds its bound during the start, the error says so.
func TestMemoryAtTheStart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is watched on Linux alone")
	}
	h, _ := newHost(t)
	h.limits.restarts = 1
	_, err := h.Start(t.Context(), Spec{Kind: sdk.KindSample, Use: "hog", Block: "it", Memory: 128 << 20})
	if err == nil || !strings.Contains(err.Error(), "racflow ended it, since it held") {
		t.Errorf("got %v", err)
	}
}

// logged is a log that a test can read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newHost(t testing.TB) (*Host, *logged) {
	t.Helper()
	log := &logged{}
	h, err := New(Options{StateDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	must.Do(t, err)
	h.limits.backoff.First = 5 * time.Millisecond
	t.Cleanup(func() {
		begin := time.Now()
		h.Close()
		if took := time.Since(begin); took > patience {
			t.Errorf("Close took %v", took)
		}
		if t.Failed() {
			t.Log(log.String()[:min(len(log.String()), 10000)])
		}
	})
	return h, log
}

func start(t testing.TB, h *Host, spec Spec) *Process {
	t.Helper()
	if spec.Kind == "" {
		spec.Kind, spec.Use = sdk.KindSample, "echo"
	}
	spec.Block = "it"
	p, err := h.Start(t.Context(), spec)
	must.Do(t, err)
	return p
}

func echoConfigOf(t testing.TB, dir string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"dir": dir})
	must.Do(t, err)
	return raw
}

func say(texts ...string) sdk.Batch {
	b := sdk.Batch{}
	for i, text := range texts {
		b.Items = append(b.Items, sdk.Item{ID: strconv.Itoa(i), Text: text})
	}
	return b
}

// ask sends one text and returns the answer.
func ask(t testing.TB, p *Process, text string) (string, error) {
	t.Helper()
	out, err := p.Sample(t.Context(), say(text))
	if err != nil {
		return "", err
	}
	return out[0][0].Answers[0].Label, nil
}

// wantEcho sends one text, which a working process returns.
func wantEcho(t testing.TB, p *Process, text string) {
	t.Helper()
	if got, err := ask(t, p, text); err != nil || got != text {
		t.Errorf("got %q, %v, want %q", got, err, text)
	}
}

// learning returns training rows: batches of texts.
func learning(batches ...[]string) iter.Seq2[[]sdk.TrainingRow, error] {
	return func(yield func([]sdk.TrainingRow, error) bool) {
		for _, texts := range batches {
			var rows []sdk.TrainingRow
			for _, text := range texts {
				rows = append(rows, sdk.TrainingRow{ID: text, Text: text})
			}
			if !yield(rows, nil) {
				return
			}
		}
	}
}

func TestEveryKind(t *testing.T) {
	h, _ := newHost(t)
	ctx := t.Context()

	p := start(t, h, Spec{})
	if p.Fingerprint() != "echo-1" || p.Fits() || p.Dimension() != 0 {
		t.Errorf("got %q, %v, %d", p.Fingerprint(), p.Fits(), p.Dimension())
	}
	out, err := p.Sample(ctx, sdk.Batch{Items: []sdk.Item{{ID: "1", Text: "a", Candidates: make([]sdk.Candidate, 2)}, {ID: "2", Text: "b"}}})
	want := [][]sdk.Sample{{{Answers: []sdk.Answer{{Label: "a", Weight: 2}}}}, {{Answers: []sdk.Answer{{Label: "b"}}}}}
	if diff := cmp.Diff(want, out, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	out, err = p.Sample(ctx, say("a", "fail", "b"))
	var failed sdk.RowErrors
	if !errors.As(err, &failed) || len(failed) != 1 || sdk.CodeOf(failed[1]) != sdk.CodeTransient || out[2][0].Answers[0].Label != "b" {
		t.Errorf("got %v, %v", out, err)
	}
	if gc, err := ask(t, p, "gc"); gc != "400" || err != nil {
		t.Errorf("GOGC is %s, %v", gc, err)
	}
	if _, err := p.Embed(ctx, sdk.RoleQuery, []string{"a"}); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("a voter embeds: %v", err)
	}

	verdicts, err := start(t, h, Spec{Kind: sdk.KindElect, Use: "elect"}).Elect(ctx, sdk.Batch{Items: []sdk.Item{{ID: "1", Samples: out[0]}}})
	if err != nil || verdicts[0].Answer != "a" || verdicts[0].Agreement != 1 {
		t.Errorf("got %v, %v", verdicts, err)
	}
	prompts, err := start(t, h, Spec{Kind: sdk.KindPrompt, Use: "prompt"}).Prompt(ctx, say("x"))
	if err != nil || prompts[0][0].Text != "label of: x" {
		t.Errorf("got %v, %v", prompts, err)
	}

	var enricher interface {
		sdk.Enricher
		sdk.Fingerprinter
	} = start(t, h, Spec{Kind: sdk.KindEnrich, Use: "place"})
	document := &sdk.Document{ID: "d", Text: "one two"}
	additions, err := enricher.Enrich(ctx, []sdk.Passage{
		{Document: document, Chunk: sdk.Chunk{End: 7}}, {Document: document, Chunk: sdk.Chunk{Start: 4, End: 7}},
	})
	placed := []sdk.Addition{{Context: "d from 0", Terms: []string{"one", "two"}}, {Context: "d from 4", Terms: []string{"two"}}}
	if diff := cmp.Diff(placed, additions); diff != "" || err != nil || enricher.Fingerprint() != "place-1" {
		t.Error(diff, err, enricher.Fingerprint())
	}

	dir := t.TempDir()
	e := start(t, h, Spec{Kind: sdk.KindEmbed, Use: "length", StateDir: dir, Fits: true})
	if e.Dimension() != 2 || !e.Fits() {
		t.Errorf("got %d, %v", e.Dimension(), e.Fits())
	}
	if err := e.Fit(ctx, learning([]string{"a", "b"}, []string{"c"})); err != nil {
		t.Error(err)
	}
	state, err := e.State()
	if !strings.Contains(string(state), "2;1;") || err != nil {
		t.Errorf("got %q, %v", state, err)
	}
	vectors, err := start(t, h, Spec{Kind: sdk.KindEmbed, Use: "length", StateDir: dir, Fits: true, State: state}).Embed(ctx, sdk.RoleQuery, []string{"", "abc"})
	if diff := cmp.Diff([][]float32{{0, 1}, {.6, .8}}, vectors); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestStore(t *testing.T) {
	h, _ := newHost(t)
	ctx := t.Context()
	s := start(t, h, Spec{Kind: sdk.KindStore, Use: "memory", StateDir: filepath.Join(t.TempDir(), "deep", "er")})
	entries := []sdk.Entry{
		{ID: "a", Text: "one", Label: "x", Vector: []float32{.1}},
		{ID: "b", Text: "two", Label: "y", Meta: sdk.Meta{"n": 1.0}, Vector: []float32{.9}, Hash: []byte{1}},
	}
	if _, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1}); err != nil {
		t.Fatal(err)
	}
	must.Do(t, errors.Join(s.Put(ctx, "c", entries), s.Delete(ctx, "c", []string{"z"}), s.Commit(ctx, "c", []byte("note"))))
	c, err := s.Open(ctx, "c", sdk.Schema{Dimension: 1})
	if diff := cmp.Diff(sdk.Collection{Entries: 2, Dimension: 1, Note: []byte("note")}, c); diff != "" || err != nil {
		t.Error(diff, err)
	}
	r := sdk.Ranking{Search: sdk.Search{Mode: sdk.ModeDense, NumCandidates: 9}, Fusion: sdk.Fusion{Method: "weighted", DenseWeight: .8}, TopK: 5}
	lists, err := s.Retrieve(ctx, "c", r, []sdk.Query{{Vector: []float32{1}}})
	want := [][]sdk.Candidate{{
		{ID: "b", Label: "y", Score: .9, Dense: .9, Lexical: sdk.Unscored},
		{ID: "a", Label: "x", Score: .1, Dense: .1, Lexical: sdk.Unscored},
	}}
	if diff := cmp.Diff(want, lists, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err := s.Get(ctx, "c", []string{"b", "unknown"})
	if diff := cmp.Diff([]sdk.Entry{{ID: "b", Text: "two", Label: "y", Meta: sdk.Meta{"n": 1.0}, Hash: []byte{1}}, {}}, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
		t.Error(diff, err)
	}
	page, err := s.Scan(ctx, "c", sdk.Scan{Limit: 1})
	if err != nil || page.Next != "a" || len(page.Entries) != 1 || page.Entries[0].Vector[0] != .1 {
		t.Errorf("got %+v, %v", page, err)
	}
	r.Method = "guess"
	if _, err := s.Retrieve(ctx, "c", r, nil); sdk.CodeOf(err) != sdk.CodeInvalid {
		t.Errorf("an unknown fusion gives %v", err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	h, _ := newHost(t)
	_, err := h.Start(t.Context(), Spec{Kind: sdk.KindSample, Use: "echo", Block: "it", Config: []byte(`{"k": 200, "token": "hunter2"}`), Secrets: []string{"hunter2"}})
	var config *ConfigError
	if !errors.As(err, &config) || err.Error() != "sample.it: k: too large for (secret); sorry" || config.Errors[0].Argument != "k" {
		t.Errorf("got %v", err)
	}
	_, err = h.Start(t.Context(), Spec{Kind: sdk.KindSample, Use: "ecko", Block: "it"})
	if err == nil || !strings.Contains(err.Error(), `plugin test 0.1.0 has no sample stage "ecko"`) {
		t.Errorf("got %v", err)
	}
}

func TestReplyBeyondTheLimitFailsAlone(t *testing.T) {
	h, _ := newHost(t)
	p := start(t, h, Spec{Kind: sdk.KindPrompt, Use: "prompt"})
	_, err := p.Prompt(t.Context(), say("huge"))
	if sdk.CodeOf(err) != sdk.CodeInvalid || !strings.Contains(err.Error(), "the reply has") {
		t.Errorf("got %v", err)
	}
	if out, err := p.Prompt(t.Context(), say("a")); err != nil || len(out) != 1 {
		t.Errorf("after it: %v", err)
	}
}

func TestPanicFailsItsBatchOnly(t *testing.T) {
	h, log := newHost(t)
	p := start(t, h, Spec{})
	pid, _ := ask(t, p, "pid")
	if _, err := ask(t, p, "panic"); sdk.CodeOf(err) != sdk.CodeInternal || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("got %v", err)
	}
	if again, err := ask(t, p, "pid"); err != nil || again != pid {
		t.Errorf("pid %s, then %s, %v", pid, again, err)
	}
	waitFor(t, "the stack in the log", func() bool { return strings.Contains(log.String(), "main_test.go") })
}

func TestCancelAndDeadline(t *testing.T) {
	h, _ := newHost(t)
	dir := t.TempDir()
	p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
	times := func(what string, n int64) func() bool {
		return func() bool {
			info, err := os.Stat(filepath.Join(dir, what))
			return err == nil && info.Size() == n
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := p.Sample(ctx, say("wait"))
		failed <- err
	}()
	waitFor(t, "the plugin is at work", times("waiting", 1))
	cancel()
	err := <-failed
	if sdk.CodeOf(err) != sdk.CodeCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitFor(t, "the plugin hears of the cancellation", times("cancelled", 1))

	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err = p.Sample(ctx, say("wait")); sdk.CodeOf(err) != sdk.CodeDeadline {
		t.Errorf("got %v", err)
	}
	waitFor(t, "the plugin's deadline", times("cancelled", 2))

	// Unanswered calls, more than the window, end with their deadlines.
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var calls sync.WaitGroup
	for range 40 {
		calls.Go(func() {
			if _, err := p.Sample(ctx, say("wait")); sdk.CodeOf(err) != sdk.CodeDeadline {
				t.Errorf("got %v", err)
			}
		})
	}
	calls.Wait()
	wantEcho(t, p, "next")
}

func TestCloseClosesTheStage(t *testing.T) {
	h, _ := newHost(t)
	h.limits.stop = patience
	dir := t.TempDir()
	p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
	sockets := socketDir(p)
	if _, err := os.Stat(sockets); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = p.Sample(context.Background(), say("wait")) }()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "closed")); err != nil {
		t.Errorf("the stage was not closed: %v", err)
	}
	if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its socket folder is still there: %v", err)
	}
	if _, err := ask(t, p, "a"); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseKillsWhatDoesNotListen(t *testing.T) {
	h, _ := newHost(t)
	dir := t.TempDir()
	p := start(t, h, Spec{Config: echoConfigOf(t, dir)})
	pid, _ := ask(t, p, "pid")
	child, err := ask(t, p, "child")
	must.Do(t, err)
	go func() { _, _ = p.Sample(context.Background(), say("stop-once")) }()
	waitFor(t, "the process has stopped", func() bool { _, err := os.Stat(filepath.Join(dir, "stop-once")); return err == nil })
	begin := time.Now()
	h.Close()
	if took := time.Since(begin); took > patience {
		t.Errorf("Close took %v", took)
	}
	for _, id := range []string{pid, child} {
		n, _ := strconv.Atoi(id)
		waitFor(t, "process "+id+" is gone", func() bool { return !alive(n) })
	}
	if _, err := h.Start(t.Context(), Spec{Kind: sdk.KindSample, Use: "echo"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func socketDir(p *Process) string {
	for _, v := range p.current.process.running.cmd.Env {
		if dir, ok := strings.CutPrefix(v, "PLUGIN_UNIX_SOCKET_DIR="); ok {
			return dir
		}
	}
	return "?"
}

// A plugin's TLS library accepts the host as a peer: its certificate is no authority's, and the
// authority that the plugin trusts has signed it.
func TestIdentity(t *testing.T) {
	id, err := newIdentity()
	must.Do(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(id.authority)) {
		t.Fatalf("no certificate in %q", id.authority)
	}
	leaf := id.dialing.Certificates[0].Leaf
	if leaf.IsCA || leaf.KeyUsage != x509.KeyUsageDigitalSignature {
		t.Errorf("the host's certificate is an authority's: %v, usage %b", leaf.IsCA, leaf.KeyUsage)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		chains, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil || len(chains) != 1 || len(chains[0]) != 2 || !chains[0][1].IsCA {
			t.Errorf("chains %v, %v", chains, err)
		}
	}
	// A plugin's certificate is a client's only: the plugin cannot pass for the host, and no stage
	// accepts it.
	shown, err := tls.X509KeyPair([]byte(id.certificate), []byte(id.key))
	must.Do(t, err)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := shown.Leaf.Verify(x509.VerifyOptions{Roots: id.callers, KeyUsages: client}); err != nil || shown.Leaf.IsCA {
		t.Errorf("the plugin's certificate: %v, an authority's %v", err, shown.Leaf.IsCA)
	}
	for _, o := range []x509.VerifyOptions{{Roots: id.callers}, {Roots: roots, KeyUsages: client}} {
		if _, err := shown.Leaf.Verify(o); err == nil {
			t.Errorf("the plugin's certificate passes %+v", o)
		}
	}
	// A built-in stage's certificate is a server's only: if it leaks, nobody becomes the host by it.
	builtin, err := tls.X509KeyPair([]byte(id.builtin), []byte(id.builtin))
	must.Do(t, err)
	for usage, fits := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageClientAuth: false} {
		_, err := builtin.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost", KeyUsages: []x509.ExtKeyUsage{usage}})
		if (err == nil) != fits || builtin.Leaf.IsCA {
			t.Errorf("the certificate of built-in stages: usage %v, %v", usage, err)
		}
	}
}

// isReadable distinguishes processes that are dumpable or not, unless they belong to root.
func TestReadable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	uid := os.Getuid()
	for how, want := range map[string]bool{"open": true, "closed": false} {
		c := exec.Command("/proc/self/exe", how) // another user may execute this path wherever the file lies
		if os.Getuid() == 0 {
			uid = 65534
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		c.Dir = "/"
		stdin, err := c.StdinPipe()
		must.Do(t, err)
		out, err := c.StdoutPipe()
		must.Do(t, err)
		must.Do(t, c.Start())
		if !bufio.NewScanner(out).Scan() {
			t.Fatal("it does not start")
		}
		if got := isReadable(c.Process.Pid, uid); got != want {
			t.Errorf("%s: readable %v", how, got)
		}
		_ = stdin.Close()
		_ = c.Wait()
	}
	if isReadable(os.Getpid(), 0) {
		t.Error("of root's processes nothing is known")
	}
}
