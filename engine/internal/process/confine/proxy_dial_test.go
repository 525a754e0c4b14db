package confine

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	for text, want := range map[string]string{ // a want with a space is a part of the error
		"api.example.com:443":  "api.example.com:443",
		"API.Example.com.:443": "api.example.com:443",
		"bücher.example:443":   "xn--bcher-kva.example:443",
		"*.example.com:8080":   "*.example.com:8080",
		"10.1.2.3:80":          "10.1.2.3:80",
		"[2001:DB8::1]:80":     "[2001:db8::1]:80",
		"[::ffff:10.0.0.1]:80": "10.0.0.1:80",
		"localhost:11434":      "localhost:11434",
		"api.example.com":      "is no host with a port",
		"https://a.example":    "is no host",
		"a.example:https":      "the port must be",
		"a.example:0":          "the port must be",
		"a.example:65536":      "the port must be",
		":443":                 "no name of a host",
		"*:443":                "no name of a host",
		"*.com:443":            "allows too much",
		"*.10.0.0.1:80":        "allows too much",
		"a.*.example:443":      "no name of a host",
		"*.*.example.com:443":  "no name of a host",
		"a b.example:443":      "no name of a host",
		"a\n.example:443":      "no name of a host",
	} {
		h, err := ParseHost(text)
		if got := h.String(); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	entries := []string{"LOCALHOST:11434", "a.example:80", "127.0.0.1:8080", "[::1]:1", "[::ffff:127.0.0.2]:2", "10.0.0.1:80", "0.0.0.0:80", "*.localhost.example:80", "none"}
	if got, want := Loopback(entries), []string{"localhost:11434", "127.0.0.1:8080", "[::1]:1", "127.0.0.2:2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAllows(t *testing.T) {
	for _, test := range []struct {
		entry, host string
		want        bool
	}{
		{"a.example.com:443", "a.example.com:443", true},
		{"a.example.com:443", "A.EXAMPLE.COM.:443", true},
		{"a.example.com:443", "a.example.com:80", false},
		{"a.example.com:443", "b.a.example.com:443", false},
		{"*.example.com:443", "a.example.com:443", true},
		{"*.example.com:443", "example.com:443", false},
		{"*.example.com:443", "b.a.example.com:443", false},
		{"*.example.com:443", "a.example.com.evil.org:443", false},
		{"*.example.com:443", "aexample.com:443", false},
		{"127.0.0.1:80", "[::ffff:127.0.0.1]:80", true},
		{"localhost:80", "127.0.0.1:80", false},
	} {
		entry, err := ParseHost(test.entry)
		host, err2 := ParseHost(test.host)
		if got := entry.allows(host); err != nil || err2 != nil || got != test.want {
			t.Errorf("%s allows %s: %v, %v, %v", test.entry, test.host, got, err, err2)
		}
	}
}

func TestOurs(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true, "::": true,
		"169.254.169.254": true, "fe80::1": true, "fe80::1%lo": true, "224.0.0.1": true,
		"192.0.2.1": false, "2001:db8::7": false,
	} {
		if got := ours(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is this machine's: %v", address, got)
		}
	}
}
