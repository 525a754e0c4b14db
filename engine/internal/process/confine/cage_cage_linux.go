package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process that is started to become a plugin never reaches its main function. Init functions run
// on one thread: the layers confine that thread, and they survive exec.
func init() {
	if os.Getenv(Mark) == Cage {
		unix.CloseOnExec(Pipe)
		message := make([]byte, 256<<10)
		n, err := unix.Read(Pipe, message)
		var s Spec
		if err == nil {
			err = json.Unmarshal(message[:n], &s)
		}
		doing := "read what to start"
		if err == nil {
			doing, err = become(&s)
		}
		if err != nil {
			f := &Failure{Doing: doing}
			if !errors.As(err, &f.Errno) || doing != starting {
				f.Text = err.Error()
			}
			send(Report{Failed: f})
		}
		syscall.Exit(1)
	}
}

func send(r Report, fds ...int) {
	message, err := json.Marshal(r)
	if err == nil {
		var rights []byte
		if len(fds) > 0 {
			rights = unix.UnixRights(fds...)
		}
		err = unix.Sendmsg(Pipe, message, rights, nil, 0)
	}
	if err != nil {
		syscall.Exit(1) // the keeper has ended
	}
}

const starting = "start it"

// become confines this process and executes the plugin. If it returns, no plugin runs: with an
// error, doing is the step that failed; without one, become has sent the keeper a report.
func become(s *Spec) (doing string, err error) {
	port := s.Port
	if s.Namespaces {
		if err := raiseLoopback(); err != nil {
			send(Report{Again: true})
			return "", nil //nolint:nilerr // some systems let users create namespaces but do nothing in them
		}
		if s.Network {
			if port, err = furnish(s.Local); err != nil {
				return "listen for the plugin's connections", err
			}
		}
	}
	kernel := Enforced{Namespaces: s.Namespaces, Landlock: landlockVersion()}
	r := reachable(s)
	if s.Namespaces {
		kernel.View, err = enterView(r.follow(s.Work), r)
		if err != nil {
			return "make its view of the file system", err
		}
	}
	if err := os.Chdir(s.Work); err != nil {
		return "enter its working folder", err
	}
	if err := limit(); err != nil {
		return "limit it", err
	}
	if err := restrict(r, s.Namespaces, cagePorts(port, s.Local)); err != nil {
		return "confine it by Landlock", err
	}
	if kernel.Filter, err = filter(s.Namespaces, families(s)); err != nil {
		return "filter its system calls", err
	}
	if s.Probe {
		send(Report{Kernel: &kernel})
		return "", nil
	}
	// Set last: a change of credentials would reset it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return "tie it to its keeper", err
	}
	return starting, syscall.Exec(s.Path, append([]string{s.Path}, s.Args...), environment(s, port))
}

// environment returns the process's variables, with its own folders and the proxy's address set.
func environment(s *Spec, port int) []string {
	own := []string{"HOME=" + s.Home, "TMPDIR=" + s.Temp, "PWD=" + s.Work}
	if s.Network {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
			own = append(own, fmt.Sprintf("%s=http://127.0.0.1:%d", name, port))
		}
	}
	replaced := append([]string{Mark + "=", "NO_PROXY=", "no_proxy=", "ALL_PROXY=", "all_proxy="}, own...)
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(replaced, func(r string) bool { return strings.HasPrefix(r, name+"=") })
	})
	return append(kept, own...)
}
