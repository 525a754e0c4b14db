package confine

import (
	"maps"
	"net/netip"
	"testing"
)

// TestPlaces: each host has its own address, and also the addresses of "localhost" unless another
// host is there.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		local []string
		want  map[string]string
	}{
		"none":            {want: map[string]string{}},
		"a name":          {[]string{"localhost:1"}, map[string]string{"127.0.0.1:1": "localhost:1", "[::1]:1": "localhost:1"}},
		"an address":      {[]string{"[::1]:1"}, map[string]string{"127.0.0.1:1": "[::1]:1", "[::1]:1": "[::1]:1"}},
		"another address": {[]string{"127.0.0.2:1"}, map[string]string{"127.0.0.2:1": "127.0.0.2:1"}},
		"both": {
			[]string{"localhost:1", "[::1]:1", "127.0.0.1:1", "[::1]:2"},
			map[string]string{"127.0.0.1:1": "127.0.0.1:1", "[::1]:1": "[::1]:1", "127.0.0.1:2": "[::1]:2", "[::1]:2": "[::1]:2"},
		},
	} {
		got := map[string]string{}
		for _, l := range places(c.local) {
			ip, _ := netip.AddrFromSlice(l.IP)
			got[netip.AddrPortFrom(ip, l.Port).String()] = l.Host
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
