package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stage describes one stage of a plugin and can open it. Make a Stage with the function of its kind:
// ChunkStage, EnrichStage, EmbedStage, StoreStage, RerankStage, PromptStage, SampleStage or
// ElectStage.
type Stage struct {
	Kind      Kind
	Name      string // what `use` says in the file
	Doc       string // one or two sentences
	Arguments []Argument
	Reads     Columns // of an item; a stage that embeds or stores always reads Text
	Network   bool    // it talks to other machines
	Batch     int     // preferred rows per call; 0: no opinion
	Filters   bool    // a store that honours Query.Filter
	Example   string  // lines of a config block, for people; empty: the required arguments show it
	Validates bool    // Validate finds more than the arguments' tags do
	Fits      bool    // an open stage may be a Fitter
	FitReads  Columns // columns that a Fitter needs of rows, besides id and label
	Pends     bool    // its results may be Pending
	PendsIf   string  // only if this bool argument is true, results may be Pending; empty: they always may
	Attaches  string  // of a store that can be an Attacher: the argument that names the collection; empty: it cannot

	open     func(context.Context, Setup, []byte) (any, error)
	validate func([]byte) error
	check    any // func(C) error of Validates
	places   any // func(C) map[string]string of Addresses
	address  func([]byte) map[string]string
	revision string // of the stage's code
}

// Delimiter is the line between the two parts of an Entry's Context.
const Delimiter = "---"

// JoinContext joins two lists into an Entry's Context: the lines that place a text in its document,
// and the terms that were added to the text. It leaves out empty lines, and lines that equal
// Delimiter. SplitContext is its inverse.
func JoinContext(placing, terms []string) string {
	before, behind := lines(placing), lines(terms)
	if len(behind) == 0 {
		return strings.Join(before, "\n")
	}
	return strings.Join(append(append(before, Delimiter), behind...), "\n")
}

// SplitContext returns the lines that place a text in its document, and the terms that were added to
// the text. A context without a line Delimiter has no terms.
func SplitContext(context string) (placing string, terms []string) {
	if placing, rest, ok := strings.Cut("\n"+context+"\n", "\n"+Delimiter+"\n"); ok {
		return strings.TrimPrefix(placing, "\n"), lines(strings.Split(rest, "\n"))
	}
	return context, nil
}

// lines turns each text that is not empty into one line.
func lines(texts []string) []string {
	var all []string
	for _, text := range texts {
		if line := strings.Join(strings.Fields(text), " "); line != "" && line != Delimiter {
			all = append(all, line)
		}
	}
	return all
}

// RowErrors fails single rows of a batch: it maps a row number to the cause. A method returns it
// together with the results of the other rows.
type RowErrors map[int]error

func (e RowErrors) Error() string {
	for row, err := range e {
		if len(e) == 1 {
			return fmt.Sprintf("row %d: %v", row, err)
		}
		return fmt.Sprintf("%d rows failed, row %d among them: %v", len(e), row, err)
	}
	return "no row failed"
}

// Code says how the engine may react to an error.
type Code uint8

// The codes of an error. An error without one counts as CodeInternal.
const (
	CodeInternal  Code = iota // an error of the stage itself
	CodeInvalid               // the same input will fail again
	CodeTransient             // another try may succeed
	CodeCancelled
	CodeDeadline
	CodeUnavailable // a service that the stage needs is down: another try now is not worth it
	CodeStopped     // the stage has to stop: the budget of the run is spent, or its service stays down
	CodeRefused     // a service will not work on this row: a content filter, a text that is too long
)

