package host

import (
	"fmt"

	"github.com/racflow/racflow/engine/confine"
	"github.com/racflow/racflow/engine/host/memory"
)

// BoundMemory bounds what racflow and all processes that it starts hold together. of says for
// people whose bound that is.
func (h *Host) BoundMemory(bytes int64, of string) {
	h.mu.Lock()
	h.total = memory.Bound{Bytes: bytes, Of: "memory of " + of}
	h.mu.Unlock()
	h.memory.Total(h.total)
}

// bounded watches the memory of a process from its start to its end.
func (h *Host) bounded(running *runningProcess, bytes int64, of string) {
	running.begun = func(c *confine.Control) (ended func()) {
		return h.memory.Add(c.PID(), c.Keeper(), memory.Bound{Bytes: bytes, Of: "memory of " + of}, func(reason error) {
			running.fail(reason)
			_ = running.Kill(h.ctx)
		})
	}
	h.mu.Lock()
	total := h.total.Bytes
	h.mu.Unlock()
	if bytes == 0 || total > 0 && total < bytes {
		bytes = total
	}
	if bytes > 0 {
		// The runtime works harder before the bound is reached; the rest is for what it does not count.
		running.cmd.Env = append(running.cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", bytes/10*9))
	}
}

// explainKill says whether the kernel has ended processes for lack of memory since there were so many.
func explainKill(before int64) string {
	switch now, known := memory.Kills(); {
	case !known:
		return ", which is also what the system does when memory ends"
	case now > before:
		return fmt.Sprintf(", most likely by the kernel for lack of memory (its count of such ends rose by %d while this process ran); "+
			"give the machine or the container more, or bound what stages hold: memory = \"2GiB\"", now-before)
	}
	return ", and not by the kernel for lack of memory"
}
