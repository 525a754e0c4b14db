package host

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/racflow/racflow/engine/internal/process/confine"
	"github.com/racflow/racflow/engine/internal/process/disk"
	"github.com/racflow/racflow/engine/internal/process/program"
	"github.com/racflow/racflow/engine/internal/process/redact"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Process is a running stage, with the methods that package sdk defines for its kind. When its
// operating system process ends, the host starts another one and repeats requests that have no
// lasting effect. Changes that were in progress fail with errRestarted.
type Process struct {
	*wire.Stage
	host     *Host
	spec     Spec
	out      *output
	masked   sync.Once // reports the first secret in a result
	readable sync.Once // reports that its memory is readable

	replay *replayLog
	ctx    context.Context // ends with Close
	end    context.CancelFunc
	done   chan struct{} // closed after supervision has ended
	title  string        // name and plugin, for messages
	waits  waits

	mu          sync.Mutex
	fingerprint string
	plugin      foreign
	current     instance
	changed     chan struct{} // closed when current or failed changes
	failed      error         // why the process is not restarted; nil: it works
}

// Attach implements sdk.Attacher. It returns a *ConfigError if the config does not fit what the
// stage found.
func (p *Process) Attach(ctx context.Context) (sdk.Attached, error) {
	found, err := p.Stage.Attach(ctx)
	if wrong := new(sdk.ArgumentError); errors.As(err, &wrong) {
		return found, &ConfigError{Kind: p.spec.Kind, Block: p.spec.Block, Errors: []*sdk.ArgumentError{wrong}}
	}
	return found, err
}

// Spec describes the stage that a process runs.
type Spec struct {
	Kind     sdk.Kind
	Use      string          // the stage's name; PLUGIN/STAGE for a third-party plugin
	Block    string          // the name of its block, for messages
	Config   json.RawMessage // an object, including secrets
	Secrets  []string        // the values in Config that must stay hidden
	StateDir string          // created if missing; empty: none
	Fits     bool            // the stage is an embedder that learns: it gets a folder below StateDir, with State
	State    []byte          // what Process.State returned; nil: it learns anew
	Samples  int             // as sdk.Setup.Samples
	Labels   sdk.LabelForm   // the same
	Host     sdk.Host        // the engine's services for the stage; nil: none
	Quiet    bool            // discards its log lines
	Network  bool            // the stage gets the proxy variables of the environment
	// Program is a third-party plugin's program; nil: a built-in stage.
	Program *program.Program
	Paths   []string // files and folders in its config: a third-party plugin may read them
	Memory  int64    // limit for the process and its children, in bytes; 0: none
	Debug   bool     // a debugger attaches: no confinement and no time limits
}

// ConfigError says that a stage refused its config.
type ConfigError struct {
	Kind  sdk.Kind
	Block string
	// Errors name the arguments to blame; none: the stage as a whole is to blame.
	Errors []*sdk.ArgumentError
}

func (e *ConfigError) Error() string {
	var all []string
	for _, f := range e.Errors {
		all = append(all, f.Error())
	}
	return fmt.Sprintf("%s.%s: %s", e.Kind, e.Block, strings.Join(all, "; "))
}

// instance is one of the operating system processes that serve a Process one after the other.
type instance struct {
	process *process
	conn    *wire.Conn
	unshare func()      // revokes its access to the engine's services
	stage   *wire.Stage // as Configure described it
	print   string      // the fingerprint
	title   string      // the plugin's name and version
	plugin  foreign
	opened  int // number of replies before it was ready
	ended   *ended
}

// end closes the connection to an instance and its access to the engine's services.
func (i instance) end() {
	i.conn.Close()
	i.unshare()
}

// foreign identifies the program of a third-party stage; empty for a built-in stage.
type foreign struct{ name, version, hash string }

