package simulation

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/sdk/sdktest/must"
	"github.com/racflow/racflow/sdk/support"
)

var (
	seeds = flag.Int("seeds", 0, "how many histories each test goes through; 0: as many as CI does")
	first = flag.Uint64("first", 0, "seed of the first of them")
)

var (
	errDead = errors.New("this machine is dead") // every call of a dead machine returns this
	errAway = errors.New("the service is away")
)

// world is everything in one history.
type world struct {
	*testing.T
	seed    uint64
	random  *rand.Rand
	dir     string // has the folders of machines
	arrived chan struct{}
	over    chan struct{}

	mu      sync.Mutex
	waiting []*turn // for their turn
	history []string
	lost    map[string]int // faults by kind
	slow    bool           // turns take time

	machines map[string]*machine // by name
}

// turn is a waiting call at a seam.
type turn struct {
	m    *machine
	what string
	free chan struct{}
}

// histories runs n histories. Each has its own seed; live is its scenario.
func histories(t *testing.T, n int, live func(*world)) {
	switch {
	case *seeds > 0:
		n = *seeds
	case testing.Short():
		n /= 20
	}
	total := map[string]int{}
	for seed := *first; seed < *first+uint64(n) && !t.Failed(); seed++ {
		w := history(t, seed, live)
		for what, times := range w.lost {
			total[what] += times
		}
	}
	t.Logf("%d histories with %v", n, total)
}

// found runs histories that once found a defect.
func found(t *testing.T, seeds map[string]uint64, live func(*world)) {
	for name, seed := range seeds {
		t.Run(name, func(t *testing.T) { history(t, seed, live) })
	}
}

func history(t *testing.T, seed uint64, live func(*world)) *world {
	w := &world{seed: seed, random: rand.New(rand.NewPCG(seed, 41)), lost: map[string]int{}, machines: map[string]*machine{}}
	synctest.Test(t, func(t *testing.T) {
		w.T, w.over, w.arrived = t, make(chan struct{}), make(chan struct{}, 1) // both channels belong to the bubble
		cryptotest.SetGlobalRandom(t, seed)
		dir := filepath.Join(memory(), fmt.Sprintf("history-%010d", rand.Uint32())) // of constant length, since files contain paths
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		w.dir = dir
		defer func() {
			if t.Failed() {
				t.Logf("seed %d: %d steps\n%s\nagain: go test ./engine/internal/simulation -run '^%s$' -first %d -seeds 1 -v",
					seed, len(w.history), strings.Join(w.history, "\n"), t.Name(), seed)
			} else if testing.Verbose() && *seeds == 1 {
				t.Log(strings.Join(w.history, "\n"))
			}
		}()
		go w.turns()
		defer close(w.over)
		live(w)
	})
	return w
}

// memory returns a folder of files in memory, if the system has one: the simulated disks need no real
// disk.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return os.TempDir()
	}
	return dir
}

// turns lets waiting calls continue, one at a time, once everything else rests.
func (w *world) turns() {
	for {
		select {
		case <-w.arrived:
		case <-w.over:
			return
		}
		for {
			synctest.Wait()
			w.mu.Lock()
			if len(w.waiting) == 0 {
				w.mu.Unlock()
				break
			}
			slices.SortStableFunc(w.waiting, func(a, b *turn) int { return cmp.Compare(a.what, b.what) })
			at := w.random.IntN(len(w.waiting))
			next := w.waiting[at]
			w.waiting = slices.Delete(w.waiting, at, at+1)
			slow := w.slow && w.random.IntN(20) == 0
			w.mu.Unlock()
			if slow {
				time.Sleep(time.Duration(w.draw(int(10 * time.Second))))
			}
			close(next.free)
		}
	}
}

// draw returns a number below n.
func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// one returns true once in n times.
func (w *world) one(n int) bool { return w.draw(n) == 0 }

