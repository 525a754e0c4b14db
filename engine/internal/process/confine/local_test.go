//go:build linux

package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/racflow/racflow/engine/internal/process/confine/cage"
)

// answering returns the addresses that answer to a client in the usual configuration of programs.
func answering(addresses []string) []string {
	reached := []string{}
	for _, address := range addresses {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader("question"))
		must(err)
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			if fastOpen(request.URL.Host) == nil {
				reached = append(reached, address+" by fast open")
			}
			continue
		}
		said, err := io.ReadAll(reply.Body)
		if reply.Body.Close() == nil && err == nil && string(said) == "question" {
			reached = append(reached, address)
		}
	}
	return reached
}

// fastOpen connects to an IPv4 server and sends it a request in one system call. It succeeds if there
// is an answer.
func fastOpen(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return fmt.Errorf("%s is no address of IPv4: %w", address, err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	const request = "POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n?"
	if err := unix.Sendto(fd, []byte(request), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		return err
	}
	n, err := unix.Read(fd, make([]byte, 100))
	if n == 0 {
		err = errors.Join(err, io.ErrUnexpectedEOF)
	}
	return err
}

// server starts a server on this machine that echoes, at the first address that is free; "": at none.
func server(t *testing.T, addresses ...string) (port string) {
	var l net.Listener
	for _, address := range addresses {
		var err error
		if l, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", address); err == nil {
			break
		}
	}
	if l == nil {
		return ""
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}}
	s.Start()
	t.Cleanup(s.Close)
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestLocal: a plugin reaches a server of this machine if its file allows it, at the address that
// clients use, and no other server. The proxy enforces that; without a network namespace, Landlock
// and the filter do.
func TestLocal(t *testing.T) {
	kernel := Probe()
	if kernel.Landlock < cage.LandlockTCP || !kernel.Filter {
		t.Skipf("this kernel cannot enforce all of it: %+v", kernel)
	}
	one, other, unnamed := server(t, "127.0.0.1:0"), server(t, "127.0.0.1:0"), server(t, "127.0.0.1:0")
	low := server(t, "127.0.0.1:81", "127.0.0.1:82", "127.0.0.1:83", "127.0.0.1:0") // the first ones are for root only
	six := server(t, "[::1]:0")                                                     // if there is IPv6
	for _, user := range []string{"self", "plain"} {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s alone=%v", user, alone), func(t *testing.T) {
				if !alone && !kernel.Namespaces {
					t.Skip("this system has no namespaces")
				}
				at := target{Alone: alone, Hosts: []string{"localhost:" + one, "127.0.0.1:" + low}}
				want := []string{"http://127.0.0.1:" + one, "http://localhost:" + one, "http://127.0.0.1:" + low}
				if six != "" {
					at.Hosts = append(at.Hosts, "[::1]:"+six)
					want = append(want, "http://[::1]:"+six)
					if !alone {
						want = append(want, "http://[::1]:"+one) // wherever the server listens
					}
				}
				at.Local, at.Ask = slices.Clone(at.Hosts), append(slices.Clone(want), "http://127.0.0.1:"+unnamed)
				if !alone {
					at.Local = append(at.Local, "127.0.0.1:"+other) // the proxy refuses it
					at.Ask = append(at.Ask, "http://127.0.0.1:"+other)
				}
				at = employed(t, user, at)
				if !slices.Equal(at.Reached, want) {
					t.Errorf("it reaches %q, want %q", at.Reached, want)
				}
				if refused := len(at.Advice) == 1 && strings.Contains(at.Advice[0], "may not reach 127.0.0.1:"+other+";"); refused == alone {
					t.Errorf("the proxy says %q", at.Advice)
				}
			})
		}
	}
}