// Error is an error with a code. Err's text should say what to do next.
type Error struct {
	Code       Code
	RetryAfter time.Duration // CodeTransient: the least time to wait; 0: no opinion
	Err        error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Invalid says that the input is wrong: no retry will help.
func Invalid(err error) error { return &Error{Code: CodeInvalid, Err: err} }

// Refused says that a service will not work on this row, whoever asks: its content filter rejected
// the row, or the row is too long. The voter then abstains, if others have voted.
func Refused(err error) error { return &Error{Code: CodeRefused, Err: err} }

// Transient says that another try may succeed once the given time has passed.
func Transient(err error, after time.Duration) error {
	return &Error{Code: CodeTransient, RetryAfter: after, Err: err}
}

// ErrCrashed says that a stage's process ended each time it worked on a batch.
var ErrCrashed = errors.New("the stage's process ended")

// ArgumentError says that one argument of a stage's config is wrong. Open and Validates functions
// return it (or several, with errors.Join), so that the engine can point at the exact element.
type ArgumentError struct {
	Argument string   // empty: the stage as a whole
	Path     []string // from the argument to the element: keys of maps and blocks, indices of lists from 0
	Err      error
}

func (e *ArgumentError) Error() string {
	if e.Argument == "" {
		return e.Err.Error()
	}
	return e.Place() + ": " + e.Err.Error()
}

func (e *ArgumentError) Unwrap() error { return e.Err }

// Place returns the element as a file would name it: weights["knn"], stop[2].
func (e *ArgumentError) Place() string {
	place := e.Argument
	for _, step := range e.Path {
		if _, err := strconv.Atoi(step); err != nil {
			step = strconv.Quote(step)
		}
		place += "[" + step + "]"
	}
	return place
}

// ArgumentErrors splits a joined error. An error that names no argument concerns the whole stage. The
// result for nil is nil.
func ArgumentErrors(err error) []*ArgumentError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*ArgumentError
		for _, e := range joined.Unwrap() {
			all = append(all, ArgumentErrors(e)...)
		}
		return all
	}
	var of *ArgumentError
	if errors.As(err, &of) {
		return []*ArgumentError{of}
	}
	return []*ArgumentError{{Err: err}}
}

// CodeOf returns the code of the first coded error in err's chain.
func CodeOf(err error) Code {
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return CodeInternal
}

// Prober is a stage that asks language models and knows which parameters they accept. The engine asks
// only built-in Samplers and Enrichers, which it opens in its own process.
type Prober interface {
	// Models returns the models that the stage asks, in order.
	Models() []Model
}

// Model is a language model with a profile. The profile is a JSON object; Host.KeepProfile stores it
// under the model's endpoint and name.
type Model interface {
	Endpoint() string
	Name() string
	// Profile returns what is known about the model, merged with what the file says about it; nil if
	// no profile is stored. It calls no service.
	Profile(ctx context.Context) (json.RawMessage, error)
	// Probe finds out anew what the model accepts, by calls through the Host, and stores the profile.
	Probe(ctx context.Context) (json.RawMessage, error)
}

// Plugin is a program that offers stages.
type Plugin struct {
	Name    string
	Version string // semantic version
	Stages  []Stage
}

// Setup is what a stage receives when it is opened.
type Setup struct {
	Block    string    // the name of its block in the file
	StateDir string    // a folder of the stage's own that outlives the process, with the files that Fit wrote
	Samples  int       // sample block: its n; prompt block: the largest n of the stages below it; otherwise 0
	Labels   LabelForm // how the labels of the pipeline are written
	Host     Host      // what the engine shares with the stage; if it is nil, Open sets a Host that shares nothing
	Log      *slog.Logger
}

// Open decodes a stage's config from a JSON object and opens the stage. The result implements the
// interface of the stage's kind. Open fails for a Stage that only describes a stage of another
// process.
func (s Stage) Open(ctx context.Context, setup Setup, config []byte) (any, error) {
	if s.open == nil {
		return nil, fmt.Errorf("stage %s runs in its plugin's process only", s.Name)
	}
	if setup.Host == nil {
		setup.Host = alone{}
	}
	return s.open(ctx, setup, config)
}

