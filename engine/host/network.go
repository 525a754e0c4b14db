package host

import (
	"os"
	"sync"

	"github.com/racflow/racflow/engine/confine/proxy"
	"github.com/racflow/racflow/engine/program"
)

// network opens the way to the hosts that a plugin may reach, in a folder of its own; closed
// ends it. The path is empty for one that may reach none.
func (h *Host) network(p *program.Program, out *output) (path string, closed func(), err error) {
	if len(p.Allow.Hosts) == 0 || p.Allow.Unconfined {
		return "", func() {}, nil
	}
	dir, err := os.MkdirTemp(h.sockets, "racflow")
	if err != nil {
		return "", nil, err
	}
	way, err := proxy.Listen(dir, p.Name, p.Allow.Hosts, func(advice string) { out.log.Warn(out.secrets.Message(advice)) })
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, err
	}
	return way.Path(), sync.OnceFunc(func() {
		_ = way.Close()
		_ = os.RemoveAll(dir)
	}), nil
}
