//go:build linux

package cli

import (
	"strings"
	"testing"

	"github.com/racflow/racflow/engine/internal/remote/natstest"
)

// partition stands between a process and the servers: it passes everything on until it is told to hold it, as
// a network does that loses packets, or to cut connections.
type partition struct {
	urls string // as the process behind it sees the servers
	all  []*natstest.Proxy
}

func newPartition(t *testing.T, c *natsServers) *partition {
	t.Helper()
	p := &partition{}
	var urls []string
	for _, s := range c.all {
		proxy := natstest.NewProxy(t, s.address)
		p.all, urls = append(p.all, proxy), append(urls, proxy.URL())
	}
	p.urls = strings.Join(urls, ",")
	return p
}

// isolate lets nothing through any more. With cut, connections end, and so do new ones; without, they stay as
// they are, and silent.
func (p *partition) isolate(cut bool) {
	for _, proxy := range p.all {
		if cut {
			proxy.Cut()
		} else {
			proxy.Freeze()
		}
	}
}

// heal lets everything through again, with what was held.
func (p *partition) heal() {
	for _, proxy := range p.all {
		proxy.Heal()
	}
}