// Start starts and configures a stage. It returns a *ConfigError if the stage refuses its config.
// The process lives until Close, even if ctx ends earlier.
func (h *Host) Start(ctx context.Context, spec Spec) (*Process, error) {
	if spec.StateDir != "" {
		err := disk.MakeBelow(h.options.StateDir, spec.StateDir)
		if err == nil && (spec.Program == nil || spec.Fits) { // the links of a confined plugin lead nowhere
			err = disk.OwnFiles(spec.StateDir, func(string) bool { return spec.Program != nil })
		}
		if disk.ReadOnly(err) && spec.Kind != sdk.KindStore { // a store would lose its collections in a temporary folder
			spec.StateDir, err = h.Scratch()
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: make its state folder: %w", spec.Kind, spec.Block, err)
		}
	}
	if spec.Fits {
		dir, err := wire.StateDir(spec.StateDir, spec.State)
		if disk.ReadOnly(err) {
			if dir, err = h.Scratch(); err == nil {
				dir, err = wire.StateDir(dir, spec.State)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", spec.Kind, spec.Block, err)
		}
		spec.StateDir = dir
	}
	h.secrets.Add(spec.Secrets...)
	log := h.options.Log
	if spec.Quiet {
		log = slog.New(slog.DiscardHandler)
	}
	stage := fmt.Sprintf("%s.%s", spec.Kind, spec.Block)
	p := &Process{
		host: h, spec: spec, replay: newReplayLog(),
		out:  &output{log: log.With("stage", stage), secrets: &h.secrets},
		done: make(chan struct{}), changed: make(chan struct{}),
	}
	p.ctx, p.end = context.WithCancel(h.ctx)
	if err := h.add(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	opened := p.waits.open()
	first, err := p.launch(ctx)
	opened()
	if err != nil {
		p.end()
		close(p.done)
		h.remove(p)
		return nil, errors.Join(err, p.forget())
	}
	p.current, p.fingerprint, p.plugin = first, first.print, first.plugin
	p.title = fmt.Sprintf("%s: plugin %s", p.name(), first.title)
	p.Stage = first.stage
	p.Stage.Conn, p.Stage.Name = caller{p}, p.title
	go p.supervise()
	return p, nil
}

// Fingerprint identifies what the stage's output depends on besides its arguments.
func (p *Process) Fingerprint() string { return p.fingerprint }

// Plugin returns the name, version and hash of a third-party stage's program; all are empty for a
// built-in stage.
func (p *Process) Plugin() (name, version, hash string) {
	return p.plugin.name, p.plugin.version, p.plugin.hash
}

// Close ends the process. It first gives the stage time to close itself.
func (p *Process) Close() error {
	p.end()
	<-p.done
	p.host.remove(p)
	return p.forget()
}

// forget removes the folder of an embedder that learnt anew: State has already packed what matters.
func (p *Process) forget() error {
	if p.spec.Fits && p.spec.State == nil {
		return os.RemoveAll(p.spec.StateDir)
	}
	return nil
}

// launch starts a process and configures it.
func (p *Process) launch(ctx context.Context) (instance, error) {
	l := launch{
		program: p.spec.Program, name: p.name(), network: p.spec.Network, memory: p.spec.Memory, out: p.out,
		stateDir: p.spec.StateDir, paths: p.spec.Paths, services: p.spec.Host != nil,
	}
	if p.spec.Debug {
		l.debugged()
	}
	c, err := p.host.spawn(ctx, l)
	if err != nil {
		return instance{}, fmt.Errorf("%s: the plugin %s did not start: %w", p.name(), p.program(), err)
	}
	if p.spec.Debug {
		if err := p.awaitDebugger(ctx, c); err != nil {
			c.kill()
			return instance{}, fmt.Errorf("%s: %w", p.name(), err)
		}
	}
	p.reportReadable(c)
	in, err := p.configure(ctx, c)
	if err != nil {
		err = c.failed(err, p.host.limits.stop)
		if errors.As(err, new(*ConfigError)) {
			return instance{}, err
		}
		by := p.name()
		if p.spec.Program != nil {
			by += ": plugin " + cmp.Or(in.title, p.program())
		}
		return instance{}, fmt.Errorf("%s: %s%s", by, p.out.secrets.Shown(err.Error()), p.out.tail())
	}
	in.plugin.hash = c.hash
	return in, nil
}

// name returns the stage's name in messages and process lists, such as "embed.k".
func (p *Process) name() string { return fmt.Sprintf("%s.%s", p.spec.Kind, p.spec.Block) }

func (p *Process) program() string {
	if p.spec.Program == nil {
		return "of the built-in stages"
	}
	return p.spec.Program.Path
}

func (p *Process) configure(ctx context.Context, c *process) (instance, error) {
	in := instance{process: c, ended: newEnded(), unshare: func() {}}
	offered, info, err := p.describe(ctx, c)
	in.title = p.out.secrets.Result(strings.TrimSpace(offered.Name + " " + offered.Version))
	if err != nil {
		return in, err
	}
	config, err := p.config()
	if err != nil {
		return in, err
	}
	request := &stagepb.ConfigureRequest{
		Kind: wire.EncodeKind(p.spec.Kind), Name: info.Name, Block: wire.Valid(p.spec.Block), ConfigJson: config,
		StateDir: wire.Valid(p.spec.StateDir), Samples: uint32(p.spec.Samples), Minor: wire.Minor,
	}
	if f := p.spec.Labels; f != (sdk.LabelForm{}) {
		request.Labels = &stagepb.LabelForm{Many: f.Many, Levels: wire.Valid(f.Levels)}
	}
	if p.spec.Host != nil {
		temp, err := p.host.temporary()
		if err != nil {
			return in, err
		}
		if request.Host, in.unshare, err = p.host.shared.share(temp, sharedHost{p.spec.Host, p.out.secrets}); err != nil {
			return in, err
		}
	}
	err = p.open(ctx, request, offered, info, &in)
	if err != nil {
		in.unshare()
	}
	return in, err
}

// open calls Configure and records the stage's answer in the instance.
func (p *Process) open(ctx context.Context, request *stagepb.ConfigureRequest, offered sdk.Plugin, info sdk.Stage, in *instance) error {
	reply := &stagepb.ConfigureReply{}
	err := in.process.call(ctx, stagepb.Stage_Configure_FullMethodName, request, reply)
	if err != nil {
		return fmt.Errorf("the plugin could not be configured: %w", err)
	}
	if faults := wire.DecodeArgumentErrors(reply.GetErrors()); len(faults) > 0 {
		for i, f := range faults {
			faults[i].Err = errors.New(p.out.secrets.Shown(f.Err.Error()))
		}
		return &ConfigError{Kind: p.spec.Kind, Block: p.spec.Block, Errors: faults}
	}
	reply.ResolvedJson = []byte(redactJSON(string(reply.GetResolvedJson()), p.out.secrets.Result))
	if in.stage, err = wire.Described(info, p.spec.StateDir, reply); err != nil {
		return err
	}
	in.print = p.out.secrets.Result(reply.GetFingerprint())
	if p.spec.Program != nil {
		in.plugin.name, in.plugin.version = p.out.secrets.Result(offered.Name), p.out.secrets.Result(offered.Version)
	}
	in.conn = wire.NewConn(in.process.conn)
	return nil
}

// config returns the stage's config. A restarted process gets the config that the first one resolved.
func (p *Process) config() ([]byte, error) {
	if p.Stage == nil {
		return p.spec.Config, nil
	}
	return sdk.CompleteConfig(p.spec.Config, p.Chosen)
}

// describe finds the stage among those that the plugin offers.
func (p *Process) describe(ctx context.Context, c *process) (sdk.Plugin, sdk.Stage, error) {
	offered := p.host.options.Builtin
	if p.spec.Program != nil || offered.Name == "" {
		reply := &stagepb.DescribeReply{}
		err := c.call(ctx, stagepb.Stage_Describe_FullMethodName, &stagepb.DescribeRequest{}, reply)
		if err != nil {
			return sdk.Plugin{}, sdk.Stage{}, fmt.Errorf("the plugin did not describe itself: %w", err)
		}
		if offered, err = wire.DecodePlugin(reply); err != nil {
			return offered, sdk.Stage{}, err
		}
	}
	name := p.spec.Use[strings.LastIndex(p.spec.Use, "/")+1:]
	for _, s := range offered.Stages {
		if s.Kind == p.spec.Kind && s.Name == name {
			return offered, s, nil
		}
	}
	return offered, sdk.Stage{}, fmt.Errorf("plugin %s %s has no %s stage %q", offered.Name, offered.Version, p.spec.Kind, name)
}

// runningProcess is one operating system process behind go-plugin's Runner interface. Unlike
// go-plugin's own runner, it holds the plugin's standard input open so that the plugin notices the
// end of racflow, reads all output itself, passes only a checked handshake line on, and can always
// be killed.
type runningProcess struct {
	prepared // set when Start runs
	path     string
	out      *output
	lifeline *os.File
	shown    string         // the certificate and key of a built-in stage; other plugins make their own
	hello    *io.PipeReader // the handshake line, for go-plugin
	ended    chan struct{}  // closed when the process and its children have ended
	exit     confine.Exit   // exit status or signal
	exited   chan struct{}  // closed after its output has been read, too
	begun    func(*confine.Control) (ended func())

	mu     sync.Mutex
	pid    int   // 0: not started
	killed bool  // it must no longer start
	reason error // why it cannot be used
}

func newRunningProcess(path string, out *output) *runningProcess {
	return &runningProcess{path: path, out: out, ended: make(chan struct{}), exited: make(chan struct{})}
}

// set stores the prepared process to start. Kill may have been called before.
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
		_, _ = lifeline.WriteString(p.shown + "\x00") // fits into the pipe's buffer
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
		case <-time.After(200 * time.Millisecond): // another process has its output open
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
	if err := p.control.Start(); err != nil { // without the lock: it waits for a launcher, and Kill must not block
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

// readStdout checks the first line, which is the handshake, and then drains the pipe for as long as
// the process lives.
func (p *runningProcess) readStdout(stdout io.Reader, hello *io.PipeWriter) {
	buffered := bufio.NewReaderSize(stdout, 8<<10)
	line, err := buffered.ReadSlice('\n')
	wrong := checkHello(string(line), p.shown, p.out.secrets)
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		p.fail(errNotReady)
		select { // its exit status says more than that of a kill
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

// checkHello says what is wrong with a handshake line and masks secrets.
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

// fail records why the process cannot be used; the first reason stays.
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

// Kill implements runner.Runner. It ends the process, in any state, and all of its children.
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

// Stdout implements runner.Runner. It yields at most the handshake line.
func (p *runningProcess) Stdout() io.ReadCloser { return p.hello }

// Stderr implements runner.Runner. It is empty, because go-plugin's parser panics on JSON lines
// that it does not expect.
func (p *runningProcess) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name implements runner.Runner.
func (p *runningProcess) Name() string { return p.path }

// ID implements runner.Runner.
func (p *runningProcess) ID() string { return strconv.Itoa(p.plugin()) }

// plugin returns the process id of the plugin itself, not of its launcher; 0: it has not started.
func (p *runningProcess) plugin() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
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

// launch says which process to start and how.
type launch struct {
	program *program.Program // nil: the built-in stages
	name    string           // label of a built-in stage in process lists
	network bool
	// Only for third-party programs:
	stateDir string   // the folder that it may change; empty: none
	paths    []string // the paths that it may read
	services bool     // it may call the engine's services
	memory   int64    // limit for the process and its children, in bytes; 0: none
	out      *output

	environment []string      // added to the variables that every plugin gets
	start       time.Duration // time limit until it answers; 0: the host's
}

// process is a program that runs and has passed the handshake.
type process struct {
	hash    string // of a third-party program
	running *runningProcess
	client  *plugin.Client
	conn    *grpc.ClientConn
}

// spawn starts a process and waits until it answers.
func (h *Host) spawn(ctx context.Context, l launch) (*process, error) {
	marks, path, hash := []string{"PLUGIN_CLIENT_CERT=" + h.id.authority}, h.self, ""
	if l.program == nil {
		marks = append(marks, wire.StageKey+"="+l.name)
	} else {
		checked, err := l.program.Check()
		if err != nil {
			return nil, err
		}
		hash = checked
		path = l.program.Path
	}
	temp, err := h.temporary()
	if err != nil {
		return nil, err
	}
	within := cmp.Or(l.start, h.limits.start)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it was not ready within %v", within))
	defer cancel()
	running := newRunningProcess(path, l.out)
	if l.program == nil {
		running.shown = h.id.builtin
	}
	var sockets string
	config := h.id.dialing.Clone() // a copy: go-plugin makes the plugin's certificate the only trusted one
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: wire.Handshake(),
		Plugins:         plugin.PluginSet{},
		RunnerFunc: func(_ hclog.Logger, offered *exec.Cmd, dir string) (runner.Runner, error) {
			sockets = dir
			next, err := h.prepare(ctx, l, dir)
			if err != nil {
				return nil, err
			}
			next.cmd.Env = slices.Concat(next.cmd.Env, offered.Env, marks, l.environment)
			running.set(next)
			h.bounded(running, l.memory, l.name)
			return running, nil
		},
		TLSConfig:        config,
		StartTimeout:     Forever, // ctx limits the start instead
		SyncStdout:       l.out.lines("stdout"),
		SyncStderr:       l.out.lines("stderr"),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Logger:           hclog.NewNullLogger(),
		GRPCDialOptions:  wire.DialOptions(),
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: temp},
	})
	c := &process{hash: hash, running: running, client: client}
	stop := context.AfterFunc(ctx, func() {
		running.fail(context.Cause(ctx))
		_ = running.Kill(ctx)
	})
	connected, err := client.Client()
	if !stop() || err != nil {
		c.kill()
		_ = os.RemoveAll(sockets)
		return nil, c.explain(err)
	}
	c.conn = connected.(*plugin.GRPCClient).Conn
	return c, nil
}

var errNotReady = errors.New("it ended before it was ready")

// explain says why a process did not start, with its exit status and last output.
func (c *process) explain(err error) error {
	reason := c.running.failure()
	if reason == nil {
		reason = errors.New(c.running.out.secrets.Shown(err.Error()))
	}
	if c.running.plugin() == 0 {
		return reason
	}
	select {
	case <-c.running.exited:
		if c.running.exit.Signal == 0 || errors.Is(reason, errNotReady) { // otherwise racflow has ended it
			reason = fmt.Errorf("%w (%s)", reason, describeExit(c.running.exit))
		}
	default:
	}
	return fmt.Errorf("%w%s", reason, c.running.out.tail())
}

// stop asks the process to end, and kills it if it has not within grace.
func (c *process) stop(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	go func() {
		// go-plugin's own client waits for an answer without a deadline.
		if isUnimplemented(c.conn.Invoke(ctx, shutdownMethod, &emptypb.Empty{}, &emptypb.Empty{})) {
			cancel()
		}
	}()
	select {
	case <-c.running.exited:
	case <-ctx.Done():
	}
	c.kill()
}

// shutdownMethod is go-plugin's method that asks a process to end.
const shutdownMethod = "/plugin.GRPCController/Shutdown"

func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// kill ends the process at once. Only then may go-plugin clean up: it would wait for a process that
// hangs.
func (c *process) kill() {
	_ = c.running.Kill(context.Background())
	cleaned := make(chan struct{})
	go func() {
		if c.running.plugin() != 0 {
			<-c.running.exited
		}
		c.client.Kill()
		close(cleaned)
	}()
	select {
	case <-cleaned:
	case <-time.After(time.Second): // the process may be stuck in the kernel
	}
}
