package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/racflow/racflow/engine/private"
	"github.com/racflow/racflow/engine/program"
	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/proto/stagepb"
	"github.com/racflow/racflow/sdk/wire"
)

// Spec says which stage a process runs.
type Spec struct {
	Kind     sdk.Kind
	Use      string          // the stage's name; for a third party's PLUGIN/STAGE
	Block    string          // the name of its block, for messages
	Config   json.RawMessage // an object, secrets included
	Secrets  []string        // the values in Config that nobody may see
	StateDir string          // made if it does not exist; empty: none
	Fits     bool            // an embedder that learns: it gets a folder below StateDir, with State
	State    []byte          // what Process.State returned; nil: it learns anew
	Samples  int             // as sdk.Setup.Samples
	Host     sdk.Host        // what the engine shares with the stage; nil: nothing
	Quiet    bool            // what it logs is not passed on
	Network  bool            // it gets the proxy settings of the environment
	// Program is that of a third party's plugin; nil: a built-in stage.
	Program *program.Program
	Paths   []string // files and folders that its config names: a third party's plugin may read them
	Memory  int64    // bytes that the process and what it starts may have; 0: any
	Debug   bool     // somebody looks at it with a debugger: it is not confined, and nothing has a time limit
}

// ConfigError says that a stage refused its config.
type ConfigError struct {
	Kind  sdk.Kind
	Block string
	// Errors name the argument that is to blame; none: the stage as a whole.
	Errors []*sdk.ArgumentError
}

func (e *ConfigError) Error() string {
	var all []string
	for _, f := range e.Errors {
		all = append(all, f.Error())
	}
	return fmt.Sprintf("%s.%s: %s", e.Kind, e.Block, strings.Join(all, "; "))
}

// Process is a running stage: its methods are those of package sdk, of
// whichever kind the stage is. A process that ends is started again behind
// them, and requests without a lasting effect are repeated; what was being
// written fails with ErrRestarted.
type Process struct {
	*wire.Stage
	host     *Host
	spec     Spec
	out      *output
	masked   sync.Once // tells of the first secret in a result
	readable sync.Once // tells that its memory is open

	replay *replayLog
	ctx    context.Context // ends with Close
	end    context.CancelFunc
	done   chan struct{} // closed when supervision has ended
	title  string        // the name and the plugin, for messages
	waits  waits

	mu          sync.Mutex
	fingerprint string
	plugin      foreign
	current     instance
	changed     chan struct{} // closed when current or failed is about to change
	failed      error         // it is not restarted any more
}

// instance is one of the processes that a Process has over time.
type instance struct {
	process *process
	conn    *wire.Conn
	unshare func()      // ends what the engine shares with it
	stage   *wire.Stage // as Configure described it
	print   string      // the fingerprint
	title   string      // the plugin's name and version
	plugin  foreign
	opened  int // replies before it was ready
	ended   *ended
}

// end ends the connection to an instance, and what is shared with it.
func (i instance) end() {
	i.conn.Close()
	i.unshare()
}

// foreign is the program of a third party's stage; of a built-in one it is empty.
type foreign struct{ name, version, hash string }