// Fingerprint returns what the output of an open stage depends on beyond its arguments: the stage's
// Revision, and the stage's own fingerprint if it is a Fingerprinter. Empty: the stage has neither.
func (s Stage) Fingerprint(open any) string {
	print := s.revision
	if f, ok := open.(Fingerprinter); ok {
		print += " " + f.Fingerprint()
	}
	return strings.TrimSpace(print)
}

// Validate checks a config without opening the stage: first the tags, then the stage's Validates
// function. It has no side effects. For a stage of another process, Validate checks only the tags.
func (s Stage) Validate(config []byte) error {
	if s.validate == nil {
		return checkObject(config, s.Arguments)
	}
	return s.validate(config)
}

// Validates gives a stage checks of a config that tags cannot express: arguments that depend on each
// other, files that must exist. C is the stage's config type. The function gets a config that passed
// the tags' checks. It must have no side effects: the engine also calls it for files that nobody ever
// runs.
func Validates[C any](check func(C) error) Option {
	return func(s *Stage) { s.check, s.Validates = check, true }
}

// Addresses returns the addresses of the services that a stage calls with a config. An argument may
// have an element for each of several services. Then the key of an address is the name of its
// element, and the secrets of that element go to this address. All other secrets go to the address
// with the key "". nil: the stage does not say.
func (s Stage) Addresses(config []byte) map[string]string {
	if s.address == nil {
		return nil
	}
	return s.address(config)
}

// Addresses gives a stage a function that returns the services that a config names: see
// Stage.Addresses. racflow asks people about hosts that they have not named themselves. C is the
// stage's config type.
func Addresses[C any](of func(C) map[string]string) Option {
	return func(s *Stage) { s.places = of }
}

// Option changes how a stage is described.
type Option func(*Stage)

// Reads declares the columns that a stage needs.
func Reads(columns ...Column) Option {
	return func(s *Stage) { s.Reads |= Of(columns...) }
}

// Revision counts the changes of a stage's code after which the same input gives another output. It
// is part of the stage's fingerprint: output of an older revision is made again. Other changes of the
// code keep the output.
func Revision(of string) Option { return func(s *Stage) { s.revision = of } }

// Network declares that a stage talks to other machines. Only such a stage sees the proxy settings of
// the environment.
func Network() Option { return func(s *Stage) { s.Network = true } }

// Example sets the lines of an example config block, if the required arguments alone are no good
// example.
func Example(config string) Option { return func(s *Stage) { s.Example = config } }

// PreferBatch declares how many rows per call a stage prefers.
func PreferBatch(rows int) Option { return func(s *Stage) { s.Batch = rows } }

// Filters declares that a store honours Query.Filter: it searches only the entries that the query's
// filter selects. If a store does not declare this, the engine refuses a pipeline file that gives it
// a filter.
func Filters() Option { return func(s *Stage) { s.Filters = true } }

// Fits declares that a stage may be a Fitter, and which columns it learns from besides id and label:
// ColumnText, ColumnVector, ColumnSamples. A voter, reranker or election learns from the knowledge of
// the nearest retrieve stage above, which must exist. An election may learn from votes on some rows
// of the knowledge (ColumnSamples). Those are votes of the voters that ask no service, which did not
// see the row that they vote on.
func Fits(columns ...Column) Option {
	return func(s *Stage) { s.Fits, s.FitReads = true, Of(columns...) }
}

// Pends declares that a stage's results may be Pending.
func Pends() Option { return func(s *Stage) { s.Pends = true } }

// PendsIf declares that a stage's results may be Pending if its bool argument of that name is true,
// and never are if it is false.
func PendsIf(argument string) Option { return func(s *Stage) { s.Pends, s.PendsIf = true, argument } }

// Open functions get the stage's own config type C, already decoded, with defaults and checked;
// Argument lists the struct tags.
type openFunc[C, T any] = func(context.Context, Setup, C) (T, error)

