package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/racflow/racflow/engine/confine"
	"github.com/racflow/racflow/engine/host/memory"
	"github.com/racflow/racflow/engine/redact"
	"github.com/racflow/racflow/sdk/wire"
)

// runningProcess is one operating system process, as go-plugin wants to see
// it. Beside what go-plugin's own does, it holds the plugin's standard input
// open as a life line, reads all output itself and passes on nothing but a
// checked handshake line, and can always be killed.
type runningProcess struct {
	prepared // by the time of Start
	path     string
	out      *output
	lifeline *os.File
	shown    string         // the certificate and key that a built-in stage shows: a plugin makes its own
	hello    *io.PipeReader // the handshake line, for go-plugin
	ended    chan struct{}  // closed when it has ended, and all that it has started
	exit     confine.Exit   // how it has ended
	exited   chan struct{}  // closed when its output has been read, too
	begun    func(*confine.Control) (ended func())
	kills    int64 // what the kernel had ended for lack of memory before it began

	mu     sync.Mutex
	pid    int   // 0: not started
	killed bool  // it must not be started any more
	reason error // why it cannot be used
}

func newRunningProcess(path string, out *output) *runningProcess {
	return &runningProcess{path: path, out: out, ended: make(chan struct{}), exited: make(chan struct{})}
}

// set gives it what is started. Kill may have been called before.
func (p *runningProcess) set(next prepared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepared = next
}

var _ runner.Runner = (*runningProcess)(nil)

// Start implements runner.Runner.
func (p *runningProcess) Start(context.Context) error {
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), lifeline.Close())
	}
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close(), lifeline.Close(), stdout.Close(), stdoutEnd.Close())
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdoutEnd, stderrEnd
	if p.shown != "" {
		_, _ = lifeline.WriteString(p.shown + "\x00") // it fits into the pipe
	}
	err = p.begin()
	_ = errors.Join(stdin.Close(), stdoutEnd.Close(), stderrEnd.Close())
	if err != nil {
		_ = errors.Join(lifeline.Close(), stdout.Close(), stderr.Close())
		p.close()
		p.fail(explainExec(p.path, err))
		return err
	}
	p.lifeline = lifeline
	hello, helloEnd := io.Pipe()
	p.hello = hello

	var reading sync.WaitGroup
	reading.Go(func() {
		lines := p.out.lines("stderr")
		_, _ = io.Copy(lines, stderr)
		_ = lines.Close()
	})
	reading.Go(func() { p.readStdout(stdout, helloEnd) })
	ended := p.begun(p.control)
	go func() {
		p.exit = <-p.control.Ended()
		ended()
		p.close()
		close(p.ended)
		read := make(chan struct{})
		go func() { reading.Wait(); close(read) }()
		select {
		case <-read:
		case <-time.After(200 * time.Millisecond): // someone else has its output open
		}
		_ = errors.Join(stdout.Close(), stderr.Close(), lifeline.Close(), helloEnd.Close())
		close(p.exited)
	}()
	return nil
}

func (p *runningProcess) begin() error {
	p.mu.Lock()
	killed := p.killed
	p.mu.Unlock()
	if killed {
		return os.ErrProcessDone
	}
	p.kills, _ = memory.Kills()
	if err := p.control.Start(); err != nil { // it waits for a launcher, and Kill may be called meanwhile
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid = p.control.PID()
	if p.killed {
		p.control.End()
	}
	return nil
}

// readStdout checks the first line, which is the handshake, and then keeps the
// pipe empty for as long as the process lives.
func (p *runningProcess) readStdout(stdout io.Reader, hello *io.PipeWriter) {
	buffered := bufio.NewReaderSize(stdout, 8<<10)
	line, err := buffered.ReadSlice('\n')
	wrong := checkHello(string(line), p.shown, p.out.secrets)
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		p.fail(errors.New("it ended before it was ready"))
		select { // its exit status says more than a kill would
		case <-p.ended:
		case <-time.After(500 * time.Millisecond):
		}
		_ = hello.Close()
	case wrong != nil:
		p.fail(wrong)
		_ = hello.Close()
		_ = p.Kill(context.Background())
	default:
		_, _ = hello.Write(line)
	}
	lines := p.out.lines("stdout")
	_, _ = io.Copy(lines, buffered)
	_ = lines.Close()
	_ = hello.Close()
}

// checkHello says what is wrong with a handshake line, without a secret.
func checkHello(line, shown string, secrets *redact.Secrets) error {
	part := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(part) < 5 || part[0] == "":
		shown := secrets.Message(line)
		shown = strings.ToValidUTF8(shown[:min(len(shown), 80)], "?")
		return fmt.Errorf("it is not a racflow plugin: its first line of output is %q, not a handshake; "+
			"a plugin calls serve.Plugin first and prints to standard error only", strings.TrimSpace(shown))
	case part[0] != "1":
		return fmt.Errorf("it speaks version %s of go-plugin's protocol, racflow speaks version 1; rebuild it with a current SDK", secrets.Message(part[0]))
	case part[1] != strconv.Itoa(wire.ProtocolVersion):
		return fmt.Errorf("it speaks version %s of racflow's protocol, this racflow version %d; "+
			"rebuild it with the SDK of this racflow, or update racflow", secrets.Message(part[1]), wire.ProtocolVersion)
	case part[2] != "unix":
		return fmt.Errorf("it listens on %s; a plugin listens on a unix socket in PLUGIN_UNIX_SOCKET_DIR", secrets.Message(part[2]))
	case part[4] != "grpc":
		return fmt.Errorf("it speaks %s; a plugin speaks grpc", secrets.Message(part[4]))
	case shown == "" && (len(part) < 6 || len(part[5]) <= 50):
		return errors.New("it gave no certificate; a plugin speaks TLS where PLUGIN_CLIENT_CERT is set and " +
			"puts its own certificate into the handshake line")
	}
	return nil
}

// explainExec says why a program could not be started.
func explainExec(path string, err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no program %s (or not the interpreter that it names)", path)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%s may not be executed; try: chmod +x %s", path, path)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s is not a program for this machine", path)
	}
	return fmt.Errorf("%s could not be started: %w", path, err)
}

// fail remembers the first reason why the process cannot be used.
func (p *runningProcess) fail(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reason == nil {
		p.reason = reason
	}
}

func (p *runningProcess) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason
}

// Kill implements runner.Runner. It ends the process whatever state it is in,
// and all that it has started.
func (p *runningProcess) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	select {
	case <-p.ended:
		return nil
	default:
	}
	if p.control != nil {
		p.control.End()
	}
	return nil
}

// Wait implements runner.Runner.
func (p *runningProcess) Wait(context.Context) error {
	<-p.exited
	return nil
}

// Stdout implements runner.Runner: at most the handshake line.
func (p *runningProcess) Stdout() io.ReadCloser { return p.hello }

// Stderr implements runner.Runner. It is empty: go-plugin's parser panics on
// lines of JSON that it does not expect.
func (p *runningProcess) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (p *runningProcess) Name() string { return p.path }

// ID implements runner.Runner.
func (p *runningProcess) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strconv.Itoa(p.pid)
}

// plugin is the process id of the plugin itself.
func (p *runningProcess) plugin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

func (p *runningProcess) started() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid != 0
}

// Diagnose implements runner.Runner.
func (p *runningProcess) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.Runner.
func (p *runningProcess) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin implements runner.Runner.
func (p *runningProcess) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
