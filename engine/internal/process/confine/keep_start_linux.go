package confine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces are the namespaces that a plugin gets if the kernel allows it: users, so that
// unprivileged users can create the others; an empty network; SysV IPC; and mounts, for the view of
// the file system.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWNS

// startKept starts the program, confined as far as the kernel allows.
func startKept(s *Spec) (pid int, first Report, err error) {
	if s.Unconfined {
		cmd := command(s.Path, s.Args)
		if err := cmd.Start(); err != nil {
			return 0, first, err
		}
		return cmd.Process.Pid, first, nil
	}
	for _, s.Namespaces = range []bool{true, false} {
		pid, first, err = startCage(s)
		if err == nil && !first.Again {
			break
		}
	}
	return pid, first, err
}

// command starts a process in a group of its own, so that a plugin that signals its group does not
// hit the keeper. The process dies with the keeper.
func command(path string, args []string) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:noctx // it ends with the plugin
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// startCage starts this program again: cage.go confines that process, which then becomes the plugin.
func startCage(s *Spec) (pid int, first Report, err error) {
	if s.Network && !s.Namespaces {
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
		if err != nil {
			return 0, first, err
		}
		s.Port = listener.Addr().(*net.TCPAddr).Port
		go relay(listener, s.Proxy, "")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, first, err
	}
	cage, own := os.NewFile(uintptr(pair[0]), "cage"), os.NewFile(uintptr(pair[1]), "keeper")
	defer own.Close()
	cmd := command("/proc/self/exe", []string{s.Path})
	cmd.Args[0] = "racflow"
	cmd.Env = append(os.Environ(), Mark+"="+Cage)
	cmd.ExtraFiles = []*os.File{cage}
	if s.Namespaces {
		cmd.SysProcAttr.Cloneflags = namespaces
		// Without root, exec drops the capabilities of a namespace's creator, except these.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP}
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	err = cmd.Start()
	_ = cage.Close()
	if err != nil {
		return 0, first, err
	}
	message, err := json.Marshal(s)
	if err == nil {
		_, err = own.Write(message)
	}
	if err != nil {
		return 0, first, fmt.Errorf("send the launcher what to start: %w", err)
	}
	first, err = answers(pair[1], s.Proxy)
	return cmd.Process.Pid, first, err
}

// answers reads the reports of the cage process until it becomes the plugin, which closes its end.
func answers(fd int, proxy string) (last Report, err error) {
	message, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, with, _, _, err := unix.Recvmsg(fd, message, rights, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR: //nolint:errorlint // as the system call returns it
			continue
		case err != nil:
			return last, err
		case n == 0:
			return last, nil
		}
		last = Report{}
		if err := json.Unmarshal(message[:n], &last); err != nil {
			return last, err
		}
		if with == 0 {
			continue
		}
		listener, err := received(rights[:with])
		if err != nil {
			return last, err
		}
		go relay(listener, proxy, last.Host)
	}
}

// received returns the listener that came with a message.
func received(rights []byte) (net.Listener, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}
