package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/racflow/racflow/engine/internal/knowledge"
	"github.com/racflow/racflow/engine/internal/workspace"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// turned has the rows of fruit with swapped labels.
const turned = "text\tlabel\nred apple\tvehicle\ngreen pear\tvehicle\nblue car\tfruit\nfast train\tfruit\n"

// children returns the child processes, which are stages and their launchers, without a Milvus
// server.
func children(t testing.TB) (pids []int) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Skip("the system does not say which processes this one has started")
	}
	for _, task := range tasks {
		text, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children") // an error: the thread has ended
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != milvusServer {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// settled waits until the pipeline has one version.
func (p *Pipeline) settled(t testing.TB) {
	t.Helper()
	for {
		p.mu.Lock()
		n := len(p.versions)
		p.mu.Unlock()
		if n <= 1 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("a version does not end")
		}
		runtime.Gosched()
	}
}

func TestRebuild(t *testing.T) { testRebuild(t, intent) }

func testRebuild(t *testing.T, intent string) {
	t.Helper()
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	first := p.Status()
	if err := p.Rebuild(t.Context()); err != nil || !p.Status().Since.Equal(first.Since) {
		t.Fatalf("nothing has changed, and another version serves: %v", err)
	}
	write(t, filepath.Join(dir, "rows.tsv"), turned)
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Fatalf("before the rebuild it is %q", got)
	}
	must.Do(t, p.Rebuild(t.Context()))
	if got := ask(t, p, "red apple"); got != "vehicle" {
		t.Errorf("after the rebuild it is %q", got)
	}
	second := p.Status()
	if second.Knowledge[0] == first.Knowledge[0] || !second.Since.After(first.Since) {
		t.Errorf("%+v", second)
	}
	p.settled(t)
	if all, _ := generations(t, o, filepath.Join(dir, "p.hcl")); len(all) != 1 || all[0].Collection != second.Knowledge[0].Collection {
		t.Errorf("the store has %+v", all)
	}
	for name, text := range map[string]string{"rows.tsv": "\x00", "p.hcl": strings.Replace(intent, "soft", "sofd", 1)} {
		before := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		write(t, filepath.Join(dir, name), text)
		err := p.Rebuild(t.Context())
		found := new(workspace.DiagnosticsError)
		if !errors.As(err, &found) || !strings.Contains(p.Status().Error, "p.hcl:") {
			t.Errorf("%s: %v, %+v", name, err, p.Status())
		}
		if got := ask(t, p, "red apple"); got != "vehicle" {
			t.Errorf("%s is wrong: it is %q", name, got)
		}
		write(t, filepath.Join(dir, name), string(before))
		if err := p.Rebuild(t.Context()); err != nil || p.Status().Error != "" || !p.Status().Since.Equal(second.Since) {
			t.Errorf("%s is as it was: %v, %+v", name, err, p.Status())
		}
	}
	write(t, filepath.Join(dir, "p.hcl"), strings.Replace(intent, "answer in labels", "answer in labels && answer != \\\"vehicle\\\"", 1))
	must.Do(t, p.Rebuild(t.Context()))
	if got := ask(t, p, "red apple"); got != "fruit" {
		t.Errorf("the rule takes %q", got)
	}
}

// TestRunBeside: a run over the same file changes the knowledge while another version is served. The
// served version continues to answer, also after its store was killed.
func TestRunBeside(t *testing.T) { testRunBeside(t, intent) }