// Start starts and configures a stage. It returns a *ConfigError where the
// stage refuses its config. The process lives until Close, not until ctx ends.
func (h *Host) Start(ctx context.Context, spec Spec) (*Process, error) {
	if spec.StateDir != "" {
		err := private.MakeBelow(h.options.StateDir, spec.StateDir)
		if private.ReadOnly(err) && spec.Kind != sdk.KindStore { // what a store would make there is worth keeping
			spec.StateDir, err = h.Scratch()
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: make its state folder: %w", spec.Kind, spec.Block, err)
		}
	}
	if spec.Fits {
		dir, err := wire.StateDir(spec.StateDir, spec.State)
		if private.ReadOnly(err) {
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
	p := &Process{
		host: h, spec: spec, replay: newReplayLog(),
		out:  &output{log: log.With("stage", fmt.Sprintf("%s.%s", spec.Kind, spec.Block)), secrets: &h.secrets},
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

// Fingerprint tells what the stage's output depends on beyond its arguments.
func (p *Process) Fingerprint() string { return p.fingerprint }

// Plugin returns name, version and hash of the program of a third party's stage;
// all are empty for a built-in one.
func (p *Process) Plugin() (name, version, hash string) {
	return p.plugin.name, p.plugin.version, p.plugin.hash
}

// Close ends the process. It gives the stage a moment to close itself.
func (p *Process) Close() error {
	p.end()
	<-p.done
	p.host.remove(p)
	return p.forget()
}

// forget removes the folder of an embedder that learnt anew: what counts of it was packed.
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
		c.kill()
		var config *ConfigError
		if errors.As(err, &config) {
			return instance{}, err
		}
		if reason := c.running.failure(); reason != nil {
			err = reason
		}
		return instance{}, fmt.Errorf("%s: %s%s", p.name(), p.out.secrets.Message(err.Error()), p.out.tail())
	}
	in.plugin.hash = c.hash
	return in, nil
}

// name is what a person knows the stage by; a list of processes shows it too.
func (p *Process) name() string { return fmt.Sprintf("%s.%s", p.spec.Kind, p.spec.Block) }

func (p *Process) program() string {
	if p.spec.Program == nil {
		return "of the built-in stages"
	}
	return p.spec.Program.Path
}

func (p *Process) configure(ctx context.Context, c *process) (instance, error) {
	client := stagepb.NewStageClient(c.conn)
	offered, info, err := p.describe(ctx, client)
	if err != nil {
		return instance{}, err
	}
	config, err := p.config()
	if err != nil {
		return instance{}, err
	}
	request := &stagepb.ConfigureRequest{
		Kind: wire.EncodeKind(p.spec.Kind), Name: info.Name, Block: wire.Valid(p.spec.Block), ConfigJson: config,
		StateDir: wire.Valid(p.spec.StateDir), Samples: uint32(p.spec.Samples), Minor: wire.Minor,
	}
	in := instance{process: c, ended: newEnded(), unshare: func() {}}
	if p.spec.Host != nil {
		temp, err := p.host.temporary()
		if err != nil {
			return instance{}, err
		}
		if request.Host, in.unshare, err = p.host.shared.share(temp, sharedHost{p.spec.Host, p.out.secrets}); err != nil {
			return instance{}, err
		}
	}
	if err := p.open(ctx, client, request, offered, info, &in); err != nil {
		in.unshare()
		return instance{}, err
	}
	return in, nil
}

// open calls Configure and notes what the stage says.
func (p *Process) open(ctx context.Context, client stagepb.StageClient, request *stagepb.ConfigureRequest, offered sdk.Plugin, info sdk.Stage, in *instance) error {
	reply, err := client.Configure(ctx, request)
	if err != nil {
		return fmt.Errorf("the plugin could not be configured: %w", err)
	}
	if faults := wire.DecodeArgumentErrors(reply.GetErrors()); len(faults) > 0 {
		for i, f := range faults {
			faults[i].Err = errors.New(p.out.secrets.Message(f.Err.Error()))
		}
		return &ConfigError{Kind: p.spec.Kind, Block: p.spec.Block, Errors: faults}
	}
	reply.ResolvedJson = []byte(redactJSON(string(reply.GetResolvedJson()), p.out.secrets.Result))
	if in.stage, err = wire.Described(info, p.spec.StateDir, reply); err != nil {
		return err
	}
	in.print, in.title = p.out.secrets.Result(reply.GetFingerprint()), p.out.secrets.Result(offered.Name+" "+offered.Version)
	if p.spec.Program != nil {
		in.plugin.name, in.plugin.version = p.out.secrets.Result(offered.Name), p.out.secrets.Result(offered.Version)
	}
	in.conn = wire.NewConn(in.process.conn)
	return nil
}

// config is the stage's config. A process that follows another gets what that one has resolved.
func (p *Process) config() ([]byte, error) {
	if p.Stage == nil {
		return p.spec.Config, nil
	}
	return sdk.CompleteConfig(p.spec.Config, p.Chosen)
}

// describe finds the stage among those that the plugin offers.
func (p *Process) describe(ctx context.Context, client stagepb.StageClient) (sdk.Plugin, sdk.Stage, error) {
	reply, err := client.Describe(ctx, &stagepb.DescribeRequest{})
	if err != nil {
		return sdk.Plugin{}, sdk.Stage{}, fmt.Errorf("the plugin did not describe itself: %w", err)
	}
	offered, err := wire.DecodePlugin(reply)
	if err != nil {
		return offered, sdk.Stage{}, err
	}
	name := p.spec.Use[strings.LastIndex(p.spec.Use, "/")+1:]
	for _, s := range offered.Stages {
		if s.Kind == p.spec.Kind && s.Name == name {
			return offered, s, nil
		}
	}
	return offered, sdk.Stage{}, fmt.Errorf("plugin %s %s has no %s stage %q", offered.Name, offered.Version, p.spec.Kind, name)
}