// drawn matches names that the system draws, independent of the seed.
var drawn = regexp.MustCompile(`new-\d+|\b[0-9a-f]{16}\b`)

// note adds a line to the history.
func (w *world) note(format string, args ...any) {
	text := drawn.ReplaceAllString(strings.ReplaceAll(fmt.Sprintf(format, args...), w.dir, ""), "*")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, text)
}

// fault counts a fault of a kind, and adds it to the history.
func (w *world) fault(kind, format string, args ...any) {
	w.note(kind+": "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[kind]++
}

// faults returns the number of faults of these kinds.
func (w *world) faults(kinds ...string) (times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		times += w.lost[kind]
	}
	return times
}

// machine is a computer with a process and a disk.
type machine struct {
	*world
	name   string
	dir    string
	drive  *drive
	ctx    context.Context // ends with its death
	cancel context.CancelFunc
	sees   func(l *link, name string, message any) // receives every message to a stage; nil: nobody looks

	stages  atomic.Int64 // running stages
	refuses func() bool  // reports whether the next stage fails to start; nil: all start

	deathAt int // the step at which it dies; 0: never
	deathOn struct {
		op   support.Op
		file string // the end of its name
		n    int    // the n-th time
	}
	deathSeal int  // instead: the number of remaining syncs and renames, the last of which fails; 0: off
	power     bool // dies by a power failure
	doomed    bool // it may die
	steps     int
	dead      bool
	left      string // the folder that its death left

	writes  atomic.Bool    // it has opened the output
	outputs []string       // possible outputs of its runs
	open    map[string]int // number of stages that work on a text
}

// machine starts a machine with the contents of a folder.
func (w *world) machine(dir string) *machine {
	w.mu.Lock()
	m := &machine{world: w, name: fmt.Sprint("m", len(w.machines)+1), dir: dir, open: map[string]int{}}
	w.machines[m.name] = m
	w.mu.Unlock()
	m.ctx, m.cancel = context.WithCancel(w.Context())
	m.drive = watchDrive(m)
	return m
}

// end ends the machine calmly: nothing is lost.
func (m *machine) end() {
	m.cancel()
	m.drive.unwatch()
}

// turn waits until the machine may take its next step.
func (m *machine) turn(what string) error {
	t := &turn{m, m.name + " " + what, make(chan struct{})}
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.waiting = append(m.waiting, t)
	m.mu.Unlock()
	select {
	case m.arrived <- struct{}{}:
	default:
	}
	<-t.free
	m.note("%s", t.what)
	return m.step()
}

// step counts a step of the machine, and kills the machine if its time has come.
func (m *machine) step() error {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.steps++
	dies := m.steps == m.deathAt
	m.mu.Unlock()
	if dies {
		m.die()
		return errDead
	}
	return nil
}

// die ends the machine like kill -9, or like a power failure.
func (m *machine) die() {
	m.mu.Lock()
	m.dead = true
	m.mu.Unlock()
	kind := "killed"
	if m.power {
		kind = "power failure"
	}
	m.left = m.drive.left(m.power)
	m.fault(kind, "%s after %d steps", m.name, m.steps)
	m.cancel()
}

func (m *machine) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// survive replaces the machine's folder by what a death has left, for the next machine.
func (m *machine) survive() {
	if err := errors.Join(os.RemoveAll(m.dir), os.Rename(m.left, m.dir)); err != nil {
		m.Fatal(err)
	}
}

// A seed has one history. Go's scheduler orders the calls that one turn frees at the same time, so
// that some seeds have two.
func TestSame(t *testing.T) {
	must.NoRace(t) // it has the scheduler choose at random
	prepare(t)
	same := 0
	for seed := range uint64(20) {
		if slices.Equal(history(t, seed, liveRun).history, history(t, seed, liveRun).history) {
			same++
		}
	}
	if same < 10 {
		t.Errorf("%d of 20 seeds have the same history twice", same)
	}
}