func testRunBeside(t *testing.T, intent string) {
	t.Helper()
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	file := filepath.Join(dir, "p.hcl")
	p := started(t, o, file).pipeline("intent")
	for _, rows := range []string{fruit, turned} {
		write(t, filepath.Join(dir, "rows.tsv"), rows)
		beside := must.Get(workspace.Open(t.Context(), file, o.Engine))(t)
		r, err := beside.Answer(t.Context(), workspace.Item{Text: "red apple"})
		beside.Close()
		if err != nil || (r.Answer == "fruit") != (rows == fruit) {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, pid := range children(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if got := ask(t, p, "red apple"); got != "fruit" {
			t.Errorf("what is served answers %q", got)
		}
	}
}

// TestSwapUnderLoad: while labels are swapped repeatedly, every answer comes from one of the two
// states, also for texts of one request, and nothing is left at the end.
func TestSwapUnderLoad(t *testing.T) { testSwapUnderLoad(t, intent) }

func testSwapUnderLoad(t *testing.T, intent string) {
	t.Helper()
	goroutines, files := runtime.NumGoroutine(), open(t)
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	s := must.Get(Open(context.Background(), []string{filepath.Join(dir, "p.hcl")}, o))(t)
	defer s.Close()
	must.Do(t, s.Start(t.Context()))
	p := s.pipeline("intent")
	one := len(children(t))
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var answered atomic.Int64
	for range 16 {
		load.Go(func() {
			for ctx.Err() == nil {
				r, err := p.Answer(context.Background(), workspace.Item{Text: "red apple"})
				if err != nil || r.Error != nil || r.Answer != "fruit" && r.Answer != "vehicle" {
					t.Errorf("%+v, %v", r, err)
					return
				}
				for _, v := range r.Votes { // all votes come from one state
					if v.Weight > 0.9 && v.Answer != string(r.Answer) {
						t.Errorf("%+v", r)
					}
				}
				answered.Add(1)
			}
		})
	}
	for i := range 6 {
		write(t, filepath.Join(dir, "rows.tsv"), []string{turned, fruit}[i%2])
		before := answered.Load()
		must.Do(t, p.Rebuild(t.Context()))
		if got, want := ask(t, p, "red apple"), []string{"vehicle", "fruit"}[i%2]; got != want {
			t.Errorf("swap %d: it is %q", i, got)
		}
		if answered.Load() == before {
			t.Errorf("swap %d: nothing was answered meanwhile", i)
		}
	}
	cancel()
	load.Wait()
	p.settled(t)
	if n := len(children(t)); n != one {
		t.Errorf("%d processes, and %d with one version", n, one)
	}
	s.Close()
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	for runtime.NumGoroutine() > goroutines && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if now := open(t); now > files {
		t.Errorf("%d files are open, %d were", now, files)
	}
}

// open returns the number of open files.
func open(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not say which files are open")
	}
	return len(all)
}

// TestWatch: files are checked twice, and a change counts when it is complete.
func TestWatch(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	w := watcher{pipeline: p}
	now := time.Now()
	look := func() string {
		w.checkFiles(now)
		return ask(t, p, "red apple")
	}
	first := p.Status().Since
	for range 3 {
		if look(); !p.Status().Since.Equal(first) {
			t.Fatal("nothing has changed, and another version serves")
		}
	}
	write(t, filepath.Join(dir, "rows.tsv"), turned)
	if got := look(); got != "fruit" {
		t.Errorf("a change that was seen once: %q", got)
	}
	if got := look(); got != "vehicle" {
		t.Errorf("a change that was seen twice: %q", got)
	}
	write(t, filepath.Join(dir, "p.hcl"), strings.Replace(intent, "soft", "sofd", 1))
	look()
	if look(); !strings.Contains(p.Status().Error, "sofd") {
		t.Errorf("%+v", p.Status())
	}
	changed := fmt.Sprintf("# %s\n%s", strings.Repeat("a comment ", 9), intent)
	write(t, filepath.Join(dir, "p.hcl"), changed)
	look()
	if look(); p.Status().Error != "" {
		t.Errorf("%+v", p.Status())
	}
}

// TestWatchAfterOther: a change is built even if another rebuild of it was cancelled.
func TestWatchAfterOther(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	built := func() {}
	o.Engine.Events.Knowledge = func(knowledge.BuildReport) { built() }
	p := started(t, o, filepath.Join(dir, "p.hcl")).pipeline("intent")
	w := watcher{pipeline: p}
	now := time.Now()
	w.checkFiles(now)
	write(t, filepath.Join(dir, "rows.tsv"), turned)
	ctx, cancel := context.WithCancel(t.Context())
	built = cancel // the caller gives up during the build
	if err := p.Rebuild(ctx); err == nil {
		t.Fatal("the rebuild was not given up")
	}
	for range 3 {
		w.checkFiles(now)
		now = now.Add(time.Minute)
	}
	if got := ask(t, p, "red apple"); got != "vehicle" || p.Status().Error != "" {
		t.Errorf("the change is lost: %q, %+v", got, p.Status())
	}
}

// TestKeptWhileOthersStart: a version that cannot answer is replaced even while another pipeline is
// still being built.
func TestKeptWhileOthersStart(t *testing.T) {
	slow := strings.NewReplacer(`"k"`, `"slow"`, ".k", ".slow", `"intent"`, `"other"`).Replace(intent)
	dir, o := folder(t, map[string]string{"p.hcl": intent, "slow.hcl": slow, "rows.tsv": fruit})
	goOn := make(chan struct{})
	o.Engine.Events.Knowledge = func(r knowledge.BuildReport) {
		if r.Name == "slow" {
			<-goOn
		}
	}
	s := must.Get(Open(t.Context(), []string{filepath.Join(dir, "p.hcl"), filepath.Join(dir, "slow.hcl")}, o))(t)
	defer s.Close()
	started := make(chan error, 1)
	go func() { started <- s.Start(t.Context()) }()
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	replaced := func(before *version) *version {
		for limit.Err() == nil {
			if now := s.pipeline("intent").current(); now != before {
				return now
			}
			runtime.Gosched()
		}
		t.Error("a version that cannot answer is not replaced before the other pipeline has started")
		return before
	}
	first := replaced(nil)
	s.pipeline("intent").ail(first)
	replaced(first)
	close(goOn)
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// TestCloseWhileRebuilding: a version is not closed while it is being built.
func TestCloseWhileRebuilding(t *testing.T) {
	dir, o := folder(t, map[string]string{"p.hcl": intent, "rows.tsv": fruit})
	building := func() {}
	o.Engine.Events.Knowledge = func(knowledge.BuildReport) { building() }
	s := started(t, o, filepath.Join(dir, "p.hcl"))
	closed := make(chan struct{})
	building = func() {
		go func() {
			defer close(closed)
			s.Close()
		}()
		<-s.ctx.Done()
	}
	write(t, filepath.Join(dir, "rows.tsv"), turned)
	if err := s.pipeline("intent").Rebuild(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("a set that has ended builds on: %v", err)
	}
	<-closed
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
