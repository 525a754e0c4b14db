//go:build !linux

package confine

import "os/exec"

// keeper is known on Linux only.
type keeper struct{}

func (*keeper) start(*Control) error { return nil }
func (*keeper) end()                 {}

// Command prepares a program. Nothing confines it on this system, and only its process group
// ends with it.
func Command(_ string, _ Policy, path string, args ...string) (*exec.Cmd, *Control, error) {
	cmd := exec.Command(path, args...) //nolint:noctx // it outlives the context of its start
	return cmd, Plain(cmd), nil
}
