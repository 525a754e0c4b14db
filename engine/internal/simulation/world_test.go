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

	"github.com/racflow/racflow/sdk/support"
)

var (
	seeds = flag.Int("seeds", 0, "how many histories each test goes through; 0: as many as CI does")
	first = flag.Uint64("first", 0, "seed of the first of them")
)

var (
	errDead = errors.New("this machine is dead") // what a machine that has died gets from everything
	errAway = errors.New("the service is away")
)

// world is all that happens in one history.
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

// turn is somebody who waits at a seam.
type turn struct {
	m    *machine
	what string
	free chan struct{}
}

// histories goes through n histories. Each has its own seed, and live is what happens in it.
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

// found goes through histories that have once found a defect.
func found(t *testing.T, seeds map[string]uint64, live func(*world)) {
	for name, seed := range seeds {
		t.Run(name, func(t *testing.T) { history(t, seed, live) })
	}
}

func history(t *testing.T, seed uint64, live func(*world)) *world {
	w := &world{seed: seed, random: rand.New(rand.NewPCG(seed, 41)), lost: map[string]int{}, machines: map[string]*machine{}}
	synctest.Test(t, func(t *testing.T) {
		w.T, w.over, w.arrived = t, make(chan struct{}), make(chan struct{}, 1) // which belong to the bubble
		cryptotest.SetGlobalRandom(t, seed)
		dir := filepath.Join(memory(), fmt.Sprintf("history-%010d", rand.Uint32())) // as long each time: paths are in files
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

// memory is a folder of files in memory, if the system has one: the simulated disks need no real one.
func memory() string {
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return os.TempDir()
	}
	return dir
}

// turns lets those who wait go on, one at a time, once everything else rests.
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

// draw is a number below n.
func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// one is true once in n times.
func (w *world) one(n int) bool { return w.draw(n) == 0 }

// drawn is a name that the system draws, and no seed.
var drawn = regexp.MustCompile(`new-\d+|\b[0-9a-f]{16}\b`)

// note adds to the history.
func (w *world) note(format string, args ...any) {
	text := drawn.ReplaceAllString(strings.ReplaceAll(fmt.Sprintf(format, args...), w.dir, ""), "*")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, text)
}

// fault counts a fault of a kind, and notes it.
func (w *world) fault(kind, format string, args ...any) {
	w.note(kind+": "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[kind]++
}

// faults is how many faults of these kinds there were.
func (w *world) faults(kinds ...string) (times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range kinds {
		times += w.lost[kind]
	}
	return times
}

// machine is a computer with a process on it, and a disk.
type machine struct {
	*world
	name   string
	dir    string
	drive  *drive
	ctx    context.Context // ends with its death
	cancel context.CancelFunc
	sees   func(l *link, name string, message any) // gets what goes to stages; nil: nobody looks

	stages  atomic.Int64 // that run
	refuses func() bool  // a stage that is to start does not; nil: each does

	deathAt int // the step with which it dies; 0: it lives on
	deathOn struct {
		op   support.Op
		file string // the end of its name
		n    int    // the n-th time
	}
	deathSeal int  // instead: how many times it still forces or renames something, the last time in vain; 0: it does not count
	power     bool // it is the power that fails
	doomed    bool // it may die
	steps     int
	dead      bool
	left      string // what its death left of its folder

	writes  atomic.Bool    // it has the output
	outputs []string       // of runs that may be there
	open    map[string]int // stages that work on a text
}

// machine begins to live, with what is in a folder.
func (w *world) machine(dir string) *machine {
	w.mu.Lock()
	m := &machine{world: w, name: fmt.Sprint("m", len(w.machines)+1), dir: dir, open: map[string]int{}}
	w.machines[m.name] = m
	w.mu.Unlock()
	m.ctx, m.cancel = context.WithCancel(w.Context())
	m.drive = watchDrive(m)
	return m
}

// end is a calm end: nothing is lost.
func (m *machine) end() {
	m.cancel()
	m.drive.unwatch()
}

// turn waits until the machine may go on with something.
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

// step counts something that the machine does, and is its death if that comes with it.
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

// die ends the machine as kill -9 does, or as the power does when it fails.
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

// survive puts what a death has left in the place of the machine's folder, for the next one.
func (m *machine) survive() {
	if err := errors.Join(os.RemoveAll(m.dir), os.Rename(m.left, m.dir)); err != nil {
		m.Fatal(err)
	}
}

// A seed has one history. What a turn sets free at the same time is ordered by Go's scheduler, so that some have two.
func TestSame(t *testing.T) {
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