// ChunkStage describes a chunker. It gets whole documents, whatever columns it declares to read.
func ChunkStage[C any](name, doc string, open openFunc[C, Chunker], options ...Option) Stage {
	return newStage(KindChunk, name, doc, open, options)
}

// EnrichStage describes an enricher. It gets whole documents, whatever columns it declares to read.
// Its Batch counts passages; a document is divided only if it ends the process or makes it hang. An
// enricher that shows a service the whole document with each passage declares to read ColumnText, so
// that a plan counts that.
func EnrichStage[C any](name, doc string, open openFunc[C, Enricher], options ...Option) Stage {
	return newStage(KindEnrich, name, doc, open, options)
}

// EmbedStage describes an embedder.
func EmbedStage[C any](name, doc string, open openFunc[C, Embedder], options ...Option) Stage {
	return newStage(KindEmbed, name, doc, open, options)
}

// StoreStage describes a store.
func StoreStage[C any](name, doc string, open openFunc[C, Store], options ...Option) Stage {
	return newStage(KindStore, name, doc, open, options)
}

// RerankStage describes a reranker. It reads the item's text and its candidates. If it also needs the
// texts of the candidates, it declares ColumnCandidateTexts.
func RerankStage[C any](name, doc string, open openFunc[C, Reranker], options ...Option) Stage {
	return newStage(KindRerank, name, doc, open, append([]Option{Reads(ColumnText, ColumnCandidates)}, options...))
}

// PromptStage describes a prompter.
func PromptStage[C any](name, doc string, open openFunc[C, Prompter], options ...Option) Stage {
	return newStage(KindPrompt, name, doc, open, options)
}

// SampleStage describes a voter.
func SampleStage[C any](name, doc string, open openFunc[C, Sampler], options ...Option) Stage {
	return newStage(KindSample, name, doc, open, options)
}

// ElectStage describes an election.
func ElectStage[C any](name, doc string, open openFunc[C, Elector], options ...Option) Stage {
	return newStage(KindElect, name, doc, open, append([]Option{Reads(ColumnSamples)}, options...))
}

func newStage[C, T any](kind Kind, name, doc string, open openFunc[C, T], options []Option) Stage {
	s := Stage{Kind: kind, Name: name, Doc: doc, Arguments: arguments(reflect.TypeFor[C]())}
	for _, o := range options {
		o(&s)
	}
	isIt := func(a Argument) bool { return a.Name == s.Attaches && a.Type == TypeString }
	if s.Attaches != "" && (kind != KindStore || !slices.ContainsFunc(s.Arguments, isIt)) {
		panic(fmt.Sprintf("sdk: stage %s: Attaches is for a store with a string argument %q", name, s.Attaches))
	}
	check, ok := s.check.(func(C) error)
	if !ok && s.check != nil {
		panic(fmt.Sprintf("sdk: stage %s: Validates takes a %T, and the config is a %s", name, s.check, reflect.TypeFor[C]()))
	}
	decode := func(config []byte) (c C, err error) {
		if err = decodeConfig(config, s.Arguments, &c); err == nil && check != nil {
			err = check(c)
		}
		return c, err
	}
	s.validate = func(config []byte) error {
		_, err := decode(config)
		return err
	}
	if places, ok := s.places.(func(C) map[string]string); ok {
		s.address = func(config []byte) map[string]string {
			var c C
			if err := decodeConfig(config, s.Arguments, &c); err != nil {
				return nil
			}
			return places(c)
		}
	} else if s.places != nil {
		panic(fmt.Sprintf("sdk: stage %s: Addresses takes a %T, and the config is a %s", name, s.places, reflect.TypeFor[C]()))
	}
	s.open = func(ctx context.Context, setup Setup, config []byte) (any, error) {
		c, err := decode(config)
		if err != nil {
			return nil, err
		}
		return open(ctx, setup, c)
	}
	return s
}
